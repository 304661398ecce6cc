//! Drives that answer commands byte by byte, as the standards have it, over the content of a `FakeDisk`. Their bytes
//! are written here a second time, from the standards and not from the code under test.

pub mod ata;
pub mod emmc;
pub mod nvme;
pub mod opal;
pub mod scsi;

use block::drive::Drive;
use block::fake::FakeDisk;
use block::nvme::SecureErase;
use block::transport::Transport;
use block::{Probe, Signature, Target};
use std::io;

/// A disk whose drive answers.
pub struct Simulated<'a> {
    pub disk: &'a FakeDisk,
    pub transport: &'a dyn Transport,
    pub probe: Probe,
}

impl Target for Simulated<'_> {
    fn name(&self) -> String {
        self.disk.name()
    }
    fn size(&self) -> u64 {
        self.disk.size()
    }
    fn logical_block(&self) -> u32 {
        self.disk.logical_block()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.read_at(buffer, offset)
    }
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.write_at(buffer, offset)
    }
    fn zero_out(&self, offset: u64, length: u64) -> io::Result<()> {
        self.disk.zero_out(offset, length)
    }
    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        self.disk.discard(offset, length)
    }
    fn secure_discard(&self, offset: u64, length: u64) -> io::Result<()> {
        self.disk.secure_discard(offset, length)
    }
    fn format(&self, erase: SecureErase) -> io::Result<()> {
        self.disk.format(erase)
    }
    fn drive(&self) -> Option<Drive<'_>> {
        Some(Drive { transport: self.transport, probe: &self.probe })
    }
    fn flush(&self) -> io::Result<()> {
        self.disk.flush()
    }
    fn present(&self) -> bool {
        self.disk.present()
    }
    fn signatures(&self) -> io::Result<Vec<Signature>> {
        self.disk.signatures()
    }
    fn ranges(&self) -> io::Result<Vec<(u64, u64)>> {
        self.disk.ranges()
    }
    fn forget_partitions(&self) -> io::Result<()> {
        self.disk.forget_partitions()
    }
}

/// Content without a zero byte.
pub fn content() -> Vec<u8> {
    (0..1usize << 20).map(|index| u8::try_from((index / 512 + index) % 255).unwrap() + 1).collect()
}

pub fn silent() -> io::Error {
    io::Error::from_raw_os_error(libc::ETIMEDOUT)
}
