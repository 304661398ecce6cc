//! A FAT16 file system with given files, as the bytes with which it begins: what is behind the last file is free. It has one
//! sector per cluster. Of equal files come equal bytes.

use super::iso::Entry;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map;

/// As ironic-python-agent calls it: labels have no small letters here, and cloud-init looks for both.
const LABEL: &[u8; 11] = b"CONFIG-2   ";
const VOLUME_ID: [u8; 4] = *b"ANNL";
const ROOT_ENTRIES: usize = 512;
const ENTRY: usize = 32;
/// The first and the last number of clusters with which a file system is FAT16.
const CLUSTERS: std::ops::RangeInclusive<usize> = 4085..=65524;
/// Numbers of clusters begin here.
const FIRST: usize = 2;
const LAST_OF_FILE: u16 = 0xffff;
/// 1 January 2000.
const DATE: [u8; 2] = [0x21, 0x28];
const ATTRIBUTE_LABEL: u8 = 0x08;
const ATTRIBUTE_DIRECTORY: u8 = 0x10;
const ATTRIBUTE_FILE: u8 = 0x20;
const ATTRIBUTE_LONG_NAME: u8 = 0x0f;
/// Units of a name in one entry, and where they are.
const UNITS: usize = 13;
const UNIT_PLACES: [usize; UNITS] = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];

/// The file system, with sectors of `sector` bytes, for a partition of `length` bytes.
///
/// # Errors
/// The partition is too small, or a name is none that FAT can have.
pub(super) fn image(entries: &[Entry], sector: u16, length: u64) -> Result<Vec<u8>, String> {
    let layout = Layout::new(sector, length)?;
    let mut nodes = tree(entries)?;
    // One is the label.
    if 1 + slots(&nodes, 0) > ROOT_ENTRIES {
        return Err("its root directory has too many files for FAT".to_owned());
    }
    let end = place(&mut nodes, layout.sector);
    let needed = layout.data + end - FIRST;
    if end - FIRST > layout.clusters {
        let bytes = needed * layout.sector;
        return Err(format!("as FAT it needs {bytes} bytes, and its partition has {length}"));
    }
    let mut image = vec![0; needed * layout.sector];
    layout.boot_sector(&mut image);
    let table = chains(&nodes, end);
    for copy in 0..2 {
        let start = (1 + copy * layout.table) * layout.sector;
        image[start..][..table.len()].copy_from_slice(&table);
    }
    for (number, node) in nodes.iter().enumerate() {
        let start =
            if number == 0 { layout.root } else { layout.data + node.cluster - FIRST } * layout.sector;
        let bytes = node.content.map_or_else(|| directory(&nodes, number).into(), Cow::Borrowed);
        image[start..][..bytes.len()].copy_from_slice(&bytes);
    }
    Ok(image)
}

/// Where the parts are, in sectors.
struct Layout {
    sector: usize,
    table: usize,
    root: usize,
    data: usize,
    clusters: usize,
}

impl Layout {
    fn new(sector: u16, length: u64) -> Result<Self, String> {
        let sector = usize::from(sector);
        let sectors = usize::try_from(length).unwrap_or(usize::MAX) / sector;
        // As large as the table of the largest file system that the partition could have.
        let table = (2 * sectors.min(*CLUSTERS.end() + FIRST)).div_ceil(sector);
        let root = 1 + 2 * table;
        let data = root + (ROOT_ENTRIES * ENTRY).div_ceil(sector);
        let clusters = sectors.saturating_sub(data).min(*CLUSTERS.end());
        if clusters < *CLUSTERS.start() {
            return Err(format!("its partition of {length} bytes is too small for FAT16"));
        }
        Ok(Self { sector, table, root, data, clusters })
    }

    fn boot_sector(&self, image: &mut [u8]) {
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        let total = self.data + self.clusters;
        put(0, b"\xeb\x3c\x90ANNEAL  ");
        put(11, &word(self.sector));
        // One sector per cluster, one before the tables, two tables.
        put(13, &[1, 1, 0, 2]);
        put(17, &word(ROOT_ENTRIES));
        if total < 0x1_0000 {
            put(19, &word(total));
        } else {
            put(32, &long(total));
        }
        put(21, &[0xf8]);
        put(22, &word(self.table));
        // A geometry that nothing looks at.
        put(24, &[32, 0, 64, 0]);
        put(36, &[0x80, 0, 0x29]);
        put(39, &VOLUME_ID);
        put(43, LABEL);
        put(54, b"FAT16   ");
        put(510, &[0x55, 0xaa]);
    }
}

/// A file or a directory; the first is the root.
struct Node<'a> {
    name: Vec<u16>,
    parent: usize,
    content: Option<&'a [u8]>,
    children: Vec<usize>,
    /// The first of its clusters; zero where it has none.
    cluster: usize,
    clusters: usize,
}

fn tree<'a>(entries: &[Entry<'a>]) -> Result<Vec<Node<'a>>, String> {
    let mut nodes = vec![node(Vec::new(), 0, None)];
    // FAT does not distinguish capital and small letters.
    let mut known = BTreeMap::from([(String::new(), 0)]);
    for entry in entries {
        let folded = entry.path.to_lowercase();
        let above = folded.rsplit_once('/').map_or("", |(above, _)| above);
        let parent = *known.get(above).ok_or("a file comes before its directory")?;
        let name = entry.path.rsplit('/').next().unwrap_or_default();
        let number = nodes.len();
        nodes.push(node(units(name)?, parent, entry.content));
        nodes[parent].children.push(number);
        match known.entry(folded) {
            btree_map::Entry::Vacant(place) => place.insert(number),
            btree_map::Entry::Occupied(_) => return Err("two names differ in their case only".to_owned()),
        };
    }
    Ok(nodes)
}

fn node(name: Vec<u16>, parent: usize, content: Option<&[u8]>) -> Node<'_> {
    Node { name, parent, content, children: Vec::new(), cluster: 0, clusters: 0 }
}

fn units(name: &str) -> Result<Vec<u16>, String> {
    let impossible = |letter: char| letter.is_control() || "\"*/:<>?\\|".contains(letter);
    let units: Vec<u16> = name.encode_utf16().collect();
    if name.contains(impossible) || name.ends_with(['.', ' ']) || !(1..=255).contains(&units.len()) {
        return Err("a file has a name that FAT cannot have".to_owned());
    }
    Ok(units)
}

/// Gives each its clusters, one after the other; returns the one after the last.
fn place(nodes: &mut [Node], sector: usize) -> usize {
    let mut next = FIRST;
    for number in 1..nodes.len() {
        let bytes = match nodes[number].content {
            Some(content) => content.len(),
            None => ENTRY * (2 + slots(nodes, number)),
        };
        let node = &mut nodes[number];
        node.clusters = bytes.div_ceil(sector);
        node.cluster = if node.clusters == 0 { 0 } else { next };
        next += node.clusters;
    }
    next
}

/// Entries that the names in a directory take.
fn slots(nodes: &[Node], directory: usize) -> usize {
    nodes[directory].children.iter().map(|&child| 1 + nodes[child].name.len().div_ceil(UNITS)).sum()
}

/// The table: for each cluster the next of its file.
fn chains(nodes: &[Node], end: usize) -> Vec<u8> {
    let mut table = vec![0xfff8, LAST_OF_FILE];
    table.resize(end, 0);
    for node in nodes.iter().filter(|node| node.clusters > 0) {
        let last = node.cluster + node.clusters - 1;
        for (cluster, next) in (node.cluster..last).zip(node.cluster + 1..) {
            table[cluster] = u16::try_from(next).unwrap_or(LAST_OF_FILE);
        }
        table[last] = LAST_OF_FILE;
    }
    table.into_iter().flat_map(u16::to_le_bytes).collect()
}

fn directory(nodes: &[Node], number: usize) -> Vec<u8> {
    let this = &nodes[number];
    let mut out = if number == 0 {
        entry(LABEL, ATTRIBUTE_LABEL, 0, 0)
    } else {
        // The root directory is 0 for those in it.
        let above = nodes[this.parent].cluster;
        let itself = entry(b".          ", ATTRIBUTE_DIRECTORY, this.cluster, 0);
        [itself, entry(b"..         ", ATTRIBUTE_DIRECTORY, above, 0)].concat()
    };
    for &child in &this.children {
        let node = &nodes[child];
        // Linux and Windows read the long name: the short one only has to be another each time.
        let mut short = [b' '; 11];
        short[..8].copy_from_slice(format!("{child:08X}").as_bytes());
        out.extend(long_name(&node.name, &short));
        let (attribute, length) = match node.content {
            None => (ATTRIBUTE_DIRECTORY, 0),
            Some(content) => (ATTRIBUTE_FILE, content.len()),
        };
        out.extend(entry(&short, attribute, node.cluster, length));
    }
    out
}

fn entry(name: &[u8; 11], attribute: u8, cluster: usize, length: usize) -> Vec<u8> {
    let mut out = name.to_vec();
    // Created and read on the day, changed at its beginning.
    out.extend([attribute, 0, 0, 0, 0, DATE[0], DATE[1], DATE[0], DATE[1], 0, 0, 0, 0, DATE[0], DATE[1]]);
    out.extend(word(cluster));
    out.extend(long(length));
    out
}

/// The entries before that of the short name, the end of the name first.
fn long_name(name: &[u16], short: &[u8; 11]) -> Vec<u8> {
    let sum = short.iter().fold(0_u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
    let count = name.len().div_ceil(UNITS);
    let mut out = Vec::new();
    for (index, part) in name.chunks(UNITS).enumerate().rev() {
        let mut entry = [0xff; ENTRY];
        let mark = if index + 1 == count { 0x40 } else { 0 };
        entry[0] = u8::try_from(index + 1).unwrap_or(u8::MAX) | mark;
        (entry[11], entry[12], entry[13]) = (ATTRIBUTE_LONG_NAME, 0, sum);
        (entry[26], entry[27]) = (0, 0);
        // A name that does not fill its entries ends with a zero.
        for (&place, unit) in UNIT_PLACES.iter().zip(part.iter().copied().chain([0])) {
            entry[place..place + 2].copy_from_slice(&unit.to_le_bytes());
        }
        out.extend(entry);
    }
    out
}

/// What does not fit was refused before.
fn word(value: usize) -> [u8; 2] {
    u16::try_from(value).unwrap_or(u16::MAX).to_le_bytes()
}

fn long(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTITION: u64 = 64 << 20;

    fn file<'a>(path: &str, content: &'a [u8]) -> Entry<'a> {
        Entry { path: path.to_owned(), content: Some(content) }
    }

    #[test]
    fn what_fat_cannot_have_is_refused() {
        let refused =
            |entries: &[Entry], length| image(entries, 4096, length).map(drop).expect_err("no file system");
        assert!(refused(&[file("a", b""), file("A", b"")], PARTITION).contains("case"));
        for name in ["a:b", "a.", "a ", "a\n", &"x".repeat(256)] {
            assert!(refused(&[file(name, b"")], PARTITION).contains("FAT cannot have"), "{name}");
        }
        assert!(refused(&[file("none/a", b"")], PARTITION).contains("before its directory"));
        assert!(refused(&[], 15 << 20).contains("too small"));
        let many: Vec<String> = (0..300).map(|number| number.to_string()).collect();
        let many: Vec<Entry> = many.iter().map(|name| file(name, b"")).collect();
        assert!(refused(&many, PARTITION).contains("too many files"));
        let large = vec![0; 20 << 20];
        let entries = [file("a", &large), file("b", &large)];
        assert!(refused(&entries, 32 << 20).contains("as FAT it needs"));
        assert!(image(&entries, 4096, PARTITION).is_ok());
    }

    #[test]
    fn only_what_is_used_is_written() {
        let written = image(&[file("user_data", b"x")], 4096, PARTITION).unwrap();
        // Boot sector, two tables of 8 sectors, 4 of the root directory, one of the file.
        assert_eq!(written.len(), (1 + 16 + 4 + 1) << 12);
        assert!(written == image(&[file("user_data", b"x")], 4096, PARTITION).unwrap());
    }
}
