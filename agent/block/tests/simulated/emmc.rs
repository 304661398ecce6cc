//! An eMMC of 2.5 GiB as the kernel's ioctls show it; its user area is that of a smaller disk, stretched.

use block::fake::FakeDisk;
use block::mmc::Command;
use block::transport::Transport;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

/// SEC_COUNT: not a whole number of groups.
pub const SECTORS: u32 = 0x50_0000 + 100;

/// How a device misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whim {
    None,
    /// It leaves the groups that are write protected, and says so.
    Skips,
    /// It leaves the upper half, and says nothing.
    Lies,
    /// SANITIZE_START is refused.
    RefusesSanitize,
}

pub struct EmmcDevice<'a> {
    pub disk: &'a FakeDisk,
    pub whim: Whim,
    /// The erase that is being set up: CMD35, CMD36.
    range: Mutex<(u32, u32)>,
    /// Up to where everything is erased, and how often it was sanitized after that.
    pub seen: Mutex<(u32, u32)>,
}

impl<'a> EmmcDevice<'a> {
    pub fn new(disk: &'a FakeDisk, whim: Whim) -> Self {
        EmmcDevice { disk, whim, range: Mutex::default(), seen: Mutex::default() }
    }

    /// Groups of 512 KiB, four of them protected at once; 20 s for each, so that three are erased by one command.
    fn register() -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[212..216].copy_from_slice(&SECTORS.to_le_bytes());
        for (index, value) in
            [(168, 1), (175, 1), (192, 8), (221, 4), (223, 66), (224, 1), (226, 2), (231, 0x51)]
        {
            bytes[index] = value;
        }
        bytes
    }

    fn answer(&self, command: &Command, data: &mut [u8]) -> io::Result<u32> {
        let ready = 0x900;
        match (command.opcode, command.arg) {
            (8, 0) => data.copy_from_slice(&Self::register()),
            // The third of the groups from sector 0 on, for good.
            (31, 0) => {
                data.copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, if self.whim == Whim::Skips { 0x30 } else { 0 }])
            }
            (31, _) => data.fill(0),
            (35, first) => self.range.lock().unwrap().0 = first,
            (36, last) => self.range.lock().unwrap().1 = last,
            (38, 0) => {
                let (first, last) = *self.range.lock().unwrap();
                assert_eq!(first % 1024, 0, "whole groups");
                assert!(last < SECTORS && command.timeout >= Duration::from_secs(19));
                assert!(u64::from(last - first) < 4 * 1024, "no more than a minute at once");
                let mut seen = self.seen.lock().unwrap();
                assert_eq!(first, seen.0, "one after the other");
                *seen = (last + 1, 0);
                let at = |sector: u32| u64::from(sector) * (1 << 20) / u64::from(SECTORS);
                if !(self.whim == Whim::Lies && at(last) > 1 << 19) {
                    self.disk.fill(0xff, at(first)..at(last + 1))?;
                }
                return Ok(if self.whim == Whim::Skips { ready | 1 << 15 } else { ready });
            }
            (6, 0x03a5_0101) if self.whim == Whim::RefusesSanitize => return Ok(ready | 1 << 7),
            (6, 0x03a5_0101) => self.seen.lock().unwrap().1 += 1,
            other => panic!("{other:?}"),
        }
        Ok(ready)
    }
}

impl Transport for EmmcDevice<'_> {
    fn mmc(&self, commands: &[Command], data: &mut [u8]) -> io::Result<Vec<u32>> {
        commands.iter().map(|command| self.answer(command, data)).collect()
    }
}
