//! The EFI system partition: a FAT 16 file system (Microsoft's FAT specification 1.03) of contiguous files. The first program that a
//! firmware starts is `/EFI/BOOT/BOOTX64.EFI` (UEFI 2.10, 3.5.1.1).

use crate::long_name;
use crate::sizes::short;
use iso9660::SECTOR;

/// Bytes of a sector of the FAT.
const FAT_SECTOR: u64 = 512;
/// Most bytes of a cluster. The least are those of a sector of ISO 9660.
const CLUSTER_MAX: u64 = 32 << 10;
const FATS: u64 = 2;
const ROOT_ENTRIES: u64 = 64;
const ENTRY: u64 = 32;
/// Fewer clusters would make it FAT 12.
const CLUSTERS_MIN: u64 = 4096;
/// More would come near to those that make it FAT 32.
const CLUSTERS_MAX: u64 = 65_000;
const _: () =
    assert!(crate::error::EFI_IMAGE_MAX <= CLUSTERS_MAX * CLUSTER_MAX, "the largest one is FAT 16, too");
/// The first cluster.
const FIRST: u16 = 2;
const END: u16 = 0xffff;
const DIRECTORY: u8 = 0x10;
const ARCHIVE: u8 = 0x20;
/// The directory in which all others are.
pub(crate) const ROOT: Place = Place(None);
/// The directory of the program that a firmware starts, in [`DIRECTORIES`].
pub(crate) const BOOT: Place = Place(Some(1));
/// The directories of every medium.
const DIRECTORIES: [Directory; 2] = [
    Directory { above: ROOT, name: Name::short(b"EFI        ") },
    Directory { above: Place(Some(0)), name: Name::short(b"BOOT       ") },
];
/// The program that a firmware starts.
pub(crate) const STARTED: Name = Name::short(b"BOOTX64 EFI");

/// The name of a file or directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    short: &'static [u8; 11],
    long: Option<&'static str>,
}

impl Name {
    /// Eight characters and three.
    pub(crate) const fn short(short: &'static [u8; 11]) -> Self {
        Self { short, long: None }
    }

    /// A long name, with the short one that stands for it.
    pub(crate) const fn long(long: &'static str, short: &'static [u8; 11]) -> Self {
        Self { short, long: Some(long) }
    }

    fn entries(self, attributes: u8, cluster: u16, size: u32) -> Vec<u8> {
        let long = self.long.map(|long| long_name::entries(long, self.short)).unwrap_or_default();
        [long, entry(self.short, attributes, cluster, size)].concat()
    }
}

/// Where files and directories are: in the root, or in the directory with this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(Option<usize>);

struct Directory {
    above: Place,
    name: Name,
}

struct File {
    place: Place,
    name: Name,
    bytes: u64,
}

/// What is to be in the file system, in the order of its clusters.
pub(crate) struct Content {
    directories: Vec<Directory>,
    files: Vec<File>,
}

impl Content {
    /// Nothing but the directory [`BOOT`].
    pub(crate) fn new() -> Self {
        Self { directories: DIRECTORIES.into(), files: Vec::new() }
    }

    /// One more directory.
    pub(crate) fn directory(&mut self, above: Place, name: Name) -> Place {
        self.directories.push(Directory { above, name });
        Place(Some(self.directories.len() - 1))
    }

    /// One more file of so many bytes; its index.
    pub(crate) fn file(&mut self, place: Place, name: Name, bytes: u64) -> usize {
        self.files.push(File { place, name, bytes });
        self.files.len() - 1
    }
}

/// Where everything is. Sizes are in sectors of 512 bytes where it is not said otherwise.
pub(crate) struct Layout {
    content: Content,
    /// Bytes of a cluster.
    cluster: u64,
    clusters: u64,
    reserved: u64,
    fat: u64,
}

impl Layout {
    /// The smallest with this content.
    pub(crate) fn new(content: Content) -> Self {
        let needed = |cluster: u64| {
            let files = content.files.iter().map(|file| file.bytes.div_ceil(cluster)).sum::<u64>();
            files + content.directories.len() as u64
        };
        let mut cluster = SECTOR;
        while cluster < CLUSTER_MAX && needed(cluster) > CLUSTERS_MAX {
            cluster *= 2;
        }
        let clusters = needed(cluster).max(CLUSTERS_MIN);
        let fat = ((clusters + u64::from(FIRST)) * 2).div_ceil(FAT_SECTOR);
        // The clusters begin at a sector of ISO 9660.
        let before = FATS * fat + ROOT_ENTRIES * ENTRY / FAT_SECTOR;
        let reserved = (before + 1).next_multiple_of(SECTOR / FAT_SECTOR) - before;
        Self { content, cluster, clusters, reserved, fat }
    }

    fn root_at(&self) -> u64 {
        (self.reserved + FATS * self.fat) * FAT_SECTOR
    }

    fn clusters_at(&self) -> u64 {
        self.root_at() + ROOT_ENTRIES * ENTRY
    }

    fn cluster_at(&self, cluster: u16) -> u64 {
        self.clusters_at() + u64::from(cluster - FIRST) * self.cluster
    }

    /// The first cluster of a directory; 0 of the root, which has none.
    fn directory_in(&self, place: Place) -> u16 {
        place.0.map_or(0, |index| u16::try_from(index).unwrap_or(END).saturating_add(FIRST))
    }

    /// The first cluster of a file. The files are behind the directories.
    fn file_in(&self, index: usize) -> u16 {
        let before: u64 =
            self.content.files[..index].iter().map(|file| file.bytes.div_ceil(self.cluster)).sum();
        u16::try_from(u64::from(FIRST) + self.content.directories.len() as u64 + before).unwrap_or(END)
    }

    /// Where a file begins, in bytes.
    pub(crate) fn file_at(&self, index: usize) -> u64 {
        self.cluster_at(self.file_in(index))
    }

    /// Bytes of the file system.
    pub(crate) fn length(&self) -> u64 {
        self.clusters_at() + self.clusters * self.cluster
    }

    /// All that is not zero, but for the files, by its place in bytes.
    pub(crate) fn parts(&self) -> Vec<(u64, Vec<u8>)> {
        let table = self.table();
        let first_fat = self.reserved * FAT_SECTOR;
        let mut parts = vec![
            (0, self.boot_sector()),
            (first_fat, table.clone()),
            (first_fat + self.fat * FAT_SECTOR, table),
            (self.root_at(), self.entries_of(ROOT)),
        ];
        for (index, directory) in self.content.directories.iter().enumerate() {
            let own = Place(Some(index));
            let cluster = self.directory_in(own);
            let dots = [
                entry(b".          ", DIRECTORY, cluster, 0),
                entry(b"..         ", DIRECTORY, self.directory_in(directory.above), 0),
            ];
            parts.push((self.cluster_at(cluster), [dots.concat(), self.entries_of(own)].concat()));
        }
        parts
    }

    /// The entries of a directory, but for itself and the one above.
    fn entries_of(&self, place: Place) -> Vec<u8> {
        let directories = self.content.directories.iter().enumerate();
        let directories =
            directories.filter(|(_, directory)| directory.above == place).flat_map(|(index, directory)| {
                directory.name.entries(DIRECTORY, self.directory_in(Place(Some(index))), 0)
            });
        let files = self.content.files.iter().enumerate().filter(|(_, file)| file.place == place);
        let files = files
            .flat_map(|(index, file)| file.name.entries(ARCHIVE, self.file_in(index), short(file.bytes)));
        directories.chain(files).collect()
    }

    fn boot_sector(&self) -> Vec<u8> {
        let mut sector = vec![0xeb, 0x3c, 0x90];
        let low = |number: u64| u16::try_from(number).unwrap_or(0).to_le_bytes();
        let sectors = self.length() / FAT_SECTOR;
        sector.extend(b"ANNEAL  ");
        sector.extend(low(FAT_SECTOR));
        sector.push((self.cluster / FAT_SECTOR).to_le_bytes()[0]);
        sector.extend(low(self.reserved));
        sector.push(FATS.to_le_bytes()[0]);
        sector.extend(low(ROOT_ENTRIES));
        // What does not fit into 16 bits is 0 here, and stands below.
        sector.extend(low(sectors));
        sector.push(0xf8);
        sector.extend(low(self.fat));
        sector.extend([low(32), low(64)].concat());
        sector.extend([0; 4]);
        sector.extend(if sectors > u64::from(u16::MAX) { short(sectors) } else { 0 }.to_le_bytes());
        sector.extend([0x80, 0, 0x29]);
        sector.extend(0x414e_4e45_u32.to_le_bytes());
        sector.extend(b"ANNEAL     FAT16   ");
        sector.resize(510, 0);
        sector.extend([0x55, 0xaa]);
        sector
    }

    /// The file allocation table: the directories have a cluster each, the files all those behind them.
    fn table(&self) -> Vec<u8> {
        let mut entries = vec![0xfff8, END];
        entries.extend(self.content.directories.iter().map(|_| END));
        for file in &self.content.files {
            self.chain(&mut entries, file.bytes);
        }
        entries.iter().flat_map(|entry: &u16| entry.to_le_bytes()).collect()
    }

    /// The clusters of a contiguous file of so many bytes, behind those that are taken.
    fn chain(&self, entries: &mut Vec<u16>, bytes: u64) {
        for left in (0..bytes.div_ceil(self.cluster)).rev() {
            let next = u16::try_from(entries.len() + 1).unwrap_or(END);
            entries.push(if left == 0 { END } else { next });
        }
    }
}

/// A directory entry, of 1 January 2000.
fn entry(name: &[u8; 11], attributes: u8, cluster: u16, size: u32) -> Vec<u8> {
    const DATE: u16 = (20 << 9) | (1 << 5) | 1;
    let mut entry = name.to_vec();
    entry.extend([attributes, 0, 0, 0, 0]);
    entry.extend([DATE.to_le_bytes(), DATE.to_le_bytes(), [0; 2], [0; 2], DATE.to_le_bytes()].concat());
    entry.extend(cluster.to_le_bytes());
    entry.extend(size.to_le_bytes());
    entry
}
