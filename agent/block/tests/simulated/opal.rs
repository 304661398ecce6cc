//! A TCG Opal drive as the kernel's ioctls show it.

use block::fake::FakeDisk;
use block::opal::{Psid, Status};
use block::transport::Transport;
use std::io;
use std::sync::Mutex;

/// What is on the label of the drive.
pub const PSID: &str = "0123456789ABCDEF0123456789ABCDEF";

/// How a drive misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whim {
    None,
    /// It says that it is done, and everything is as before.
    DoesNothing,
    /// It lets go of its owner and keeps its keys.
    Lies,
}

pub struct OpalDrive<'a> {
    pub disk: &'a FakeDisk,
    pub whim: Whim,
    pub status: Mutex<Status>,
}

impl Transport for OpalDrive<'_> {
    fn opal_status(&self) -> io::Result<Status> {
        Ok(*self.status.lock().unwrap())
    }

    fn opal_revert(&self, psid: &Psid) -> io::Result<i32> {
        if psid.as_bytes() != PSID.as_bytes() {
            return Ok(0x01);
        }
        if self.whim == Whim::None {
            self.disk.fill(0x5c, 0..1 << 20)?;
        }
        if self.whim != Whim::DoesNothing {
            *self.status.lock().unwrap() = Status { supported: true, ..Status::default() };
        }
        Ok(0)
    }
}
