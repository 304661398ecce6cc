//! What ISO 9660 file systems are made of (ECMA-119): directory records, volume descriptors, numbers in both byte orders. All is
//! of one date, so that the same content gives the same bytes.

/// Bytes of a sector, which is a logical block here too.
pub const SECTOR: u64 = 2048;
/// Sectors before the volume descriptors, for the use of the system (ECMA-119, 6.2.1).
pub const SYSTEM_AREA: u64 = 16;
/// Ends the volume descriptors (ECMA-119, 8.3).
pub const TERMINATOR: &[u8] = b"\xffCD001\x01";
/// 1 January 2000, UTC, as a record has it (ECMA-119, 9.1.5).
pub const DATE: [u8; 7] = [100, 1, 1, 0, 0, 0, 0];
/// The same date as a descriptor has it (ECMA-119, 8.4.26.1), and none.
const LONG_DATE: &[u8; 17] = b"2000010100000000\0";
const NO_DATE: &[u8; 17] = b"0000000000000000\0";

/// A number in both byte orders (ECMA-119, 7.2.3).
pub fn both16(number: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (number.to_le_bytes(), number.to_be_bytes());
    [a, b, c, d]
}

/// A number in both byte orders (ECMA-119, 7.3.3).
pub fn both32(number: u32) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (number.to_le_bytes(), number.to_be_bytes());
    [a, b, c, d, e, f, g, h]
}

/// An entry of a directory (ECMA-119, 9.1).
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// `[0]` is the directory itself, `[1]` the one above.
    pub name: &'a [u8],
    /// First sector.
    pub sector: u32,
    /// Bytes.
    pub length: u32,
    /// Of a directory, not of a file.
    pub is_directory: bool,
    /// What follows for systems that know of it, such as Rock Ridge.
    pub system_use: &'a [u8],
}

impl Record<'_> {
    /// The bytes. The record is at most 255 bytes long.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0, 0];
        out.extend(both32(self.sector));
        out.extend(both32(self.length));
        out.extend(DATE);
        out.extend([if self.is_directory { 2 } else { 0 }, 0, 0]);
        out.extend(both16(1));
        out.push(byte(self.name.len()));
        out.extend(self.name);
        pad(&mut out);
        out.extend(self.system_use);
        pad(&mut out);
        out[0] = byte(out.len());
        out
    }
}

/// A volume descriptor (ECMA-119, 8.4 and 8.5) of a volume that is the only one of its set.
pub struct Descriptor<'a> {
    /// 1 is the primary descriptor, 2 a supplementary one.
    pub kind: u8,
    /// A text, padded to so many bytes, in the characters of this descriptor.
    pub text: &'a dyn Fn(&str, usize) -> Vec<u8>,
    /// System identifier.
    pub system: &'a str,
    /// Volume identifier: the label.
    pub label: &'a str,
    /// Publisher identifier.
    pub publisher: &'a str,
    /// Application identifier.
    pub application: &'a str,
    /// Sectors of the volume.
    pub sectors: u32,
    /// Which characters a supplementary descriptor has, or nothing.
    pub escapes: &'a [u8],
    /// Bytes of a path table.
    pub table_length: u32,
    /// First sector of the path table with the least byte first, and of that with the greatest first.
    pub tables: (u32, u32),
    /// The record of the root directory.
    pub root: Record<'a>,
}

impl Descriptor<'_> {
    /// The bytes, up to the part that is for applications.
    pub fn bytes(&self) -> Vec<u8> {
        const SECTOR_SIZE: u16 = 2048;
        let text = self.text;
        let mut escapes = [0; 32];
        escapes[..self.escapes.len()].copy_from_slice(self.escapes);
        let mut out = vec![self.kind];
        out.extend(b"CD001\x01\0");
        out.extend(text(self.system, 32));
        out.extend(text(self.label, 32));
        out.extend([0; 8]);
        out.extend(both32(self.sectors));
        out.extend(escapes);
        out.extend([both16(1), both16(1), both16(SECTOR_SIZE)].concat());
        out.extend(both32(self.table_length));
        out.extend(self.tables.0.to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.tables.1.to_be_bytes());
        out.extend([0; 4]);
        out.extend(self.root.bytes());
        // Volume set, publisher, preparer, application; files of copyright, of an abstract, of a bibliography.
        for (length, value) in [(128, ""), (128, self.publisher), (128, ""), (128, self.application)] {
            out.extend(text(value, length));
        }
        out.extend(text("", 37).repeat(3));
        // Created and changed; it neither expires nor becomes effective.
        out.extend(LONG_DATE.repeat(2));
        out.extend(NO_DATE.repeat(2));
        out.push(1);
        out
    }
}

/// To an even length.
fn pad(bytes: &mut Vec<u8>) {
    if bytes.len() % 2 == 1 {
        bytes.push(0);
    }
}

fn byte(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_an_even_length_that_it_names() {
        for (name, system_use) in [(&b"A.TXT;1"[..], &b""[..]), (b"AB.TXT;1", b"RRR"), (&[0], b"SP")] {
            let record = Record { name, sector: 0x0102_0304, length: 5, is_directory: false, system_use };
            let bytes = record.bytes();
            assert_eq!(usize::from(bytes[0]), bytes.len());
            assert_eq!(bytes.len() % 2, 0);
            assert_eq!(bytes[2..10], [4, 3, 2, 1, 1, 2, 3, 4]);
            assert_eq!(bytes[33..33 + name.len()], *name);
        }
    }

    #[test]
    fn a_descriptor_ends_where_the_part_for_applications_begins() {
        let text = |text: &str, length: usize| format!("{text:length$}").into_bytes();
        let root = Record { name: &[0], sector: 21, length: 2048, is_directory: true, system_use: &[] };
        let descriptor = Descriptor {
            kind: 1,
            text: &text,
            system: "",
            label: "LABEL",
            publisher: "",
            application: "",
            sectors: 23,
            escapes: &[],
            table_length: 10,
            tables: (19, 20),
            root,
        };
        let bytes = descriptor.bytes();
        assert_eq!(bytes.len(), 882);
        assert_eq!(bytes[40..46], *b"LABEL ");
        assert_eq!(bytes[156..158], [34, 0]);
    }
}
