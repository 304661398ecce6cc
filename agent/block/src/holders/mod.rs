//! What uses disks that are to be erased, and taking it down first: swap, mounts, and the volumes built on them.
//!
//! ```text
//!   disks with their holders ──▶ plan ──▶ steps, topmost first; for each disk what stands in the way   (pure)
//!                                steps ──▶ take_down ──▶ ioctls and sysfs, each step done before the next
//! ```

mod multipath;
mod plan;
mod teardown;

pub use multipath::Map;
pub(crate) use multipath::find as multipath;
pub(crate) use plan::plan;
pub use teardown::{TakeDownError, TeardownStep, take_down};
