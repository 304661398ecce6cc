//! Headers of EFI programs (Microsoft PE/COFF specification, sections 2 to 4), as far as they are needed here.

/// Bytes of the header of a section.
pub(crate) const SECTION_HEADER: usize = 40;
pub(crate) const TOO_SHORT: &str = "it is too short";

/// Where the headers of a program are.
pub(crate) struct Headers {
    /// The signature `PE`, in bytes from the beginning.
    pub(crate) at: usize,
    /// Number of sections.
    pub(crate) count: usize,
    /// Bytes of the optional header.
    optional: usize,
}

/// A section as its header says.
pub(crate) struct Header {
    pub(crate) name: [u8; 8],
    /// Bytes that are loaded.
    pub(crate) length: usize,
    /// Bytes in the file, and where they begin.
    pub(crate) raw: usize,
    pub(crate) at: usize,
}

impl Headers {
    /// Of a program, or of its beginning.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn of(program: &[u8]) -> Result<Self, &'static str> {
        let at = read32(program, 0x3c).ok_or(TOO_SHORT)? as usize;
        if program.get(at..at + 4) != Some(b"PE\0\0") {
            return Err("it is no PE program");
        }
        let count = usize::from(read16(program, at + 6).ok_or(TOO_SHORT)?);
        let optional = usize::from(read16(program, at + 20).ok_or(TOO_SHORT)?);
        Ok(Self { at, count, optional })
    }

    /// The optional header.
    pub(crate) fn optional_at(&self) -> usize {
        self.at + 24
    }

    /// The header of the section with this number; of the first one that is not there for `count`.
    pub(crate) fn section_at(&self, number: usize) -> usize {
        self.optional_at() + self.optional + number * SECTION_HEADER
    }

    /// All sections whose headers are in these bytes.
    pub(crate) fn sections(&self, program: &[u8]) -> Result<Vec<Header>, &'static str> {
        let header = |number| {
            let at = self.section_at(number);
            let name = program.get(at..at + 8)?.try_into().ok()?;
            let number = |slot: usize| read32(program, at + slot).map(|number| number as usize);
            Some(Header { name, length: number(8)?, raw: number(16)?, at: number(20)? })
        };
        (0..self.count).map(|number| header(number).ok_or(TOO_SHORT)).collect()
    }
}

pub(crate) fn read16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn read32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn write32(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}
