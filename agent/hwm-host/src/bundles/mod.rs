//! Fetched bundles: whose are accepted, and a verified one as a directory that [`one`](crate::one) reads.

mod install;
mod mount;
mod trust;

pub use install::install;
pub use mount::clear;
pub use trust::read as trusted_keys;
