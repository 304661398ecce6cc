//! What the erase engine needs of a disk. [`crate::Device`] is the real one, [`crate::fake::FakeDisk`] one with
//! faults.

use crate::drive::Drive;
use crate::fault::Fault;
use crate::nvme::SecureErase;
use crate::signature::Signature;
use crate::temperature::Temperature;
use std::io;

/// A disk that may be erased.
pub trait Target: Sync {
    /// Name for messages: `/dev/sda (serial S1)`.
    fn name(&self) -> String;

    /// Size in bytes.
    fn size(&self) -> u64;

    /// Logical sector size in bytes.
    fn logical_block(&self) -> u32;

    /// How many requests to keep in flight, 1 or more.
    fn lanes(&self) -> usize {
        2
    }

    /// Read from the medium, past all caches of this machine. May be short.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Write to the medium. May be short.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize>;

    /// Make a range read as zeroes by the device's own means.
    fn zero_out(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Discard a range.
    fn discard(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Discard a range so that no copy of it stays.
    fn secure_discard(&self, offset: u64, length: u64) -> io::Result<()>;

    /// NVMe Format with a secure erase; may take hours.
    fn format(&self, erase: SecureErase) -> io::Result<()>;

    /// How hot the drive is, where it says so.
    fn temperature(&self) -> Option<Temperature> {
        None
    }

    /// The drive behind the disk, where there is a way to it.
    fn drive(&self) -> Option<Drive<'_>> {
        None
    }

    /// Make all that was written durable, and forget what this machine has cached of the disk.
    fn flush(&self) -> io::Result<()>;

    /// Whether the disk is still there and still the same.
    fn present(&self) -> bool;

    /// Signatures that libblkid finds now.
    fn signatures(&self) -> io::Result<Vec<Signature>>;

    /// Ranges `(start, size)` in bytes that may carry signatures: the disk, then its partitions.
    fn ranges(&self) -> io::Result<Vec<(u64, u64)>>;

    /// Make the kernel read the partition table again, and check that it has no partitions now.
    fn forget_partitions(&self) -> io::Result<()>;
}

/// Fill `buffer` from `offset`, however short the reads are.
pub(crate) fn read_exact(target: &dyn Target, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
    let mut done = 0;
    while done < buffer.len() {
        let (at, rest) = (offset + done as u64, &mut buffer[done..]);
        let length = rest.len() as u64;
        match target.read_at(rest, at) {
            Ok(0) => {
                let source = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(Fault::Read { offset: at, length, source });
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Fault::Read { offset: at, length, source }),
        }
    }
    Ok(())
}

/// Write all of `bytes` at `offset`, however short the writes are, calling `written` with the length of each part that
/// is on the disk. When a write fails its halves are tried, so that the error names the first bad sector.
pub(crate) fn write_all(
    target: &dyn Target,
    bytes: &[u8],
    offset: u64,
    written: &mut dyn FnMut(u64),
) -> Result<(), Fault> {
    let block = target.logical_block() as usize;
    let mut done = 0;
    while done < bytes.len() {
        let (at, rest) = (offset + done as u64, &bytes[done..]);
        let length = rest.len() as u64;
        match target.write_at(rest, at) {
            Ok(0) => {
                let source = io::Error::from(io::ErrorKind::WriteZero);
                return Err(Fault::Write { offset: at, length, source });
            }
            Ok(count) => {
                done += count;
                written(count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) if rest.len() <= block || !target.present() => {
                return Err(Fault::Write { offset: at, length, source });
            }
            Err(_) => {
                let half = (rest.len() / 2).next_multiple_of(block).min(rest.len() - 1);
                let (first, second) = rest.split_at(half);
                write_all(target, first, at, written)?;
                return write_all(target, second, at + half as u64, written);
            }
        }
    }
    Ok(())
}
