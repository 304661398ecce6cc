//! Block devices: what disks there are, what may be erased, erasing them and reading them back.
//!
//! ```text
//!   list ──▶ Disk ──▶ probe ──▶ Probe ──▶ guard::judge ──▶ may it be written?   (nothing written so far)
//!  (sysfs)           (libblkid,           method::methods ──▶ what the drive supports, best first
//!                     capabilities: the drive)  │
//!                          all probes ──▶ plan::plan ──▶ methods for each disk, or a refusal of the whole run
//!                          holders::take_down ──▶ what uses the disks is stopped, topmost first
//!                          reveal ──▶ hidden sectors are given back, and all disks judged again
//!                          Device::open (O_EXCL) ──▶ erase::erase ──▶ Record
//!                                                    metadata::erase_metadata ──▶ MetadataRecord
//!                                                    layout::write_back ──▶ arrays and groups, empty
//!   pass: in lanes, at the disk's pace ◀── content: zeroes, patterns, noise; pool: bounded buffers; temperature: rest
//!   drive: state machines of the drive-side methods ──▶ transport: bytes to the drive and back
//! ```
//!
//! A disk is first listed from sysfs, then probed by reading it, then judged; judging and planning are pure.
//! Only a [`device::Device`], opened exclusively, can be written. Each erase method is followed by reading
//! back: a method that did nothing, or that lies, is found out and the next one is tried.
//!
//! What is absent: no tool is run and no tool's text is parsed; no protocol type is known here; nothing
//! outside `sys` is unsafe.

pub mod aligned;
#[cfg(test)]
mod any;

pub mod ata;
pub mod attach;
pub mod capabilities;
mod checkpoint;
mod content;
pub mod device;
pub mod disk;
pub mod drive;
pub mod erase;
pub mod fake;
pub mod fault;
pub mod guard;

pub mod hidden_area;
mod hints;
pub mod holders;
mod identity;
pub mod kernel_log;
pub mod layout;
pub mod list;
mod lvm;
mod marker;
pub mod metadata;
pub mod method;
pub mod mmc;
mod mounts;
pub mod nvme;
pub mod opal;
mod pass;
mod paths;
pub mod plan;
mod pool;
pub mod probe;
pub mod progress;
mod raid_volume;
mod rescue;

mod sample;
pub mod sanitize;
pub mod scsi;
mod shared;
pub mod signature;
mod signatures;
mod sys;
pub mod target;
pub mod temperature;
pub mod transport;
pub mod unattached;
mod verify;

pub use checkpoint::Checkpoint;
pub use device::{Device, OpenError};
pub use disk::{Disk, Holder, HolderKind, Partition};
pub use erase::{Ending, Record, erase, erase_requiring, resume};
pub use guard::{Reason, Refusal, judge};
pub use holders::{Map, TakeDownError, TeardownStep, take_down};
pub use list::{Filter, ListError, Roots, list};
pub use metadata::{MetadataRecord, erase_metadata};
pub use method::{ExpectedContent, Fill, Level, Method, Passes, methods};
pub use plan::{DiskDecision, EraseRequest, Plan, PlannedMethod, Policy, plan, plan_metadata};
pub use probe::{Probe, ProbeError, probe};
pub use progress::{Phase, Progress, Watch};
pub use rescue::rescue;
pub use signature::{PartitionType, Signature, SignatureKind};
pub use target::Target;
pub use unattached::unattached;
pub use verify::{RequiredVerification, Verification};
