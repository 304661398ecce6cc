//! Image formats: what a file says about each byte of the disk.

mod cluster;
mod in_order;
pub mod qcow2;
mod window;

use crate::error::ImageError;
use std::io::Read;

/// An image format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The bytes of the disk.
    Raw,
    /// QEMU's copy-on-write format, versions 2 and 3.
    Qcow2,
}

impl Format {
    /// By the first bytes of the unpacked file.
    ///
    /// # Errors
    /// A format that is known and not supported, with what to do.
    pub fn of(head: &[u8]) -> Result<Self, ImageError> {
        const OTHERS: [(&[u8], &str); 4] =
            [(b"KDMV", "VMDK"), (b"vhdxfile", "VHDX"), (b"conectix", "VHD"), (b"<<< ", "VDI")];
        if head.starts_with(qcow2::MAGIC) {
            return Ok(Format::Qcow2);
        }
        match OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
            Some((_, name)) => Err(ImageError::Format(format!(
                "{name} is not supported; convert it: qemu-img convert -O qcow2 -c IMAGE NEW"
            ))),
            None => Ok(Format::Raw),
        }
    }

    /// `raw`
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Raw => "raw",
            Format::Qcow2 => "qcow2",
        }
    }
}

/// Receives the content of the disk. Every byte of the image comes once.
pub trait Sink {
    /// The image has so many bytes, and its content comes in multiples of `unit`; comes first, where it is known.
    ///
    /// # Errors
    /// It does not fit.
    fn size(&mut self, bytes: u64, unit: usize) -> Result<(), ImageError>;

    /// These bytes are at `offset`.
    ///
    /// # Errors
    /// They cannot be taken.
    fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ImageError>;

    /// So many bytes at `offset` are zero.
    ///
    /// # Errors
    /// They cannot be taken.
    fn zero(&mut self, offset: u64, length: u64) -> Result<(), ImageError>;
}

/// Reads a part of the file other than the one that arrives, where the server can.
pub trait Ahead {
    /// Exactly these bytes of the file.
    ///
    /// # Errors
    /// They cannot be had.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ImageError>;
}

impl Ahead for image_source::Ranges<'_> {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ImageError> {
        Ok(image_source::Ranges::read(self, offset, length)?)
    }
}

/// Bytes until the buffer is full or the input ends; how many.
pub(crate) fn read_full(input: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match input.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
