//! For tests: Debian's `swtpm`, which is a whole TPM 2.0 (libtpms, IBM's reference code), and what a firmware would measure into it
//! when it boots a signed ramdisk.
//!
//! Every function panics when a part of the test's surroundings is missing.

mod boot;
mod ramdisk;
mod server;

pub use boot::{ACTION, APPLICATION, Boot, Measured, SEPARATOR, TAG};
pub use ramdisk::{Ramdisk, program};
pub use server::SoftwareTpm;
