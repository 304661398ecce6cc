//! The EFI system partition: a FAT 16 file system with one contiguous file, `/EFI/BOOT/BOOTX64.EFI` (Microsoft's FAT
//! specification 1.03; UEFI 2.10, 3.5.1.1 names the file), and where that is signed with the overlay next to it,
//! `/EFI/BOOT/BOOTX64.EFI.extra.d/anneal.cred`, which systemd's stub passes to the kernel (systemd-stub(7)). Where it is a shim, the
//! program that it starts is next to it, `/EFI/BOOT/GRUBX64.EFI`.

use crate::long_name;
use crate::overlay::OVERLAY;
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
/// Clusters of the directories, and of the overlay where there is one. The program is behind them.
const EFI: u16 = 2;
const BOOT: u16 = 3;
const EXTRA: u16 = 4;
const OVERLAY_IN: u16 = 5;
const PROGRAM_ALONE: u16 = 4;
const END: u16 = 0xffff;
const DIRECTORY: u8 = 0x10;
const ARCHIVE: u8 = 0x20;

/// Sizes, in sectors of 512 bytes where it is not said otherwise.
pub(crate) struct Layout {
    /// Bytes of the program.
    program: u64,
    /// Its first cluster.
    program_in: u16,
    /// Bytes of the program that a shim starts, which is behind it; 0: there is none.
    second: u64,
    /// Bytes of a cluster.
    cluster: u64,
    clusters: u64,
    reserved: u64,
    fat: u64,
}

impl Layout {
    /// The smallest for a program of so many bytes.
    pub(crate) fn new(program: u64) -> Self {
        Self::with(program, |_| PROGRAM_ALONE, 0)
    }

    /// The same, with a file for the overlay next to it.
    pub(crate) fn with_overlay(program: u64) -> Self {
        let behind_overlay =
            |cluster: u64| OVERLAY_IN + u16::try_from((OVERLAY as u64).div_ceil(cluster)).unwrap_or(END);
        Self::with(program, behind_overlay, 0)
    }

    /// For a shim of so many bytes, and the program that it starts.
    pub(crate) fn with_second(shim: u64, second: u64) -> Self {
        Self::with(shim, |_| PROGRAM_ALONE, second)
    }

    fn with(program: u64, program_in: impl Fn(u64) -> u16, second: u64) -> Self {
        let needed = |cluster: u64| {
            program.div_ceil(cluster) + second.div_ceil(cluster) + u64::from(program_in(cluster) - EFI)
        };
        let mut cluster = SECTOR;
        while cluster < CLUSTER_MAX && needed(cluster) > CLUSTERS_MAX {
            cluster *= 2;
        }
        let clusters = needed(cluster).max(CLUSTERS_MIN);
        let fat = ((clusters + u64::from(EFI)) * 2).div_ceil(FAT_SECTOR);
        // The clusters begin at a sector of ISO 9660.
        let before = FATS * fat + ROOT_ENTRIES * ENTRY / FAT_SECTOR;
        let reserved = (before + 1).next_multiple_of(SECTOR / FAT_SECTOR) - before;
        Self { program, program_in: program_in(cluster), second, cluster, clusters, reserved, fat }
    }

    fn root_at(&self) -> u64 {
        (self.reserved + FATS * self.fat) * FAT_SECTOR
    }

    fn clusters_at(&self) -> u64 {
        self.root_at() + ROOT_ENTRIES * ENTRY
    }

    fn cluster_at(&self, cluster: u16) -> u64 {
        self.clusters_at() + u64::from(cluster - EFI) * self.cluster
    }

    /// Where the program begins, in bytes.
    pub(crate) fn file_at(&self) -> u64 {
        self.cluster_at(self.program_in)
    }

    /// Its cluster, behind the program.
    fn second_in(&self) -> u16 {
        u16::try_from(u64::from(self.program_in) + self.program.div_ceil(self.cluster)).unwrap_or(END)
    }

    /// Where the program that a shim starts begins, in bytes, where there is one.
    pub(crate) fn second_at(&self) -> u64 {
        self.cluster_at(self.second_in())
    }

    /// Where the overlay begins, in bytes, where there is one.
    pub(crate) fn overlay_at(&self) -> u64 {
        self.cluster_at(OVERLAY_IN)
    }

    fn has_overlay(&self) -> bool {
        self.program_in != PROGRAM_ALONE
    }

    /// Bytes of the file system.
    pub(crate) fn length(&self) -> u64 {
        self.clusters_at() + self.clusters * self.cluster
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
        if self.second > 0 {
            boot.push(entry(b"GRUBX64 EFI", ARCHIVE, self.second_in(), short(self.second)));
        }
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
        let mut entries = vec![0xfff8, END, END, END];
        if self.has_overlay() {
            entries.push(END);
            self.chain(&mut entries, OVERLAY as u64);
        }
        self.chain(&mut entries, self.program);
        self.chain(&mut entries, self.second);
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
