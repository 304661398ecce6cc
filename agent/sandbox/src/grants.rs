//! What a program may see and use.

use std::path::PathBuf;

/// What a program may see and use. The default is nothing but a processor, a little memory and a little scratch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants {
    /// Device nodes that appear in its `/dev`.
    pub devices: Vec<DeviceNode>,
    /// The host's network.
    pub network: bool,
    /// `/sys`, read-only.
    pub sysfs: bool,
    /// A directory of the host that is `/fetched`, read-only; what is put there later appears.
    pub fetched: Option<PathBuf>,
    /// Size of `/scratch` in MiB, at least 1.
    pub scratch_mib: u32,
    /// Memory in MiB, without the scratch, at least 1. Without cgroups it bounds each process and not their sum.
    pub memory_mib: u32,
    /// Processes and threads together, at least 1.
    pub pids: u32,
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            network: false,
            sysfs: false,
            fetched: None,
            scratch_mib: 16,
            memory_mib: 128,
            pids: 32,
        }
    }
}

/// A node of `/dev`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceNode {
    /// Below `/dev`: `sda`, `bsg/0:0:0:0`.
    pub name: String,
    /// Block or character.
    pub kind: NodeKind,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Whether it may be opened for writing, and get ioctls that are privileged.
    pub writable: bool,
}

/// The kind of a device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Block.
    Block,
    /// Character.
    Character,
}
