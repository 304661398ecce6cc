//! The EFI program: systemd's stub with kernel, command line and initramfs as sections of it (a unified kernel image;
//! Microsoft PE/COFF specification, sections 2 to 4).

use crate::error::TemplateError;
use crate::overlay::OVERLAY;
use crate::sizes::{Sizes, short};
use iso9660::SECTOR;

/// Sections are loaded at multiples of this.
const PAGE: u64 = 4096;
const SECTION_HEADER: usize = 40;
/// Initialised data that can be read (`IMAGE_SCN_CNT_INITIALIZED_DATA | IMAGE_SCN_MEM_READ`).
const READ_ONLY_DATA: u32 = 0x4000_0040;
const OS_RELEASE: &str = "ID=anneal\nNAME=Anneal\nPRETTY_NAME=\"Anneal ramdisk\"\n";

/// Where the parts of the program are, in bytes from its beginning.
pub(crate) struct Layout {
    /// What does not come from elsewhere.
    pub(crate) parts: Vec<(u64, Vec<u8>)>,
    pub(crate) kernel_at: u64,
    pub(crate) initrd_at: u64,
    /// Inside the initrd, behind the archives: at a multiple of 4 from its beginning, where the kernel looks for a header.
    pub(crate) overlay_at: u64,
    pub(crate) length: u64,
}

struct Section {
    name: &'static [u8; 8],
    at: u64,
    length: u64,
}

impl Layout {
    pub(crate) fn new(stub: &[u8], sizes: &Sizes, arguments: &str) -> Result<Self, TemplateError> {
        let mut end = stub.len() as u64;
        let mut place = |name: &'static [u8; 8], length: u64| {
            let at = end.next_multiple_of(SECTOR);
            end = at + length;
            Section { name, at, length }
        };
        let archives: u64 = sizes.archives.iter().sum();
        let overlay_in = archives.next_multiple_of(4);
        let sections = [
            place(b".osrel\0\0", OS_RELEASE.len() as u64),
            place(b".cmdline", arguments.len() as u64),
            place(b".linux\0\0", sizes.kernel),
            place(b".initrd\0", overlay_in + OVERLAY as u64),
        ];
        let program = add_sections(stub, &sections)?;
        let [release, command_line, kernel, initrd] = &sections;
        Ok(Self {
            parts: vec![(0, program), (release.at, OS_RELEASE.into()), (command_line.at, arguments.into())],
            kernel_at: kernel.at,
            initrd_at: initrd.at,
            overlay_at: initrd.at + overlay_in,
            length: (initrd.at + initrd.length).next_multiple_of(SECTOR),
        })
    }

    pub(crate) fn initrd_length(&self) -> u64 {
        self.overlay_at - self.initrd_at + OVERLAY as u64
    }
}

/// The stub with the headers of more sections.
fn add_sections(stub: &[u8], sections: &[Section]) -> Result<Vec<u8>, TemplateError> {
    use TemplateError::Stub;
    let mut program = stub.to_vec();
    let header = read32(&program, 0x3c).ok_or(Stub("it is too short"))? as usize;
    if program.get(header..header + 4) != Some(b"PE\0\0") {
        return Err(Stub("it is no PE program"));
    }
    let count = usize::from(read16(&program, header + 6).ok_or(Stub("it is too short"))?);
    let optional = usize::from(read16(&program, header + 20).ok_or(Stub("it is too short"))?);
    let image_size_at = header + 24 + 56;
    let image_size = read32(&program, image_size_at).ok_or(Stub("it is too short"))?;
    let headers_size = read32(&program, image_size_at + 4).ok_or(Stub("it is too short"))? as usize;
    let table = header + 24 + optional + count * SECTION_HEADER;
    let table_end = table + sections.len() * SECTION_HEADER;
    // A section header that is not all zeros is data of the program.
    let is_free = program.get(table..table_end).is_some_and(|room| room.iter().all(|byte| *byte == 0));
    if table_end > headers_size || !is_free {
        return Err(Stub("its header has no room for four more sections"));
    }
    let mut address = u64::from(image_size).next_multiple_of(PAGE);
    for (index, section) in sections.iter().enumerate() {
        let at = table + index * SECTION_HEADER;
        let raw = section.length.next_multiple_of(SECTOR);
        let numbers = [section.length, address, raw, section.at].map(short);
        program[at..at + 8].copy_from_slice(section.name);
        for (slot, number) in numbers.iter().enumerate() {
            write32(&mut program, at + 8 + 4 * slot, *number);
        }
        write32(&mut program, at + 36, READ_ONLY_DATA);
        address = (address + section.length).next_multiple_of(PAGE);
    }
    let total = u16::try_from(count + sections.len()).map_err(|_| Stub("it has too many sections"))?;
    program[header + 6..header + 8].copy_from_slice(&total.to_le_bytes());
    write32(&mut program, image_size_at, short(address));
    Ok(program)
}

fn read16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn read32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn write32(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}
