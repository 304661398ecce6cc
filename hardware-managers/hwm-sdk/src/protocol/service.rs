//! Requests of a manager to the agent.

use super::{Claim, Method};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most bytes of one `read_device`.
pub const READ_MAX: u32 = 512 << 10;

/// `read_device`: bytes of a disk that the manager claimed and was granted.
#[derive(Debug, Clone, Copy)]
pub struct ReadDevice;

impl Method for ReadDevice {
    const NAME: &'static str = "read_device";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));
    type Params = ReadDeviceParams;
    type Answer = DeviceData;
}

/// The range to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadDeviceParams {
    /// A claim of kind `block` with an id.
    pub claim: Claim,
    /// First byte.
    pub offset: u64,
    /// Bytes, 1 to [`READ_MAX`].
    pub length: u32,
}

/// The bytes that were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceData {
    /// The bytes in Base64 (RFC 4648, with padding); fewer than asked at the end of the disk.
    pub data: String,
}

/// `fetch`: a file that the controller has.
#[derive(Debug, Clone, Copy)]
pub struct Fetch;

impl Method for Fetch {
    const NAME: &'static str = "fetch";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(600));
    type Params = FetchParams;
    type Answer = Artifact;
}

/// Which file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchParams {
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}

/// The file on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Path that the manager can open for reading.
    pub path: String,
    /// Bytes.
    pub size: u64,
}
