//! EFI programs: their sections, and the digest that a firmware measures and that a signature covers (Microsoft PE/COFF
//! specification; Windows Authenticode Portable Executable Signature Format 1.0, "Calculating the PE Image Hash").

use crate::digest::Digest;

const PE32_PLUS: u16 = 0x20b;
/// From the beginning of the optional header.
const CHECKSUM: usize = 64;
/// Its entry among the data directories of a PE32+ program, from the beginning of the optional header.
const CERTIFICATES: usize = 112 + 4 * 8;
/// Bytes of the header of a section.
const SECTION: usize = 40;

/// A program in a file.
pub(crate) struct Program<'a> {
    bytes: &'a [u8],
    optional: usize,
    sections: Vec<Section<'a>>,
}

/// A section.
pub(crate) struct Section<'a> {
    pub(crate) name: &'a [u8],
    /// Bytes that are loaded.
    length: usize,
    raw: usize,
    at: usize,
}

const SHORT: &str = "it ends too early";

impl<'a> Program<'a> {
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let at = read32(bytes, 0x3c)?;
        if bytes.get(at..at + 4) != Some(b"PE\0\0") {
            return Err("it is no EFI program");
        }
        let optional = at + 24;
        if read16(bytes, optional)? != PE32_PLUS {
            return Err("it is no program for a 64-bit machine");
        }
        let table = optional + usize::from(read16(bytes, at + 20)?);
        let count = usize::from(read16(bytes, at + 6)?);
        let section = |number: usize| {
            let at = table + number * SECTION;
            let name = bytes.get(at..at + 8).ok_or(SHORT)?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let (length, raw, at) =
                (read32(bytes, at + 8)?, read32(bytes, at + 16)?, read32(bytes, at + 20)?);
            Ok(Section { name, length, raw, at })
        };
        let sections = (0..count).map(section).collect::<Result<_, _>>()?;
        Ok(Self { bytes, optional, sections })
    }

    /// What is loaded of the section with this name. `None` without one; two of a name are an error.
    pub(crate) fn section(&self, name: &[u8]) -> Result<Option<&'a [u8]>, &'static str> {
        let mut found = self.sections.iter().filter(|section| section.name == name);
        let Some(section) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err("it has two sections of one name");
        }
        if section.length > section.raw {
            return Err("a section is longer than its bytes in the file");
        }
        self.bytes.get(section.at..section.at + section.length).map(Some).ok_or(SHORT)
    }

    pub(crate) fn digest(&self) -> Result<Digest, &'static str> {
        let part = |from: usize, to: usize| self.bytes.get(from..to).ok_or(SHORT);
        let (checksum, entry) = (self.optional + CHECKSUM, self.optional + CERTIFICATES);
        let headers = read32(self.bytes, self.optional + 60)?;
        let certificates = read32(self.bytes, entry + 4)?;
        let mut parts = vec![part(0, checksum)?, part(checksum + 4, entry)?, part(entry + 8, headers)?];
        let mut sections: Vec<&Section> = self.sections.iter().filter(|section| section.raw > 0).collect();
        sections.sort_by_key(|section| section.at);
        let mut hashed = headers;
        for section in sections {
            parts.push(part(section.at, section.at.saturating_add(section.raw))?);
            hashed = hashed.saturating_add(section.raw);
        }
        // What is behind the sections, but for the signatures at the end.
        if let Some(end) = self.bytes.len().checked_sub(certificates).filter(|end| *end > hashed) {
            parts.push(part(hashed, end)?);
        }
        Ok(Digest::of_all(&parts))
    }
}

fn read16(bytes: &[u8], at: usize) -> Result<u16, &'static str> {
    let two = bytes.get(at..at.saturating_add(2)).and_then(|two| two.try_into().ok());
    two.map(u16::from_le_bytes).ok_or(SHORT)
}

fn read32(bytes: &[u8], at: usize) -> Result<usize, &'static str> {
    let four = bytes.get(at..at.saturating_add(4)).and_then(|four| four.try_into().ok());
    four.map(|four| u32::from_le_bytes(four) as usize).ok_or(SHORT)
}
