//! Which disk gets the operating system: Ironic's root device hints, and the choice without them.
//!
//! The agent decides with what the kernel says of its disks ([`Disk`]); the controller names the same disk beforehand, from
//! the inventory of the last inspection ([`Disk::of_inventory`]). Everything here is pure.
//!
//! ```text
//! properties.root_device ── Hint ──┐
//! disks ───────────────────────────┼── choose ──▶ Choice: the disk, and what else matched
//! Rules (size, strict) ────────────┘
//! ```

mod choice;
mod condition;
mod disk;
mod hint;
mod identity;

pub use choice::{Choice, Rules, again, choose};
pub use disk::Disk;
pub use hint::Hint;
pub use identity::DiskIdentity;
