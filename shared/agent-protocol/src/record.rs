//! The record of what was done to each disk and what was seen afterwards.
//!
//! It is the result of an erase step. Nothing may call a disk erased without one whose `outcome` is
//! [`Outcome::Erased`] and whose `verification` passed.

use serde::{Deserialize, Serialize};

/// [`DiskRecord::exempt`] of what the node was booted from, or its BMC presents.
pub const BOOT_MEDIUM: &str = "boot-medium";

/// Method of a disk that lost its partition tables and signatures only: [`Outcome::MetadataErased`].
pub const ERASE_METADATA: &str = "erase-metadata";

/// Result of an erase step: one record for every disk the agent saw, touched or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EraseReport {
    /// One per disk, ordered by device name.
    pub disks: Vec<DiskRecord>,
    /// Storage controllers without a driver, or without its firmware, that the node's `ignored_controllers` let be: what is behind them was not
    /// looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_controllers: Vec<IgnoredController>,
}

/// A storage controller without a driver, or without its firmware, that an operator lets be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredController {
    /// PCI address, `0000:3b:00.0`.
    pub address: String,
    /// PCI vendor and device, `1000:005b`.
    pub ids: String,
    /// The operator's reason.
    pub reason: String,
}

/// What happened to one disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskRecord {
    /// Kernel name at the time, `/dev/sda`; never an identity.
    pub device: String,
    /// Serial number: the identity, with `wwn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// World wide name, `0x…` or `eui.…`/`nvme.…` as sysfs gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Type of its media with how it is attached, `magnetic (sata)`, `flash (nvme)`, `virtual (virtio)`; absent where an
    /// earlier agent, or a vendor's manager, did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// Size in bytes.
    pub size: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was skipped or failed; empty for an erased disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the disk is listed and need not be there the next time: [`BOOT_MEDIUM`], `kept` (by the operator), `removable`,
    /// `raid-volume`, `network-volume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exempt: Option<String>,
    /// Method that was used, in words of [`crate::progress::DiskProgress::method`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Level that the method reaches on this disk, `clear` or `purge`; only of an erased disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Clauses of the standards that name the method, as in `docs/erase.md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard: Option<String>,
    /// Methods tried before and why each gave up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Fallback>,
    /// Bytes written (or, for a drive-side method, covered).
    pub bytes_erased: u64,
    /// Byte offset from which the method went on after the node had rebooted or the agent had died in the middle of the
    /// step; absent where it began at 0. Everything below was written before, and read back with the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<u64>,
    /// What the read-back saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// What was written to the erased and verified disk afterwards, so that an array or volume group of before is there
    /// again, empty. All else is as `verification` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rebuilt: Vec<Rebuilt>,
    /// Parts of the drive that no erase reaches, and that are as they were: boot areas and RPMB of an eMMC.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_reach: Vec<String>,
    /// Unix time in seconds when work on the disk began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<f64>,
    /// Unix time in seconds when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<f64>,
}

/// How work on a disk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Erased, and the read-back agreed.
    Erased,
    /// Only partition tables and signatures were removed, and a probe afterwards found none.
    MetadataErased,
    /// Not touched.
    Skipped,
    /// Touched or tried, and not erased.
    Failed,
}

/// A method that was tried and given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fallback {
    /// The method.
    pub method: String,
    /// The error it ended with.
    pub error: String,
}

/// A region that was written back after the erase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// `md` or `lvm`.
    pub kind: String,
    /// Name of the array or volume group.
    pub name: String,
    /// Its UUID, as its own tools write it.
    pub uuid: String,
    /// How many bytes were written, whole sectors.
    pub bytes: u64,
    /// Where, in bytes from the beginning of the disk.
    pub offset: u64,
}

/// What was seen when the disk was read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// `full`, or `sampled`, or `signatures`; `device-attested` where nothing was left to compare and the drive's own log
    /// reports success; `none` where nothing was looked at, which no log attests.
    pub kind: String,
    /// Bytes read back.
    pub bytes_read: u64,
    /// What the method promises: `zeroes`, or `changed` where it promises no particular content.
    pub expected: String,
    /// Bytes found to be other than promised.
    pub mismatched_bytes: u64,
    /// Sectors sampled before the erase that still read the same afterwards (all-zero ones left out).
    pub unchanged_samples: u64,
    /// Sectors sampled before the erase.
    pub samples: u64,
    /// Markers that were written to the disk before the erase, and read back there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub markers: u64,
    /// Those of them that are still there, whole or in part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub markers_found: u64,
    /// What the drive's own log reports of the operation; absent where it keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_status: Option<String>,
    /// What the places of samples and markers were drawn from, 32 hexadecimal digits; absent where none was drawn, or by
    /// an earlier process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// Whether the disk passed.
    pub passed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Key of a node's `driver_internal_info` that gives its agent the [`RequiredVerification`].
pub const REQUIRE_VERIFICATION: &str = "agent_require_verification";

/// What the erase of a disk must be verified by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequiredVerification {
    /// Nothing. What can be looked at is, and must not contradict.
    None,
    /// Reading, or the log of a drive that reports the end of its erase, where nothing is left to compare.
    #[default]
    Device,
    /// Reading.
    Read,
}

impl RequiredVerification {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Device => "device",
            Self::Read => "read",
        }
    }
}
