//! What libblkid recognises on a disk.

use serde::{Deserialize, Serialize};

/// What a partition is for, as its table says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionType {
    /// First byte, from the beginning of the disk.
    pub start: u64,
    /// GUID in the case that the table's reader chose, or the number of an MBR: `0xfb`.
    pub kind: String,
}

/// Something libblkid recognises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// What it is.
    pub kind: SignatureKind,
    /// Its type in libblkid's words: `ext4`, `LVM2_member`, `linux_raid_member`, `gpt`.
    pub name: String,
    /// Label.
    pub label: Option<String>,
    /// UUID.
    pub uuid: Option<String>,
    /// Byte offset of the magic from the beginning of the disk, where libblkid reports it.
    pub offset: Option<u64>,
    /// Length of the magic in bytes; 0 where libblkid does not report it.
    pub length: u64,
    /// The range `(start, size)` in bytes in which it was looked for: the disk or a partition.
    pub range: (u64, u64),
}

/// Kind of a [`Signature`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignatureKind {
    /// A partition table.
    PartitionTable,
    /// A file system.
    Filesystem,
    /// A member of an md array, an LVM volume group or the like.
    Member,
    /// Anything else: encrypted volumes, swap.
    Other,
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} at byte {offset}", self.name),
            None => write!(f, "{} in the range at byte {}", self.name, self.range.0),
        }
    }
}
