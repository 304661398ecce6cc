//! UEFI boot entries: the firmware finds the operating system that was written to a disk.
//!
//! ```text
//!   disk ──▶ esp: partition table ──▶ fat ──▶ loader: file and label ──┐
//!   efivars: what the firmware has ──▶ plan: what is removed, what is added, in which order ──▶ install ──▶ efivars
//! ```
//!
//! `load_option`, `device_path`, `loader`, `esp` and `plan` are pure; `efivars` reads and writes the firmware's variables.
//!
//! What is absent: no tool is run, nothing is mounted, nothing on a disk is written.

pub mod device_path;
pub mod disk;
pub mod efivars;
pub mod esp;
pub mod fat;
pub mod install;
pub mod load_option;
pub mod loader;
pub mod plan;

pub use device_path::{HardDrive, Signature};
pub use disk::Disk;
pub use efivars::Efivars;
pub use install::{InstallError, Report, install};
pub use load_option::LoadOption;
pub use loader::{Architecture, Loader};

/// UCS-2 up to a zero or the end, and how many bytes that is, the zero included.
fn text(bytes: &[u8]) -> (String, usize) {
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .take_while(|&unit| unit != 0)
        .collect();
    let used = (2 * units.len() + 2).min(bytes.len());
    (String::from_utf16_lossy(&units), used)
}
