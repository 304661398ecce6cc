//! The ISO 9660 file system around the others (ECMA-119), with a boot catalogue (El Torito 1.0; UEFI 2.10, 13.3.2.1).

use crate::error::{EFI_IMAGE_MAX, TemplateError};
use crate::sizes::short;
use iso9660::{Descriptor, Record, SECTOR, SYSTEM_AREA, TERMINATOR};

const LABEL: &str = "ANNEAL";
/// Label of the medium on which ironic-python-agent looks for [`PARAMETERS`], whatever its case.
const PARAMETERS_LABEL: &str = "IR-VFD-DEV";
/// Linux shows it as `parameters.txt`, as it shows all names of ISO 9660 without extensions.
const PARAMETERS: &[u8] = b"PARAMETERS.TXT;1";
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

/// What BIOS boots. Kernel and initramfs are inside the FAT, by their places there and their lengths in bytes.
pub(crate) struct Bios<'a> {
    pub(crate) isolinux: &'a [u8],
    pub(crate) configuration: &'a [u8],
    pub(crate) ldlinux: &'a [u8],
    pub(crate) kernel: (u64, u64),
    pub(crate) initrd: (u64, u64),
    /// Bytes of a file with parameters of the boot, for a ramdisk that reads them there.
    pub(crate) parameters: Option<u64>,
}

/// What UEFI boots.
pub(crate) struct Efi {
    /// Bytes of the FAT.
    pub(crate) fat: u64,
}

/// All that is not zero, but for the FAT, by its place in bytes.
pub(crate) struct Layout {
    pub(crate) parts: Vec<(u64, Vec<u8>)>,
    pub(crate) fat_at: u64,
    /// Where the file with parameters is, if there is one.
    pub(crate) parameters_at: Option<u64>,
    pub(crate) length: u64,
}

impl Layout {
    /// For UEFI, and where it is given for BIOS.
    pub(crate) fn new(efi: &Efi, bios: Option<&Bios<'_>>) -> Result<Self, TemplateError> {
        if efi.fat > EFI_IMAGE_MAX {
            return Err(TemplateError::TooLarge(efi.fat));
        }
        let mut sector = FILES;
        let mut place = |length: u64| {
            let at = sector;
            sector += length.div_ceil(SECTOR);
            at
        };
        let contents: Vec<&[u8]> =
            bios.map(|bios| vec![bios.isolinux, bios.configuration, bios.ldlinux]).unwrap_or_default();
        let places: Vec<u64> = contents.iter().map(|content| place(content.len() as u64)).collect();
        let parameters = bios.and_then(|bios| bios.parameters).map(|length| (place(length), length));
        let fat = sector;
        let sectors = fat + efi.fat.div_ceil(SECTOR);
        let extent = |(at, length): (u64, u64)| (fat + at / SECTOR, length);
        let of_bios = |bios: &Bios<'_>| -> Vec<(&'static [u8], (u64, u64))> {
            let whole = |index: usize| (places[index], contents[index].len() as u64);
            // ECMA-119, 9.3: in the order of their names.
            let mut files: Vec<(&'static [u8], (u64, u64))> = vec![
                (b"INITRD.IMG;1", extent(bios.initrd)),
                (b"ISOLINUX.BIN;1", whole(0)),
                (b"ISOLINUX.CFG;1", whole(1)),
                (b"LDLINUX.C32;1", whole(2)),
            ];
            files.extend(parameters.map(|extent| (PARAMETERS, extent)));
            files.push((b"VMLINUZ.;1", extent(bios.kernel)));
            files
        };
        let files = bios.map(of_bios).unwrap_or_default();
        let label = if parameters.is_some() { PARAMETERS_LABEL } else { LABEL };
        let isolinux_at = places.first().copied();
        let mut parts = descriptors(sectors, label, catalogue(isolinux_at, fat, efi.fat));
        let records = files.iter().map(|(name, (at, length))| record(name, *at, *length, false));
        parts.push((ROOT, root_directory(records)));
        for (index, (at, content)) in places.iter().zip(&contents).enumerate() {
            let bytes = if index == 0 { with_boot_information(content, *at)? } else { content.to_vec() };
            parts.push((*at, bytes));
        }
        Ok(Self {
            parts: parts.into_iter().map(|(at, bytes)| (at * SECTOR, bytes)).collect(),
            fat_at: fat * SECTOR,
            parameters_at: parameters.map(|(at, _)| at * SECTOR),
            length: sectors * SECTOR,
        })
    }
}

/// What is before the root directory, and the catalogue, by sector.
fn descriptors(sectors: u64, label: &str, catalogue: Vec<u8>) -> Vec<(u64, Vec<u8>)> {
    let little = path_table(short(ROOT).to_le_bytes(), 1_u16.to_le_bytes());
    vec![
        (PRIMARY, primary(sectors, label, short(little.len() as u64))),
        (BOOT_RECORD, boot_record()),
        (END_OF_DESCRIPTORS, TERMINATOR.to_vec()),
        (PATH_TABLE, little),
        (PATH_TABLE_BIG, path_table(short(ROOT).to_be_bytes(), 1_u16.to_be_bytes())),
        (CATALOGUE, catalogue),
    ]
}

fn primary(sectors: u64, label: &str, table_length: u32) -> Vec<u8> {
    let descriptor = Descriptor {
        kind: 1,
        text: &|text, length| format!("{text:length$}").into_bytes(),
        system: "",
        label,
        publisher: LABEL,
        application: LABEL,
        sectors: short(sectors),
        escapes: &[],
        table_length,
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

/// ECMA-119, 9.4: the root alone, which is its own parent.
fn path_table(at: [u8; 4], parent: [u8; 2]) -> Vec<u8> {
    [&[1, 0][..], &at, &parent, &[0, 0]].concat()
}

/// The root directory, of one sector, with these records, in the order of their names (ECMA-119, 9.3).
fn root_directory<'a>(records: impl Iterator<Item = Record<'a>>) -> Vec<u8> {
    let dots = [record(&[0], ROOT, SECTOR, true), record(&[1], ROOT, SECTOR, true)];
    dots.iter().copied().chain(records).flat_map(|record| record.bytes()).collect()
}

fn record(name: &[u8], at: u64, length: u64, is_directory: bool) -> Record<'_> {
    Record { name, sector: short(at), length: short(length), is_directory, system_use: &[] }
}

/// What BIOS boots, if anything, then what UEFI boots.
fn catalogue(isolinux: Option<u64>, fat: u64, fat_length: u64) -> Vec<u8> {
    const BOOTABLE: u8 = 0x88;
    const X86: u8 = 0;
    const EFI: u8 = 0xef;
    let mut validation = vec![1, if isolinux.is_some() { X86 } else { EFI }, 0, 0];
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
    // Sectors of 512 bytes, in 16 bits. Where they do not fit, 1: then it goes to the end of the medium (UEFI 2.10, 13.3.2.1), and
    // it is the last on it.
    let efi_sectors = u16::try_from(fat_length.div_ceil(512)).unwrap_or(1);
    let Some(isolinux) = isolinux else { return [validation, entry(efi_sectors, fat)].concat() };
    let mut header = vec![0x91, EFI, 1, 0];
    header.resize(32, 0);
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
