//! The EFI system partition: a FAT 16 file system with one contiguous file, `/EFI/BOOT/BOOTX64.EFI` (Microsoft's FAT
//! specification 1.03; UEFI 2.10, 3.5.1.1 names the file), and where that is signed with the overlay next to it,
//! `/EFI/BOOT/BOOTX64.EFI.extra.d/anneal.cred`, which systemd's stub passes to the kernel (systemd-stub(7)).

use crate::long_name;
use crate::overlay::OVERLAY;
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
/// Clusters of the directories, and of the overlay where there is one. The program is behind them.
const EFI: u16 = 2;
const BOOT: u16 = 3;
const EXTRA: u16 = 4;
const OVERLAY_IN: u16 = 5;
const PROGRAM_ALONE: u16 = 4;
const OVERLAY_CLUSTERS: u16 = 8;
const PROGRAM_BEHIND: u16 = OVERLAY_IN + OVERLAY_CLUSTERS;
const _: () =
    assert!(OVERLAY as u64 == OVERLAY_CLUSTERS as u64 * SECTOR, "the clusters of the overlay are full");
const END: u16 = 0xffff;
const DIRECTORY: u8 = 0x10;
const ARCHIVE: u8 = 0x20;

/// Sizes, in sectors of 512 bytes where it is not said otherwise.
pub(crate) struct Layout {
    /// Bytes of the program.
    program: u64,
    /// Its first cluster.
    program_in: u16,
    clusters: u64,
    reserved: u64,
    fat: u64,
}

impl Layout {
    /// The smallest for a program of so many bytes.
    pub(crate) fn new(program: u64) -> Self {
        Self::with(program, PROGRAM_ALONE)
    }

    /// The same, with a file for the overlay next to it.
    pub(crate) fn with_overlay(program: u64) -> Self {
        Self::with(program, PROGRAM_BEHIND)
    }

    fn with(program: u64, program_in: u16) -> Self {
        let clusters = (program.div_ceil(SECTOR) + u64::from(program_in - EFI)).max(CLUSTERS_MIN);
        let fat = ((clusters + u64::from(EFI)) * 2).div_ceil(FAT_SECTOR);
        // The clusters begin at a sector of ISO 9660.
        let before = FATS * fat + ROOT_ENTRIES * ENTRY / FAT_SECTOR;
        let reserved = (before + 1).next_multiple_of(CLUSTER) - before;
        Self { program, program_in, clusters, reserved, fat }
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

    /// Where the program begins, in bytes.
    pub(crate) fn file_at(&self) -> u64 {
        self.cluster_at(self.program_in)
    }

    /// Where the overlay begins, in bytes, where there is one.
    pub(crate) fn overlay_at(&self) -> u64 {
        self.cluster_at(OVERLAY_IN)
    }

    fn has_overlay(&self) -> bool {
        self.program_in == PROGRAM_BEHIND
    }

    /// Bytes of the file system.
    pub(crate) fn length(&self) -> u64 {
        self.clusters_at() + self.clusters * SECTOR
    }

    /// All that is not zero, but for the files, by its place in bytes.
    pub(crate) fn parts(&self) -> Vec<(u64, Vec<u8>)> {
        let table = self.table();
        let first_fat = self.reserved * FAT_SECTOR;
        let empty = *b"           ";
        let mut boot = vec![
            entry(&named(empty, b"."), DIRECTORY, BOOT, 0),
            entry(&named(empty, b".."), DIRECTORY, EFI, 0),
            entry(b"BOOTX64 EFI", ARCHIVE, self.program_in, short(self.program)),
        ];
        let mut parts = vec![
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
        ];
        if self.has_overlay() {
            boot.push(long_name::entries("BOOTX64.EFI.extra.d", b"BOOTX6~1D  "));
            boot.push(entry(b"BOOTX6~1D  ", DIRECTORY, EXTRA, 0));
            let extra = [
                entry(&named(empty, b"."), DIRECTORY, EXTRA, 0),
                entry(&named(empty, b".."), DIRECTORY, BOOT, 0),
                long_name::entries("anneal.cred", b"ANNEAL~1CRE"),
                entry(b"ANNEAL~1CRE", ARCHIVE, OVERLAY_IN, short(OVERLAY as u64)),
            ];
            parts.push((self.cluster_at(EXTRA), extra.concat()));
        }
        parts.push((self.cluster_at(BOOT), boot.concat()));
        parts
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

    /// The file allocation table: the directories have a cluster each, the files all those behind them.
    fn table(&self) -> Vec<u8> {
        let mut entries = vec![0xfff8, END, END, END];
        if self.has_overlay() {
            entries.push(END);
            chain(&mut entries, OVERLAY as u64);
        }
        chain(&mut entries, self.program);
        entries.iter().flat_map(|entry: &u16| entry.to_le_bytes()).collect()
    }
}

/// The clusters of a contiguous file of so many bytes, behind those that are taken.
fn chain(entries: &mut Vec<u16>, bytes: u64) {
    for left in (0..bytes.div_ceil(SECTOR)).rev() {
        let next = u16::try_from(entries.len() + 1).unwrap_or(END);
        entries.push(if left == 0 { END } else { next });
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
