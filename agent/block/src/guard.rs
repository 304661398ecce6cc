//! May this disk be written at all? Pure: a [`Probe`] in, reasons out.

use crate::probe::Probe;
use std::path::PathBuf;

/// Label of the image a controller hands to a ramdisk as virtual media (Ironic's).
const VIRTUAL_MEDIA_LABEL: &str = "ir-vfd-dev";

/// A reason not to write to a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The medium the ramdisk was booted from, or that a BMC presents to it. Not the node's own storage.
    VirtualMedia {
        /// How it was recognised.
        because: String,
    },
    /// The disk, a partition or something built on them is mounted.
    Mounted {
        /// Kernel name of what is mounted.
        what: String,
        /// Where.
        at: PathBuf,
    },
    /// The disk, a partition or something built on them is swap in use.
    Swap {
        /// Kernel name of what is swap.
        what: String,
    },
    /// An active md array, LVM volume or other device is built on the disk.
    Held {
        /// The device, in words.
        by: String,
    },
    /// The kernel refuses writes to the disk.
    ReadOnly,
}

impl Refusal {
    /// Whether the disk is not part of the node's storage, so that leaving it alone leaves no data behind.
    pub fn is_boot_medium(&self) -> bool {
        matches!(self, Refusal::VirtualMedia { .. })
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::VirtualMedia { because } => {
                write!(f, "it is boot or virtual media ({because}), not storage of the node")
            }
            Refusal::Mounted { what, at } => write!(f, "{what} is mounted at {}", at.display()),
            Refusal::Swap { what } => write!(f, "{what} is swap in use"),
            Refusal::Held { by } => write!(f, "it is in use by {by}; stop that first"),
            Refusal::ReadOnly => write!(f, "it is read-only"),
        }
    }
}

/// All reasons not to write to a disk, the most telling first; empty when it may be written.
///
/// Signatures of md, LVM or file systems that nothing uses are no reason: they are what is to be erased. Media
/// are told by what the hardware says (removable, or on USB) together with the content: content alone is
/// written by the node's last user and must not save a disk from being erased.
pub fn judge(probe: &Probe) -> Vec<Refusal> {
    let disk = &probe.disk;
    let mut refusals: Vec<Refusal> = virtual_media(probe).into_iter().collect();
    refusals.extend(disk.all_mounts().into_iter().map(|(what, at)| Refusal::Mounted { what, at }));
    refusals.extend(disk.all_swap().into_iter().map(|what| Refusal::Swap { what }));
    refusals.extend(disk.all_holders().into_iter().map(|holder| Refusal::Held { by: holder.to_string() }));
    refusals.extend(disk.read_only.then_some(Refusal::ReadOnly));
    refusals
}

fn virtual_media(probe: &Probe) -> Option<Refusal> {
    let disk = &probe.disk;
    if !disk.removable && disk.transport.as_deref() != Some("usb") {
        return None;
    }
    let labelled = |s: &&crate::Signature| s.label.as_deref() == Some(VIRTUAL_MEDIA_LABEL);
    let because = if probe.signatures.iter().any(|s| labelled(&s)) {
        format!("labelled {VIRTUAL_MEDIA_LABEL}")
    } else if disk.removable && probe.signatures.iter().any(|s| s.name == "iso9660" || s.name == "udf") {
        "a removable medium with a CD or DVD file system".to_owned()
    } else {
        return None;
    };
    Some(Refusal::VirtualMedia { because })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, Holder, HolderKind, Partition};
    use crate::probe::{Signature, SignatureKind};
    use proptest::prelude::*;

    fn signature(name: &str, label: Option<&str>) -> Signature {
        Signature {
            kind: SignatureKind::Filesystem,
            name: name.into(),
            label: label.map(str::to_owned),
            uuid: None,
            offset: Some(0),
            length: 4,
            range: (0, 1 << 30),
        }
    }

    fn holder(kind: HolderKind, mounts: &[&str], holders: Vec<Holder>) -> Holder {
        Holder {
            name: "x0".into(),
            kind,
            mounts: mounts.iter().map(PathBuf::from).collect(),
            swap: false,
            holders,
        }
    }

    #[test]
    fn a_mount_deep_in_the_stack_is_found_and_named() {
        let volume = holder(HolderKind::Lvm("vg0-root".into()), &["/srv"], vec![]);
        let array = holder(HolderKind::Md("raid1".into()), &[], vec![volume]);
        let partition = Partition { name: "sda1".into(), holders: vec![array], ..Partition::default() };
        let disk = Disk { name: "sda".into(), partitions: vec![partition], ..Disk::default() };
        let refusals = judge(&Probe { disk, ..Probe::default() });
        assert_eq!(refusals[0].to_string(), "x0 is mounted at /srv");
        assert_eq!(refusals[1].to_string(), "it is in use by md array x0 (raid1); stop that first");
        assert_eq!(refusals.len(), 2);
    }

    #[test]
    fn unused_signatures_are_no_reason() {
        let probe = Probe {
            signatures: vec![signature("LVM2_member", None), signature("linux_raid_member", None)],
            ..Probe::default()
        };
        assert!(judge(&probe).is_empty());
    }

    #[test]
    fn content_alone_does_not_make_virtual_media() {
        let mut probe = Probe {
            signatures: vec![signature("iso9660", Some("config-2")), signature("vfat", Some("ir-vfd-dev"))],
            ..Probe::default()
        };
        assert!(judge(&probe).is_empty(), "a fixed disk with forged content must be erased");
        probe.disk.removable = true;
        assert!(judge(&probe)[0].is_boot_medium());
        probe.signatures.clear();
        assert!(judge(&probe).is_empty(), "a removable disk with data is storage");
    }

    proptest! {
        #[test]
        fn nothing_in_use_or_read_only_is_ever_allowed(
            mounted: bool, swap: bool, held: bool, read_only: bool, on_partition: bool, removable: bool,
        ) {
            let holders = if held { vec![holder(HolderKind::Other, &[], vec![])] } else { vec![] };
            let mounts: Vec<PathBuf> = if mounted { vec!["/mnt".into()] } else { vec![] };
            let mut disk = Disk { name: "sda".into(), read_only, removable, ..Disk::default() };
            if on_partition {
                let name = "sda1".to_owned();
                disk.partitions = vec![Partition { name, swap, holders, mounts, ..Partition::default() }];
            } else {
                (disk.swap, disk.holders, disk.mounts) = (swap, holders, mounts);
            }
            let refusals = judge(&Probe { disk, ..Probe::default() });
            let count = [mounted, swap, held, read_only].iter().filter(|&&reason| reason).count();
            prop_assert_eq!(refusals.len(), count);
            prop_assert!(!refusals.iter().any(Refusal::is_boot_medium));
        }
    }
}
