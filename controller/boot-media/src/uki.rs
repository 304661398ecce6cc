//! The EFI program: systemd's stub with kernel, command line and initramfs as sections of it (a unified kernel image;
//! Microsoft PE/COFF specification, sections 2 to 4).

use crate::error::TemplateError;
use crate::overlay::OVERLAY;
use crate::program_headers::{self, Headers, SECTION_HEADER};
use crate::sizes::{Sizes, short};
use iso9660::SECTOR;

/// Sections are loaded at multiples of this.
const PAGE: u64 = 4096;
/// Initialised data that can be read (`IMAGE_SCN_CNT_INITIALIZED_DATA | IMAGE_SCN_MEM_READ`).
const READ_ONLY_DATA: u32 = 0x4000_0040;
pub(crate) const OS_RELEASE: &str = "ID=anneal\nNAME=Anneal\nPRETTY_NAME=\"Anneal ramdisk\"\n";

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

/// A section that is added.
pub(crate) struct Section {
    name: &'static [u8; 8],
    /// Its place in the file, in bytes.
    pub(crate) at: u64,
    /// Bytes.
    pub(crate) length: u64,
}

/// The sections behind the first `end` bytes of the program, each at a multiple of `alignment`.
pub(crate) fn place<const COUNT: usize>(
    mut end: u64,
    alignment: u64,
    lengths: [(&'static [u8; 8], u64); COUNT],
) -> [Section; COUNT] {
    lengths.map(|(name, length)| {
        let at = end.next_multiple_of(alignment);
        end = at + length;
        Section { name, at, length }
    })
}

impl Layout {
    pub(crate) fn new(stub: &[u8], sizes: &Sizes, arguments: &str) -> Result<Self, TemplateError> {
        let archives: u64 = sizes.archives.iter().sum();
        let overlay_in = archives.next_multiple_of(4);
        let lengths = [
            (b".osrel\0\0", OS_RELEASE.len() as u64),
            (b".cmdline", arguments.len() as u64),
            (b".linux\0\0", sizes.kernel),
            (b".initrd\0", overlay_in + OVERLAY as u64),
        ];
        let sections = place(stub.len() as u64, SECTOR, lengths);
        let program = add_sections(stub, &sections, SECTOR)?;
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

/// The stub with the headers of more sections, each of which fills a multiple of `alignment` in the file.
pub(crate) fn add_sections(
    stub: &[u8],
    sections: &[Section],
    alignment: u64,
) -> Result<Vec<u8>, TemplateError> {
    use TemplateError::Stub;
    let mut program = stub.to_vec();
    let headers = Headers::of(&program).map_err(Stub)?;
    let image_size_at = headers.optional_at() + 56;
    let image_size =
        program_headers::read32(&program, image_size_at).ok_or(Stub(program_headers::TOO_SHORT))?;
    let headers_size = program_headers::read32(&program, image_size_at + 4)
        .ok_or(Stub(program_headers::TOO_SHORT))? as usize;
    let table = headers.section_at(headers.count);
    let table_end = table + sections.len() * SECTION_HEADER;
    // A section header that is not all zeros is data of the program.
    let is_free = program.get(table..table_end).is_some_and(|room| room.iter().all(|byte| *byte == 0));
    if table_end > headers_size || !is_free {
        return Err(Stub("its header has no room for four more sections"));
    }
    let mut address = u64::from(image_size).next_multiple_of(PAGE);
    for (index, section) in sections.iter().enumerate() {
        let at = table + index * SECTION_HEADER;
        let raw = section.length.next_multiple_of(alignment);
        let numbers = [section.length, address, raw, section.at].map(short);
        program[at..at + 8].copy_from_slice(section.name);
        for (slot, number) in numbers.iter().enumerate() {
            program_headers::write32(&mut program, at + 8 + 4 * slot, *number);
        }
        program_headers::write32(&mut program, at + 36, READ_ONLY_DATA);
        address = (address + section.length).next_multiple_of(PAGE);
    }
    let total =
        u16::try_from(headers.count + sections.len()).map_err(|_| Stub("it has too many sections"))?;
    program[headers.at + 6..headers.at + 8].copy_from_slice(&total.to_le_bytes());
    program_headers::write32(&mut program, image_size_at, short(address));
    Ok(program)
}
