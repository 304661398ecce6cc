//! What uses disks that are to be erased, and taking it down first: swap, mounts, and the volumes built on them.
//!
//! ```text
//!   disks with their holders ──▶ plan ──▶ deeds, topmost first; for each disk what stands in the way   (pure)
//!                                deeds ──▶ take_down ──▶ ioctls and sysfs, each deed done before the next
//! ```

mod deed;
mod multipath;
mod plan;

pub use deed::{Deed, TakeDownError, take_down};
pub use multipath::Map;
pub(crate) use multipath::find as multipath;
pub(crate) use plan::plan;
