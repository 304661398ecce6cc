//! What is asked of the engine.

use crate::checkpoint::Checkpoint;
use crate::format::Format;
use image_source::ChecksumSource;
use image_source::Source;
use root_device::DiskIdentity;

/// What [`Request::checkpoint_every`] is without a reason for something else.
pub const CHECKPOINT_BYTES: u64 = 256 << 20;

/// What is to be written.
#[derive(Debug, Clone)]
pub struct Request {
    /// Where the image comes from.
    pub source: Source,
    /// What it must be.
    pub checksum: ChecksumSource,
    /// Whether MD5 is enough.
    pub allow_md5: bool,
    /// What the image was said to be; anything where nothing was said.
    pub format: Option<Format>,
    /// An ISO file system that becomes a partition of its own.
    pub configdrive: Option<Vec<u8>>,
    /// What the disk is known by after a reboot. Without it there are no checkpoints, and none counts.
    pub disk: Option<DiskIdentity>,
    /// Bytes between two checkpoints; there is one at least every ten seconds.
    pub checkpoint_every: u64,
    /// Where an earlier session was.
    pub checkpoint: Option<Checkpoint>,
}
