//! Disk images: fetched over HTTP, unpacked, checked and written to a disk while they arrive.
//!
//! ```text
//!   source ──▶ receive ──┬──▶ digest of the download ──────────────────────────┐
//!  (HTTP, Range)         └──▶ unpack ──▶ format ──▶ assemble ──┬──▶ disk       ├──▶ verify ──▶ edits ──▶ head
//!                            (gz, xz,    (raw,     (1 MiB,     └──▶ digest ────┘   (read
//!                             zst, bz2)   qcow2)    aligned)        as written      back)
//! ```
//!
//! Each stage is a thread, and unpacking is several where the file has parts; what is between two stages is bounded. The first MiB of the image, and what of it lies at
//! the end of the disk, stays in memory until the download has the digest that was asked for and the disk returns what
//! was written: until then nothing on the disk can be booted.
//!
//! What is absent: no scratch file, no tool, no mount; no protocol type of the agent; nothing unsafe.

pub mod checkpoint;
pub mod configdrive;
mod digest;
mod error;
pub mod format;
pub mod gpt;
mod hold;
pub mod mbr;
mod pool;
pub mod record;
mod table;
pub mod unpack;
pub mod write;

pub use checkpoint::Checkpoint;
pub use digest::LeafSum;
pub use error::ImageError;
pub use format::Format;
/// Where an image comes from.
pub use image_source as source;
pub use image_source::{
    Algorithm, Checksum, ChecksumSource, Hosts, ImageUrl, Limits, MaskedUrl, SourceError, Trust, checksum,
};
pub use record::{Edit, Record};
/// What a disk is known by after a reboot.
pub use root_device::DiskIdentity;
pub use write::{CHECKPOINT_BYTES, Phase, Progress, Request, Watch, fetch, write};
