//! The ISO 9660 file system around the others (ECMA-119), with a boot catalogue (El Torito 1.0; UEFI 2.10, 13.3.2.1).

use crate::error::{EFI_IMAGE_MAX, TemplateError};
use crate::sizes::short;
use iso9660::{Descriptor, Record, SECTOR, SYSTEM_AREA, TERMINATOR};

const LABEL: &str = "ANNEAL";
/// Sectors: what lies before the files.
const PRIMARY: u64 = SYSTEM_AREA;
const BOOT_RECORD: u64 = 17;
const END_OF_DESCRIPTORS: u64 = 18;
const PATH_TABLE: u64 = 19;
const PATH_TABLE_BIG: u64 = 20;
const ROOT: u64 = 21;
const CATALOGUE: u64 = 22;
const FILES: u64 = 23;
/// The boot information table of isolinux begins here, and is so long.
const BOOT_INFORMATION: usize = 8;
const BOOT_INFORMATION_LENGTH: usize = 56;

/// What is inside the FAT, by its place there and its length in bytes.
pub(crate) struct EfiImage {
    /// Bytes of the FAT.
    pub(crate) fat: u64,
    pub(crate) kernel: (u64, u64),
    pub(crate) initrd: (u64, u64),
}

/// All that is not zero, but for the FAT, by its place in bytes.
pub(crate) struct Layout {
    pub(crate) parts: Vec<(u64, Vec<u8>)>,
    pub(crate) fat_at: u64,
    pub(crate) length: u64,
}

impl Layout {
    pub(crate) fn new(
        isolinux: &[u8],
        configuration: &[u8],
        ldlinux: &[u8],
        efi: EfiImage,
    ) -> Result<Self, TemplateError> {
        if efi.fat > EFI_IMAGE_MAX {
            return Err(TemplateError::TooLarge(efi.fat));
        }
        let mut sector = FILES;
        let mut place = |length: usize| {
            let at = sector;
            sector += (length as u64).div_ceil(SECTOR);
            at
        };
        let isolinux_at = place(isolinux.len());
        let configuration_at = place(configuration.len());
        let ldlinux_at = place(ldlinux.len());
        let fat = sector;
        let sectors = fat + efi.fat.div_ceil(SECTOR);
        let extent = |(at, length): (u64, u64)| (fat + at / SECTOR, length);
        // ECMA-119, 9.3: in the order of their names.
        let files: [(&[u8], (u64, u64)); 5] = [
            (b"INITRD.IMG;1", extent(efi.initrd)),
            (b"ISOLINUX.BIN;1", (isolinux_at, isolinux.len() as u64)),
            (b"ISOLINUX.CFG;1", (configuration_at, configuration.len() as u64)),
            (b"LDLINUX.C32;1", (ldlinux_at, ldlinux.len() as u64)),
            (b"VMLINUZ.;1", extent(efi.kernel)),
        ];
        let parts = vec![
            (PRIMARY, primary(sectors)),
            (BOOT_RECORD, boot_record()),
            (END_OF_DESCRIPTORS, TERMINATOR.to_vec()),
            (PATH_TABLE, path_table(short(ROOT).to_le_bytes(), 1_u16.to_le_bytes())),
            (PATH_TABLE_BIG, path_table(short(ROOT).to_be_bytes(), 1_u16.to_be_bytes())),
            (ROOT, root(&files)),
            (CATALOGUE, catalogue(isolinux_at, fat, efi.fat)),
            (isolinux_at, with_boot_information(isolinux, isolinux_at)?),
            (configuration_at, configuration.to_vec()),
            (ldlinux_at, ldlinux.to_vec()),
        ];
        Ok(Self {
            parts: parts.into_iter().map(|(at, bytes)| (at * SECTOR, bytes)).collect(),
            fat_at: fat * SECTOR,
            length: sectors * SECTOR,
        })
    }
}

fn primary(sectors: u64) -> Vec<u8> {
    let table = path_table(short(ROOT).to_le_bytes(), 1_u16.to_le_bytes());
    let descriptor = Descriptor {
        kind: 1,
        text: &|text, length| format!("{text:length$}").into_bytes(),
        system: "",
        label: LABEL,
        publisher: LABEL,
        application: LABEL,
        sectors: short(sectors),
        escapes: &[],
        table_length: short(table.len() as u64),
        tables: (short(PATH_TABLE), short(PATH_TABLE_BIG)),
        root: record(&[0], ROOT, SECTOR, true),
    };
    descriptor.bytes()
}

fn boot_record() -> Vec<u8> {
    let mut out = b"\0CD001\x01EL TORITO SPECIFICATION".to_vec();
    out.resize(0x47, 0);
    out.extend(short(CATALOGUE).to_le_bytes());
    out
}

/// The only directory is the root.
fn path_table(root: [u8; 4], number: [u8; 2]) -> Vec<u8> {
    [&[1, 0][..], &root, &number, &[0, 0]].concat()
}

fn root(files: &[(&[u8], (u64, u64))]) -> Vec<u8> {
    let mut out = record(&[0], ROOT, SECTOR, true).bytes();
    out.extend(record(&[1], ROOT, SECTOR, true).bytes());
    for (name, (at, length)) in files {
        out.extend(record(name, *at, *length, false).bytes());
    }
    out
}

fn record(name: &[u8], at: u64, length: u64, is_directory: bool) -> Record<'_> {
    Record { name, sector: short(at), length: short(length), is_directory, system_use: &[] }
}

/// What BIOS boots, then what UEFI boots.
fn catalogue(isolinux: u64, fat: u64, fat_length: u64) -> Vec<u8> {
    const BOOTABLE: u8 = 0x88;
    const EFI: u8 = 0xef;
    let mut validation = vec![1, 0, 0, 0];
    validation.extend(format!("{LABEL:\0<24}").as_bytes());
    validation.extend([0, 0, 0x55, 0xaa]);
    let sum = validation
        .chunks(2)
        .fold(0_u16, |sum, pair| sum.wrapping_add(u16::from_le_bytes([pair[0], pair[1]])));
    validation[28..30].copy_from_slice(&sum.wrapping_neg().to_le_bytes());
    let entry = |sectors: u16, at: u64| {
        let mut entry = vec![BOOTABLE, 0, 0, 0, 0, 0];
        entry.extend(sectors.to_le_bytes());
        entry.extend(short(at).to_le_bytes());
        entry.resize(32, 0);
        entry
    };
    let mut header = vec![0x91, EFI, 1, 0];
    header.resize(32, 0);
    let efi_sectors = u16::try_from(fat_length.div_ceil(512)).unwrap_or(u16::MAX);
    [validation, entry(4, isolinux), header, entry(efi_sectors, fat)].concat()
}

/// isolinux finds itself and the descriptor by a table in its own image (mkisofs(8), `-boot-info-table`).
fn with_boot_information(isolinux: &[u8], at: u64) -> Result<Vec<u8>, TemplateError> {
    let end = BOOT_INFORMATION + BOOT_INFORMATION_LENGTH;
    if isolinux.len() < end {
        return Err(TemplateError::Isolinux);
    }
    let mut out = isolinux.to_vec();
    let words = out[end..].chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    });
    let checksum = words.fold(0_u32, u32::wrapping_add);
    out[BOOT_INFORMATION..end].fill(0);
    let table = [short(PRIMARY), short(at), short(isolinux.len() as u64), checksum];
    for (index, number) in table.iter().enumerate() {
        let at = BOOT_INFORMATION + 4 * index;
        out[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    Ok(out)
}
