//! The step `write_image`: which disk, which image, and the writing of it.

mod record;
mod root_disk;
mod trust;
mod watch;
mod write;

pub(crate) use root_disk::Machine;
pub use trust::MirrorTrust;
pub use write::source_of;
pub(crate) use write::{arguments, run};
