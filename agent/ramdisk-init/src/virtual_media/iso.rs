//! A file of an ISO 9660 file system (ECMA-119), by the names of its primary volume: an Ironic makes it so that names of up to
//! 31 characters stand there as they are, in capital letters. Nothing that is read is trusted.

use super::source::{Source, number32};
use std::io;

const SECTOR: usize = 2048;
const SECTOR_BYTES: u64 = 2048;
/// The primary volume descriptor is the first, at this sector.
const DESCRIPTOR: u64 = 16;
/// Most bytes of a directory that are looked at.
const DIRECTORY_MAX: u32 = 1 << 20;
const DIRECTORY: u8 = 2;
/// Bytes of a record before its name.
const HEAD: usize = 33;

/// A file system.
pub(super) struct Iso<'a, S: ?Sized> {
    source: &'a S,
    label: String,
    publisher: String,
    root: Extent,
}

/// Where a file or a directory is.
#[derive(Clone, Copy)]
struct Extent {
    sector: u32,
    length: u32,
    is_directory: bool,
}

impl<'a, S: Source + ?Sized> Iso<'a, S> {
    /// The file system on this medium; `None` where there is another, or none.
    pub(super) fn of(source: &'a S) -> io::Result<Option<Self>> {
        let descriptor = match source.bytes(DESCRIPTOR * SECTOR_BYTES, SECTOR) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        };
        if !descriptor.starts_with(b"\x01CD001\x01") {
            return Ok(None);
        }
        let text = |from: usize, length: usize| {
            String::from_utf8_lossy(&descriptor[from..from + length]).trim_end_matches(['\0', ' ']).to_owned()
        };
        let (label, publisher) = (text(40, 32), text(318, 128));
        Ok(Some(Self { source, label, publisher, root: extent(&descriptor[156..190]) }))
    }

    /// Its label, without blanks at the end.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Its publisher, without blanks at the end.
    pub(super) fn publisher(&self) -> &str {
        &self.publisher
    }

    /// The file at this path, whatever the case of its names; `None` where there is none.
    ///
    /// # Errors
    /// It is longer than `most` bytes, or cannot be read.
    pub(super) fn file(&self, path: &str, most: u32) -> Result<Option<Vec<u8>>, String> {
        let unreadable = |error: io::Error| format!("{path} cannot be read: {error}");
        let mut at = self.root;
        for name in path.split('/') {
            if !at.is_directory {
                return Ok(None);
            }
            let directory = self.bytes(at, at.length.min(DIRECTORY_MAX)).map_err(unreadable)?;
            match find(&directory, name) {
                Some(found) => at = found,
                None => return Ok(None),
            }
        }
        if at.is_directory {
            return Ok(None);
        }
        if at.length > most {
            return Err(format!("{path} has {} bytes of at most {most}", at.length));
        }
        self.bytes(at, at.length).map(Some).map_err(unreadable)
    }

    fn bytes(&self, at: Extent, length: u32) -> io::Result<Vec<u8>> {
        let count = usize::try_from(length).map_err(io::Error::other)?;
        self.source.bytes(u64::from(at.sector) * SECTOR_BYTES, count)
    }
}

/// The place that a record of a directory names.
fn extent(record: &[u8]) -> Extent {
    Extent {
        sector: number32(record, 2),
        length: number32(record, 10),
        is_directory: record[25] & DIRECTORY != 0,
    }
}

/// The file or directory of this name. No record crosses the end of a sector; what is left of it is zero.
fn find(directory: &[u8], name: &str) -> Option<Extent> {
    for sector in directory.chunks(SECTOR) {
        let mut left = sector;
        while let Some(length) = left.first().map(|length| usize::from(*length)).filter(|it| *it > HEAD) {
            let record = left.get(..length)?;
            let end = HEAD + usize::from(record[32]);
            let shown = String::from_utf8_lossy(record.get(HEAD..end)?);
            // `NAME.EXT;1`, and `NAME.;1` of a name without a dot.
            let shown = shown.split(';').next().unwrap_or_default().trim_end_matches('.');
            if shown.eq_ignore_ascii_case(name) {
                return Some(extent(record));
            }
            left = &left[length..];
        }
    }
    None
}
