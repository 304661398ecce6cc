//! qcow2 files, with clusters of any size, given to a disk of 16 MiB.

use image_writer::ImageError;
use image_writer::format::{Ahead, Sink, qcow2};

const SIZE: u64 = 16 << 20;

struct Disk {
    size: Option<u64>,
    covered: u64,
}

impl Sink for Disk {
    fn size(&mut self, bytes: u64, _: usize) -> Result<(), ImageError> {
        self.size = Some(bytes);
        if bytes > SIZE { Err(ImageError::Format("too large".to_owned())) } else { Ok(()) }
    }
    fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ImageError> {
        self.zero(offset, bytes.len() as u64)
    }
    fn zero(&mut self, offset: u64, length: u64) -> Result<(), ImageError> {
        let end = offset.checked_add(length).expect("no overflow");
        assert!(self.size.is_some_and(|size| end <= size), "{offset}+{length} is not on the disk");
        self.covered += length;
        Ok(())
    }
}

struct Ranges<'a>(&'a [u8]);

impl Ahead for Ranges<'_> {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ImageError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = start.checked_add(length).and_then(|end| self.0.get(start..end));
        part.map(<[u8]>::to_vec).ok_or_else(|| ImageError::Format("beyond the end".to_owned()))
    }
}

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let mut file = qcow2::MAGIC.to_vec();
    file.extend_from_slice(input);
    let ranges = Ranges(&file);
    for ahead in [None, Some(&ranges as &dyn Ahead)] {
        let mut disk = Disk { size: None, covered: 0 };
        let failed = |error: std::io::Error| ImageError::Format(error.to_string());
        if qcow2::place(&mut &file[..], &mut disk, ahead, &failed).is_ok() {
            assert_eq!(Some(disk.covered), disk.size, "every byte comes once");
        }
    }
}
