//! The disk: writes as it wants them, and reads past all caches.

use crate::error::ImageError;
use block::Target;
use block::aligned::{Aligned, ZEROES_LENGTH, zeroes};
use std::io;

fn failed(disk: &dyn Target, what: &str, length: usize, offset: u64, source: io::Error) -> ImageError {
    ImageError::Disk { disk: disk.name(), what: format!("{what} of {length} bytes"), offset, source }
}

/// Writes all of `bytes`, which is aligned.
pub(super) fn write_all(disk: &dyn Target, mut bytes: &[u8], mut offset: u64) -> Result<(), ImageError> {
    while !bytes.is_empty() {
        match disk.write_at(bytes, offset) {
            Ok(0) => return Err(failed(disk, "write", bytes.len(), offset, io::ErrorKind::WriteZero.into())),
            Ok(count) => (bytes, offset) = (&bytes[count..], offset + count as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(disk, "write", bytes.len(), offset, error)),
        }
    }
    Ok(())
}

/// Fills `buffer`, which is aligned.
pub(super) fn read(disk: &dyn Target, buffer: &mut [u8], mut offset: u64) -> Result<(), ImageError> {
    let mut done = 0;
    while done < buffer.len() {
        let length = buffer.len() - done;
        match disk.read_at(&mut buffer[done..], offset) {
            Ok(0) => return Err(failed(disk, "read", length, offset, io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => (done, offset) = (done + count, offset + count as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(disk, "read", length, offset, error)),
        }
    }
    Ok(())
}

/// Makes a range of whole sectors zero, by the disk's own means where it has them.
pub(super) fn zero(disk: &dyn Target, offset: u64, length: u64) -> Result<(), ImageError> {
    if disk.zero_out(offset, length).is_ok() {
        return Ok(());
    }
    let mut done = 0;
    while done < length {
        let count = usize::try_from(length - done).unwrap_or(ZEROES_LENGTH).min(ZEROES_LENGTH);
        write_all(disk, &zeroes()[..count], offset + done)?;
        done += count as u64;
    }
    Ok(())
}

/// Writes bytes that begin and end anywhere: the rest of their sectors stays.
pub(super) fn patch(disk: &dyn Target, bytes: &[u8], offset: u64) -> Result<(), ImageError> {
    let sector = u64::from(disk.logical_block());
    let start = offset / sector * sector;
    let end = (offset + bytes.len() as u64).next_multiple_of(sector);
    let length = |bytes: u64| usize::try_from(bytes).map_err(|_| ImageError::Internal("a length".to_owned()));
    let mut buffer = Aligned::new(length(end - start)?);
    let edge = length(sector)?;
    let last = buffer.len() - edge;
    read(disk, &mut buffer[..edge], start)?;
    read(disk, &mut buffer[last..], end - sector)?;
    let at = length(offset - start)?;
    buffer[at..at + bytes.len()].copy_from_slice(bytes);
    write_all(disk, &buffer, start)
}

/// The bytes of any place.
pub(super) fn bytes(disk: &dyn Target, offset: u64, length: usize) -> Result<Vec<u8>, ImageError> {
    let sector = u64::from(disk.logical_block());
    let start = offset / sector * sector;
    let end = (offset + length as u64).next_multiple_of(sector);
    let whole = usize::try_from(end - start).map_err(|_| ImageError::Internal("a length".to_owned()))?;
    let mut buffer = Aligned::new(whole);
    read(disk, &mut buffer, start)?;
    let at = whole - usize::try_from(end - offset).unwrap_or(whole);
    Ok(buffer[at..at + length].to_vec())
}

/// Makes everything durable.
pub(super) fn flush(disk: &dyn Target) -> Result<(), ImageError> {
    disk.flush().map_err(|source| ImageError::Disk {
        disk: disk.name(),
        what: "flush".to_owned(),
        offset: 0,
        source,
    })
}
