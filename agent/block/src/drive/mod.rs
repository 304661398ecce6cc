//! Erasing by the drive's own means: state machines over a [`Transport`], so that every answer a standard allows can
//! be given to them.
//!
//! A drive that reports "done" is checked: the operation must have started with this command; the success of an earlier
//! one, which the drive may still show, does not count. Reading back comes after all of this.

pub mod ata_hidden;
pub mod ata_sanitize;
pub mod ata_security;
pub mod emmc_sanitize;
pub mod nvme_sanitize;
pub mod opal_revert;
pub mod scsi_format;
pub mod scsi_sanitize;
mod work;

pub use work::{Drive, Work};
