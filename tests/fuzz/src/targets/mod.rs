//! One file each: what reads bytes from outside, and what must hold whatever the bytes are.

mod ata;
mod boot_entries;
mod bundle_file;
mod checksums;
mod configdrive;
mod content;
mod gpt;
mod manager;
mod nvme;
mod qcow2;
mod scsi;
mod tpm;
mod virtual_media;

pub use virtual_media::read as read_virtual_media;

/// Reads one input; panics when a promise does not hold.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: [(&str, Target); 13] = [
    ("nvme", nvme::run),
    ("ata", ata::run),
    ("scsi", scsi::run),
    ("content", content::run),
    ("manager", manager::run),
    ("bundle_file", bundle_file::run),
    ("qcow2", qcow2::run),
    ("gpt", gpt::run),
    ("checksums", checksums::run),
    ("boot_entries", boot_entries::run),
    ("configdrive", configdrive::run),
    ("tpm", tpm::run),
    ("virtual_media", virtual_media::run),
];
