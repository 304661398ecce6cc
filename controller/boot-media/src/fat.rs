//! The EFI system partition: a FAT 16 file system with one contiguous file, `/EFI/BOOT/BOOTX64.EFI` (Microsoft's FAT
//! specification 1.03; UEFI 2.10, 3.5.1.1 names the file).

use crate::sizes::short;
use iso9660::SECTOR;

/// Bytes of a sector of the FAT.
const FAT_SECTOR: u64 = 512;
/// Sectors of a cluster: as many bytes as a sector of ISO 9660 has.
const CLUSTER: u64 = SECTOR / FAT_SECTOR;
const FATS: u64 = 2;
const ROOT_ENTRIES: u64 = 64;
const ENTRY: u64 = 32;
/// Fewer clusters would make it FAT 12.
const CLUSTERS_MIN: u64 = 4096;
/// Clusters of the two directories; the file is behind them.
const EFI: u16 = 2;
const BOOT: u16 = 3;
const FILE: u16 = 4;
const END: u16 = 0xffff;
const DIRECTORY: u8 = 0x10;
const ARCHIVE: u8 = 0x20;

/// Sizes, in sectors of 512 bytes where it is not said otherwise.
pub(crate) struct Layout {
    /// Bytes of the file.
    file: u64,
    clusters: u64,
    reserved: u64,
    fat: u64,
}

impl Layout {
    /// The smallest for a file of so many bytes.
    pub(crate) fn new(file: u64) -> Self {
        let clusters = (file.div_ceil(SECTOR) + u64::from(FILE - EFI)).max(CLUSTERS_MIN);
        let fat = ((clusters + u64::from(EFI)) * 2).div_ceil(FAT_SECTOR);
        // The clusters begin at a sector of ISO 9660.
        let before = FATS * fat + ROOT_ENTRIES * ENTRY / FAT_SECTOR;
        let reserved = (before + 1).next_multiple_of(CLUSTER) - before;
        Self { file, clusters, reserved, fat }
    }

    fn root_at(&self) -> u64 {
        (self.reserved + FATS * self.fat) * FAT_SECTOR
    }

    fn clusters_at(&self) -> u64 {
        self.root_at() + ROOT_ENTRIES * ENTRY
    }

    fn cluster_at(&self, cluster: u16) -> u64 {
        self.clusters_at() + u64::from(cluster - EFI) * SECTOR
    }

    /// Where the file begins, in bytes.
    pub(crate) fn file_at(&self) -> u64 {
        self.cluster_at(FILE)
    }

    /// Bytes of the file system.
    pub(crate) fn length(&self) -> u64 {
        self.clusters_at() + self.clusters * SECTOR
    }

    /// All that is not zero, but for the file, by its place in bytes.
    pub(crate) fn parts(&self) -> Vec<(u64, Vec<u8>)> {
        let table = self.table();
        let first_fat = self.reserved * FAT_SECTOR;
        let empty = *b"           ";
        vec![
            (0, self.boot_sector()),
            (first_fat, table.clone()),
            (first_fat + self.fat * FAT_SECTOR, table),
            (self.root_at(), entry(b"EFI        ", DIRECTORY, EFI, 0)),
            (
                self.cluster_at(EFI),
                [
                    entry(&named(empty, b"."), DIRECTORY, EFI, 0),
                    entry(&named(empty, b".."), DIRECTORY, 0, 0),
                    entry(b"BOOT       ", DIRECTORY, BOOT, 0),
                ]
                .concat(),
            ),
            (
                self.cluster_at(BOOT),
                [
                    entry(&named(empty, b"."), DIRECTORY, BOOT, 0),
                    entry(&named(empty, b".."), DIRECTORY, EFI, 0),
                    entry(b"BOOTX64 EFI", ARCHIVE, FILE, short(self.file)),
                ]
                .concat(),
            ),
        ]
    }

    fn boot_sector(&self) -> Vec<u8> {
        let mut sector = vec![0xeb, 0x3c, 0x90];
        let low = |number: u64| u16::try_from(number).unwrap_or(0).to_le_bytes();
        let sectors = self.length() / FAT_SECTOR;
        sector.extend(b"ANNEAL  ");
        sector.extend(low(FAT_SECTOR));
        sector.push(CLUSTER.to_le_bytes()[0]);
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

    /// The file allocation table: the two directories have a cluster each, the file all those behind them.
    fn table(&self) -> Vec<u8> {
        let mut entries = vec![0xfff8, END, END, END];
        let of_file = self.file.div_ceil(SECTOR);
        let last = u64::from(FILE) + of_file;
        entries.extend((u64::from(FILE) + 1..last).map(|next| u16::try_from(next).unwrap_or(END)));
        if of_file > 0 {
            entries.push(END);
        }
        entries.iter().flat_map(|entry: &u16| entry.to_le_bytes()).collect()
    }
}

fn named(mut name: [u8; 11], start: &[u8]) -> [u8; 11] {
    name[..start.len()].copy_from_slice(start);
    name
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
