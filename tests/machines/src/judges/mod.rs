//! BMCs that we did not write: OpenIPMI's ipmi_sim, and sushy-emulator over libvirt.

pub mod chassis;
pub mod ipmi_sim;
pub mod ironic;
pub mod libvirt;
pub mod sushy;

use std::path::PathBuf;

use anyhow::{Context, Result};

/// Where other people's programs are installed, below the target directory.
///
/// # Errors
/// This program is below none.
pub fn peers() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let target = this.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
    Ok(target.context("no target directory above this program")?.join("peers"))
}
