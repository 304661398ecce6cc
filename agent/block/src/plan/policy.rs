//! What an operator wants of an erase.

use crate::guard::Reason;
use crate::method::{Level, Method, Passes};
use root_device::Hint;
use std::collections::BTreeSet;
use std::time::Duration;

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EraseRequest {
    /// The level that every disk must reach.
    pub level: Level,
    /// How long one method may take on one disk.
    pub budget: Option<Duration>,
    /// Overwrite with this instead of zeroes, and do not have the device make zeroes: in place of `overwrite-zeroes`,
    /// `zero-out` and `discard`. What the drive does by itself comes first all the same.
    pub overwrite: Option<Passes>,
    /// What is allowed besides.
    pub policy: Policy,
}

/// What is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Methods below the level that may be used, each by its name.
    pub weaker: BTreeSet<Method>,
    /// Methods that are not used, whatever they reach.
    pub never: BTreeSet<Method>,
    /// Where a drive's own erase fails, only other such methods are tried: nothing is written over it in their place.
    pub insist: bool,
    /// Reasons for which a disk may be left alone without refusing the run.
    pub leave: BTreeSet<Reason>,
    /// Reasons that do not prevent an erase; only those of [`Reason::may_be_overridden`].
    pub despite: BTreeSet<Reason>,
    /// Disks that the operator keeps.
    pub skip: Vec<Hint>,
    /// Sectors that an ATA drive hides may be given back before it is erased.
    pub reveal: bool,
    /// What uses a disk that is to be erased may be taken down first. Only where the machine is the caller's alone: in
    /// the ramdisk. With `in-use` in `leave` such disks are left alone instead.
    pub take_down: bool,
}

impl Default for EraseRequest {
    fn default() -> Self {
        EraseRequest { level: Level::Clear, budget: None, overwrite: None, policy: Policy::default() }
    }
}
