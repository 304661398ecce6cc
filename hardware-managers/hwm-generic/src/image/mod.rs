//! The step `write_image`: which disk, which image, and the writing of it.

mod record;
mod root_device;
mod root_hint;
mod trust;
mod watch;
mod write;

pub use trust::MirrorTrust;
pub(crate) use write::{Machine, arguments, run};
