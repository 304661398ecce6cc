//! Erasing by the drive's own means: state machines over a [`Transport`], so that every answer a standard allows can
//! be given to them.
//!
//! A drive that says "done" is held to what can be seen: an operation must have begun with this command, not be the
//! success of an earlier one that the drive still shows. Reading back comes after all of this.

pub mod ata_hidden;
pub mod ata_sanitize;
pub mod ata_security;
pub mod emmc_sanitize;
pub mod nvme_sanitize;
pub mod opal_revert;
pub mod scsi_format;
pub mod scsi_sanitize;
mod wait;

use crate::fault::Fault;
use crate::probe::Probe;
use crate::progress::Watch;
use crate::transport::Transport;
use std::io;
use std::time::Duration;
use wait::Seen;

/// A drive as its methods need it.
#[derive(Clone, Copy)]
pub struct Drive<'a> {
    /// The way to it.
    pub transport: &'a dyn Transport,
    /// What it said when it was judged.
    pub probe: &'a Probe,
}

impl std::fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("probe", self.probe).finish_non_exhaustive()
    }
}

/// One operation in a drive, with who watches it.
pub struct Work<'a> {
    /// The drive.
    pub drive: Drive<'a>,
    /// What is told of progress, in 65536ths.
    pub tell: &'a dyn Fn(u16),
    /// Who may stop the waiting. The drive goes on all the same; the next run finds it at it.
    pub watch: &'a dyn Watch,
    /// How long the operation takes, as planned.
    pub estimate: Duration,
}

impl Work<'_> {
    /// Wait until `look` has seen the end.
    fn wait(&self, what: &'static str, look: impl FnMut() -> Result<Seen, Fault>) -> Result<(), Fault> {
        wait::wait(self, what, look)
    }
}

/// A fault of an operation, in words.
fn fault(what: &'static str, words: impl Into<String>) -> Fault {
    Fault::Command { what, source: io::Error::other(words.into()) }
}
