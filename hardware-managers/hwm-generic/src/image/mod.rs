//! The step `write_image`: which disk, which image, and the writing of it.

mod record;
mod root_device;
mod root_hint;
mod watch;
mod write;

pub(crate) use write::{Machine, arguments, run};
