//! An ISO 9660 file system in the shape that Linux and cloud-init find: Rock Ridge names for Unix, Joliet names for Windows,
//! and in the plain records the names that genisoimage writes with Ironic's options. Nothing in it depends on time or place.

use crate::LABEL;
use iso9660::{DATE, Descriptor, Record, TERMINATOR};

const SECTOR: usize = 2048;
const SYSTEM_AREA: usize = 16;
/// Primary, Joliet, terminator.
const DESCRIPTORS: usize = 3;
/// For each of both trees one in either byte order; a sector is enough for each.
const PATH_TABLES: usize = 4;
/// The directory that has the versions.
const TOP: &str = "openstack";

/// A file of each version.
pub(crate) struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) content: &'a [u8],
}

/// A directory of the tree: the root, the directory of the versions, or a version.
struct Directory<'a> {
    name: &'a str,
    parent: usize,
    children: Vec<usize>,
}

/// Which names a tree has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Plain ones, and Rock Ridge's behind them.
    Primary,
    Joliet,
}

/// Where everything is, in sectors.
struct Layout<'a> {
    directories: Vec<Directory<'a>>,
    files: &'a [File<'a>],
    /// Start of each file.
    starts: Vec<usize>,
    end: usize,
}

/// Bytes of the image.
pub(crate) fn size(versions: &[&str], files: &[File]) -> u64 {
    (Layout::new(versions, files).end * SECTOR) as u64
}

/// The image. Each directory of `versions` has all files; their contents are there once.
pub(crate) fn image(versions: &[&str], files: &[File]) -> Vec<u8> {
    let layout = Layout::new(versions, files);
    let mut image = vec![0; layout.end * SECTOR];
    let mut put = |sector: usize, bytes: &[u8]| {
        image[sector * SECTOR..][..bytes.len()].copy_from_slice(bytes);
    };
    for (index, names) in [Names::Primary, Names::Joliet].into_iter().enumerate() {
        put(SYSTEM_AREA + index, &layout.descriptor(names));
        let table = SYSTEM_AREA + DESCRIPTORS + 2 * index;
        put(table, &layout.path_table(names, u32::to_le_bytes, u16::to_le_bytes));
        put(table + 1, &layout.path_table(names, u32::to_be_bytes, u16::to_be_bytes));
        for directory in 0..layout.directories.len() {
            put(layout.start(directory, names), &layout.records(directory, names));
        }
    }
    put(SYSTEM_AREA + 2, TERMINATOR);
    for (file, start) in files.iter().zip(&layout.starts) {
        put(*start, file.content);
    }
    image
}

impl<'a> Layout<'a> {
    fn new(versions: &[&'a str], files: &'a [File<'a>]) -> Self {
        let mut directories = vec![
            Directory { name: "", parent: 0, children: vec![1] },
            Directory { name: TOP, parent: 0, children: (2..2 + versions.len()).collect() },
        ];
        let version = |name: &&'a str| Directory { name, parent: 1, children: Vec::new() };
        directories.extend(versions.iter().map(version));
        let mut end = SYSTEM_AREA + DESCRIPTORS + PATH_TABLES + 2 * directories.len();
        let mut starts = Vec::new();
        for file in files {
            starts.push(end);
            end += file.content.len().div_ceil(SECTOR);
        }
        Self { directories, files, starts, end }
    }

    /// Sector of a directory: each has one.
    fn start(&self, directory: usize, names: Names) -> usize {
        let tree = if names == Names::Primary { 0 } else { self.directories.len() };
        SYSTEM_AREA + DESCRIPTORS + PATH_TABLES + tree + directory
    }

    fn descriptor(&self, names: Names) -> Vec<u8> {
        let table = self.path_table(names, u32::to_le_bytes, u16::to_le_bytes).len();
        let is_primary = names == Names::Primary;
        let first = SYSTEM_AREA + DESCRIPTORS + if is_primary { 0 } else { 2 };
        let descriptor = Descriptor {
            kind: if is_primary { 1 } else { 2 },
            text: &|text, length| padded(text, length, names),
            system: "LINUX",
            label: LABEL,
            publisher: "ANNEAL",
            application: "",
            sectors: number(self.end),
            // UCS-2, level 3.
            escapes: if is_primary { b"" } else { b"%/E" },
            table_length: number(table),
            tables: (number(first), number(first + 1)),
            root: record(&[0], self.start(0, names), SECTOR, true, &[]),
        };
        descriptor.bytes()
    }

    /// The table of all directories (ECMA-119, 9.4), in the order of their levels.
    fn path_table(&self, names: Names, long: fn(u32) -> [u8; 4], short: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, directory) in self.directories.iter().enumerate() {
            let name = if index == 0 { vec![0] } else { identifier(directory.name, true, names) };
            out.extend([short_length(&name), 0]);
            out.extend(long(number(self.start(index, names))));
            // Directories are counted from 1.
            out.extend(short(u16::try_from(directory.parent + 1).unwrap_or(u16::MAX)));
            out.extend(&name);
            if name.len() % 2 == 1 {
                out.push(0);
            }
        }
        out
    }

    /// The records of a directory: itself, the one above, and what is in it, sorted.
    fn records(&self, index: usize, names: Names) -> Vec<u8> {
        let directory = &self.directories[index];
        let at = |index: usize| self.start(index, names);
        let links = |index: usize| 2 + self.directories[index].children.len();
        let rock_ridge = |entry: RockRidge| if names == Names::Primary { entry.bytes() } else { Vec::new() };
        let entry = |index: usize| RockRidge { links: links(index), ..RockRidge::default() };
        let itself = RockRidge { is_root: index == 0, ..entry(index) };
        let mut out = record(&[0], at(index), SECTOR, true, &rock_ridge(itself)).bytes();
        let above = rock_ridge(entry(directory.parent));
        out.extend(record(&[1], at(directory.parent), SECTOR, true, &above).bytes());
        for &child in &directory.children {
            let name = self.directories[child].name;
            let rock_ridge = rock_ridge(RockRidge { name, ..entry(child) });
            out.extend(record(&identifier(name, true, names), at(child), SECTOR, true, &rock_ridge).bytes());
        }
        if directory.children.is_empty() {
            for (file, &start) in self.files.iter().zip(&self.starts) {
                let rock_ridge =
                    rock_ridge(RockRidge { name: file.name, links: 1, is_file: true, is_root: false });
                let name = identifier(file.name, false, names);
                out.extend(record(&name, start, file.content.len(), false, &rock_ridge).bytes());
            }
        }
        out
    }
}

/// What Rock Ridge says of a record.
#[derive(Default)]
struct RockRidge<'a> {
    /// Empty for a directory itself and the one above.
    name: &'a str,
    links: usize,
    is_file: bool,
    is_root: bool,
}

impl RockRidge<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_root {
            out.extend(b"SP\x07\x01\xbe\xef\0");
        }
        // As with the option -r: everybody reads, root owns.
        let mode = if self.is_file { 0o100_444 } else { 0o040_555 };
        out.extend(b"PX\x24\x01");
        out.extend([both32(mode), both32(self.links), both32(0), both32(0)].concat());
        // Times of change, of access, and of change of the attributes.
        out.extend(b"TF\x1a\x01\x0e");
        out.extend([DATE, DATE, DATE].concat());
        if !self.name.is_empty() {
            out.extend([b'N', b'M', 5 + short_length(self.name.as_bytes()), 1, 0]);
            out.extend(self.name.as_bytes());
        }
        if self.is_root {
            out.extend(b"ER\x12\x01\x0a\0\0\x01RRIP_1991A");
        }
        out
    }
}

fn record<'a>(
    name: &'a [u8],
    start: usize,
    length: usize,
    is_directory: bool,
    system_use: &'a [u8],
) -> Record<'a> {
    Record { name, sector: number(start), length: number(length), is_directory, system_use }
}

/// The name in a record.
fn identifier(name: &str, is_directory: bool, names: Names) -> Vec<u8> {
    let version = if is_directory { "" } else { ";1" };
    match names {
        // A plain name of a file has a dot.
        Names::Primary if !is_directory && !name.contains('.') => format!("{name}.{version}").into_bytes(),
        Names::Primary => format!("{name}{version}").into_bytes(),
        Names::Joliet => wide(&format!("{name}{version}")),
    }
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

fn padded(text: &str, length: usize, names: Names) -> Vec<u8> {
    let (mut out, blank) = match names {
        Names::Primary => (text.as_bytes().to_vec(), " ".as_bytes().to_vec()),
        Names::Joliet => (wide(text), wide(" ")),
    };
    while out.len() + blank.len() <= length {
        out.extend(&blank);
    }
    out.resize(length, 0);
    out
}

/// All numbers here are far below 2^32: an image has at most 64 MiB.
fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// All names are ours and short.
fn short_length(bytes: &[u8]) -> u8 {
    u8::try_from(bytes.len()).unwrap_or(u8::MAX)
}

fn both32(value: usize) -> [u8; 8] {
    iso9660::both32(number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_has_its_sector_to_itself() {
        let names = ["meta_data.json", "network_data.json", "user_data", "vendor_data2.json"];
        let files = names.map(|name| File { name, content: b"x" });
        let layout = Layout::new(&["2012-08-10", "latest"], &files);
        for names in [Names::Primary, Names::Joliet] {
            assert_eq!(layout.descriptor(names).len(), 882);
            assert!(layout.path_table(names, u32::to_le_bytes, u16::to_le_bytes).len() < SECTOR);
            for directory in 0..layout.directories.len() {
                assert!(layout.records(directory, names).len() < SECTOR, "{directory}");
            }
        }
        let versions = ["2012-08-10", "latest"];
        assert_eq!(size(&versions, &files), image(&versions, &files).len() as u64);
    }
}
