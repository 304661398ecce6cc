//! BIOS settings in-band, where the kernel has a driver for the machine's firmware (`dell-wmi-sysman`, `think-lmi`,
//! `hp-bioscfg` …): `/sys/class/firmware-attributes`.
//!
//! ```text
//!   attributes  read what is there                      (sysfs → values)
//!   change      what is to be written, and what not     (pure)
//!   apply       write, read back, report                (the step)
//! ```

mod apply;
mod attributes;
mod change;

pub use apply::{apply, arguments};
pub use attributes::{drivers, setting};
