//! The only unsafe code of this crate: ioctls and libblkid. Everything it offers is safe to call.

pub(crate) mod blk;
pub(crate) mod blkid;
pub(crate) mod input;
pub(crate) mod loopdev;
pub(crate) mod mmc;
pub(crate) mod nvme;
pub(crate) mod opal;
pub(crate) mod sg;
pub(crate) mod startup;
pub(crate) mod teardown;

use crate::mmc::Command;
use crate::nvme::{Completion, NvmeCommand};
use crate::opal::{Psid, Status};
use crate::scsi::Reply;
use crate::transport::{Data, Transport};
use std::fs::File;
use std::io;
use std::time::Duration;

/// The block device behind a file, by pass-through ioctls.
impl Transport for File {
    fn nvme(&self, command: &NvmeCommand, data: &mut [u8], timeout: Duration) -> io::Result<Completion> {
        nvme::run(self, command, data, timeout)
    }

    fn scsi(&self, cdb: &[u8], data: Data<'_>, timeout: Duration) -> io::Result<Reply> {
        sg::run(self, cdb, data, timeout)
    }

    fn opal_status(&self) -> io::Result<Status> {
        opal::status(self)
    }

    fn opal_revert(&self, psid: &Psid) -> io::Result<i32> {
        opal::revert(self, psid)
    }

    fn mmc(&self, commands: &[Command], data: &mut [u8]) -> io::Result<Vec<u32>> {
        mmc::run(self, commands, data)
    }
}
