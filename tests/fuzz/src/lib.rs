//! Everything that reads what a drive, a disk, a manager, a bundle, an image or a TPM says, and virtual media, as functions of bytes.
//!
//! ```text
//! seeds/NAME/* ──► changes (a random number generator) ──► targets/NAME   tests/random.rs: in every test run
//!              └─► libFuzzer, which sees what each input reaches ──┘      coverage/: cargo xtask fuzz, soak --part fuzz
//! ```

mod changes;
mod oracle;
mod seeds;
mod targets;

pub use changes::changed;
pub use seeds::seeds;
pub use targets::{TARGETS, Target, read_virtual_media};
