//! Block devices: what disks there are, what may be erased, erasing them and reading them back.
//!
//! ```text
//!   list ──▶ Disk ──▶ probe ──▶ Probe ──▶ guard::judge ──▶ may it be written?   (nothing written so far)
//!  (sysfs)           (libblkid,           erase::plan  ──▶ methods, best first
//!                     NVMe identify)            │
//!                          Device::open (O_EXCL) ──▶ erase::erase ──▶ Record
//!                                                    metadata::erase_metadata ──▶ MetadataRecord
//! ```
//!
//! A disk is first listed from sysfs, then probed by reading it, then judged; judging and planning are pure.
//! Only a [`device::Device`], opened exclusively, can be written. Each erase method is followed by reading
//! back: a method that did nothing, or that lies, is found out and the next one is tried.
//!
//! What is absent: no tool is run and no tool's text is parsed; no protocol type is known here; nothing
//! outside `sys` is unsafe.

pub mod aligned;
pub mod ask;
pub mod ata;
pub mod device;
pub mod disk;
pub mod drive;
pub mod erase;
pub mod fake;
pub mod fault;
pub mod guard;
mod identity;
pub mod list;
pub mod metadata;
mod mounts;
pub mod nvme;
mod paths;
pub mod probe;
pub mod progress;
mod run;
mod sample;
pub mod sanitize;
pub mod scsi;
mod sys;
pub mod target;
pub mod transport;
pub mod unattached;
mod verify;

pub use device::{Device, OpenError};
pub use disk::{Disk, Holder, HolderKind, Partition};
pub use erase::{Ending, Method, Record, erase, plan};
pub use guard::{Refusal, judge};
pub use list::{Filter, ListError, Roots, list};
pub use metadata::{MetadataRecord, erase_metadata};
pub use probe::{PartitionType, Probe, ProbeError, Signature, SignatureKind, probe};
pub use progress::{Phase, Progress, Watch};
pub use target::Target;
pub use unattached::unattached;
pub use verify::Verification;
