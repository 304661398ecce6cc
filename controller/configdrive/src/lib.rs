//! The configuration drive of an instance: a small file system labelled `config-2`, in which cloud-init looks for its data.
//! Its files are those of openstacksdk's `openstack.baremetal.configdrive.build`, which Ironic uses.

mod iso;
mod packed;
mod parts;

pub use packed::{PackedError, check_packed};
pub use parts::{Drive, Malformed};

/// The most bytes of a file system that the agents take, as in Ironic: its partition has no more.
pub const LARGEST: u64 = 64 << 20;

/// Label of the file system.
pub const LABEL: &str = "config-2";
