//! May this disk be written at all? Pure: a [`Probe`] in, reasons out.

use crate::probe::Probe;
use crate::shared;
use std::path::PathBuf;

/// Label of the image that a controller passes to a ramdisk as virtual media (Ironic's).
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
    /// The kernel or the drive refuses writes to the disk.
    ReadOnly,
    /// The disk carries a file system that several machines use at once.
    Shared {
        /// What it is.
        what: String,
    },
    /// Another machine has reserved the disk, or registered for doing so.
    Reserved {
        /// In words.
        by: String,
    },
    /// Sectors of the disk cannot be addressed, and would keep their data.
    HiddenArea {
        /// How many.
        sectors: u64,
        /// By what.
        by: &'static str,
    },
    /// A boot area of an eMMC holds something that no erase reaches.
    BootArea(String),
    /// The drive has namespaces that are no block devices, and would keep their data.
    HiddenNamespaces(u32),
    /// The disk cannot be read, so what is on it is not known.
    Unreadable(String),
}

/// Kind of a [`Refusal`], for policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Boot or virtual media.
    BootMedium,
    /// Mounted, swap, or held by another device.
    InUse,
    /// Read-only.
    ReadOnly,
    /// A file system of several machines.
    Shared,
    /// A reservation of another machine.
    Reserved,
    /// Sectors or namespaces that cannot be addressed.
    Hidden,
    /// Cannot be read.
    Unreadable,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 7] = [
        Reason::BootMedium,
        Reason::InUse,
        Reason::ReadOnly,
        Reason::Shared,
        Reason::Reserved,
        Reason::Hidden,
        Reason::Unreadable,
    ];

    /// The word for arguments.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::BootMedium => "boot-medium",
            Reason::InUse => "in-use",
            Reason::ReadOnly => "read-only",
            Reason::Shared => "shared",
            Reason::Reserved => "reserved",
            Reason::Hidden => "hidden",
            Reason::Unreadable => "unreadable",
        }
    }

    /// The reason of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// Whether an operator may have the disk erased all the same. What is in use or cannot be written is never.
    pub fn may_be_overridden(self) -> bool {
        matches!(self, Reason::Shared | Reason::Hidden)
    }
}

impl Refusal {
    /// Its kind.
    pub fn reason(&self) -> Reason {
        match self {
            Refusal::VirtualMedia { .. } => Reason::BootMedium,
            Refusal::Mounted { .. } | Refusal::Swap { .. } | Refusal::Held { .. } => Reason::InUse,
            Refusal::ReadOnly => Reason::ReadOnly,
            Refusal::Shared { .. } => Reason::Shared,
            Refusal::Reserved { .. } => Reason::Reserved,
            Refusal::HiddenArea { .. } | Refusal::BootArea(_) | Refusal::HiddenNamespaces(_) => {
                Reason::Hidden
            }
            Refusal::Unreadable(_) => Reason::Unreadable,
        }
    }

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
            Refusal::Shared { what } => {
                write!(
                    f,
                    "it holds {what}, which other machines may be using; allow \"shared\" if they do not"
                )
            }
            Refusal::Reserved { by } => write!(f, "it is reserved: {by}; release that first"),
            Refusal::HiddenArea { sectors, by } => {
                write!(
                    f,
                    "{sectors} sectors are hidden by the {by}; set \"remove_hidden\", or allow \"hidden\""
                )
            }
            Refusal::BootArea(name) => write!(
                f,
                "its boot area {name} holds firmware or hidden data, which no erase reaches; empty it, or \
                 allow \"hidden\""
            ),
            Refusal::HiddenNamespaces(count) => write!(
                f,
                "its drive has {count} namespaces that are attached to no controller here; attach or delete them, \
                 or allow \"hidden\""
            ),
            Refusal::Unreadable(error) => f.write_str(error),
        }
    }
}

/// All reasons not to write to a disk, the most important first; empty when it may be written.
///
/// Signatures of md, LVM or file systems that nothing uses are no reason: they are what is to be erased. Media
/// are recognised by what the hardware says (removable, or on USB) together with the content: content alone is
/// written by the node's last user and must not save a disk from being erased.
pub fn judge(probe: &Probe) -> Vec<Refusal> {
    let disk = &probe.disk;
    let mut refusals: Vec<Refusal> = virtual_media(probe).into_iter().collect();
    refusals.extend(disk.all_mounts().into_iter().map(|(what, at)| Refusal::Mounted { what, at }));
    refusals.extend(disk.all_swap().into_iter().map(|what| Refusal::Swap { what }));
    refusals.extend(disk.all_holders().into_iter().map(|holder| Refusal::Held { by: holder.to_string() }));
    refusals.extend(read_only(probe).then_some(Refusal::ReadOnly));
    refusals.extend(shared::found(probe).map(|what| Refusal::Shared { what }));
    refusals.extend(reserved(probe).map(|by| Refusal::Reserved { by }));
    refusals.extend(hidden(probe));
    refusals.extend(probe.unreadable.clone().map(Refusal::Unreadable));
    refusals.extend(locked(probe).map(Refusal::Unreadable));
    refusals
}

/// The reason for a locked drive, whose content is unknown, unless its PSID was given: the PSID is permission enough.
fn locked(probe: &Probe) -> Option<String> {
    let reason = "it is locked by TCG Opal and gives no content: name its PSID, which is on its label, in \
                driver_info.agent_opal_psids, or unlock it";
    (probe.is_locked() && probe.psid.is_none()).then(|| reason.to_owned())
}

fn read_only(probe: &Probe) -> bool {
    probe.disk.read_only
        || probe.nvme.is_some_and(|nvme| nvme.write_protected)
        || probe.scsi.is_some_and(|scsi| scsi.write_protected)
        || probe.mmc.is_some_and(|mmc| mmc.protected > 0)
}

fn reserved(probe: &Probe) -> Option<String> {
    let scsi = probe.scsi.map(|scsi| (scsi.reservation.kind, scsi.reservation.keys));
    let nvme = probe.nvme.and_then(|nvme| nvme.reservation);
    let (kind, holders) = scsi.or(nvme.map(|found| (found.kind, found.registrants.into())))?;
    match (kind, holders) {
        (0, 0) => None,
        (0, holders) => Some(format!("{holders} keys of other machines are registered")),
        (kind, _) => Some(format!("a persistent reservation of type {kind}")),
    }
}

fn hidden(probe: &Probe) -> Vec<Refusal> {
    let area = probe.ata.map(|ata| ata.hidden).unwrap_or_default();
    let areas = [
        (area.host_protected, "host protected area (HPA)"),
        (area.configuration_overlay, "device configuration overlay (DCO)"),
        (area.accessible_max, "accessible max address configuration (AMAC)"),
    ];
    let areas = areas.into_iter().filter(|(sectors, _)| *sectors > 0);
    let boot = probe.boot_areas.iter().filter(|area| !area.blank);
    let boot = boot.map(|area| Refusal::BootArea(area.name.clone()));
    let namespaces = probe.nvme.map(|nvme| nvme.hidden).filter(|&count| count > 0);
    areas
        .map(|(sectors, by)| Refusal::HiddenArea { sectors, by })
        .chain(namespaces.map(Refusal::HiddenNamespaces))
        .chain(boot)
        .collect()
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
    use crate::any::any_probe;
    use crate::disk::{Disk, Holder, HolderKind, Partition};
    use crate::signature::{Signature, SignatureKind};
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
            holders,
            ..Holder::default()
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
        probe.disk.transport = Some("usb".to_owned());
        assert!(judge(&probe)[0].is_boot_medium(), "what a BMC presents says that it is on USB");
        let labelled = std::mem::take(&mut probe.signatures);
        probe.signatures = vec![signature("iso9660", Some("config-2")), signature("udf", None)];
        assert!(
            judge(&probe).is_empty(),
            "a fixed USB disk that looks like an installation medium is storage"
        );
        (probe.disk.transport, probe.signatures) = (None, labelled);
        probe.disk.removable = true;
        assert!(judge(&probe)[0].is_boot_medium());
        for name in ["iso9660", "udf"] {
            probe.signatures = vec![signature(name, None)];
            assert!(judge(&probe)[0].is_boot_medium(), "{name}");
        }
        probe.signatures.clear();
        assert!(judge(&probe).is_empty(), "a removable disk with data is storage");
    }

    #[test]
    fn the_drives_own_reasons_are_reported() {
        let refused =
            |probe: Probe| judge(&probe).iter().map(Refusal::to_string).collect::<Vec<_>>().join("; ");
        let mut scsi = crate::scsi::Capabilities { write_protected: true, ..Default::default() };
        scsi.reservation.keys = 2;
        let words = refused(Probe { scsi: Some(scsi), ..Probe::default() });
        assert_eq!(
            words,
            "it is read-only; it is reserved: 2 keys of other machines are registered; release that first"
        );
        let mut ata = crate::ata::Capabilities::default();
        ata.hidden.host_protected = 2048;
        let words = refused(Probe { ata: Some(ata), ..Probe::default() });
        assert!(words.starts_with("2048 sectors are hidden by the host protected area"), "{words}");
        let reservation = Some(crate::nvme::log::Reservation { kind: 3, registrants: 1 });
        let nvme =
            crate::nvme::Namespace { hidden: 2, reservation, write_protected: true, ..Default::default() };
        let reasons: Vec<Reason> =
            judge(&Probe { nvme: Some(nvme), ..Probe::default() }).iter().map(Refusal::reason).collect();
        assert_eq!(reasons, [Reason::ReadOnly, Reason::Reserved, Reason::Hidden]);
        let nothing = Probe {
            ata: Some(crate::ata::Capabilities::default()),
            nvme: Some(crate::nvme::Namespace::default()),
            scsi: Some(crate::scsi::Capabilities::default()),
            ..Probe::default()
        };
        assert_eq!(judge(&nothing), [], "drives that hide and hold nothing");
        assert!(Reason::ALL.iter().all(|reason| Reason::of(reason.as_str()) == Some(*reason)));
    }

    #[test]
    fn what_an_emmc_keeps_is_a_reason_and_is_named() {
        let area = |number: u8, blank| crate::mmc::BootArea {
            name: format!("mmcblk0boot{number}"),
            size: 4 << 20,
            blank,
        };
        let mut mmc = crate::mmc::Emmc::default();
        mmc.registers.rpmb_size = 128 << 10;
        let mut probe =
            Probe { mmc: Some(mmc), boot_areas: vec![area(0, true), area(1, true)], ..Probe::default() };
        assert!(judge(&probe).is_empty());
        probe.boot_areas[1].blank = false;
        let [refusal] = &judge(&probe)[..] else { panic!("one reason") };
        assert_eq!(refusal.reason(), Reason::Hidden);
        assert!(refusal.to_string().contains("mmcblk0boot1"), "{refusal}");
        assert_eq!(
            probe.out_of_reach(),
            [
                "boot area mmcblk0boot0 of 4096 KiB, which is blank",
                "boot area mmcblk0boot1 of 4096 KiB, with its content",
                "replay protected memory block of 128 KiB"
            ]
        );
        probe.boot_areas.clear();
        probe.mmc = Some(crate::mmc::Emmc { protected: 1, ..mmc });
        assert_eq!(judge(&probe), [Refusal::ReadOnly]);
    }

    #[test]
    fn a_locked_drive_is_not_believed_without_its_psid() {
        let opal = crate::opal::Status { supported: true, owned: true, ..Default::default() };
        let locked = |opal| Probe { opal: Some(opal), ..Probe::default() };
        assert!(judge(&locked(opal)).is_empty(), "owned, and open");
        for opal in
            [crate::opal::Status { locked: true, ..opal }, crate::opal::Status { shadowed: true, ..opal }]
        {
            let mut probe = locked(opal);
            let [Refusal::Unreadable(words)] = &judge(&probe)[..] else { panic!("{opal:?}") };
            assert!(words.contains("agent_opal_psids"), "{words}");
            probe.psid = crate::opal::Psid::parse("P");
            assert!(judge(&probe).is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn a_medium_is_one_by_its_hardware_and_its_content_and_every_use_is_a_reason(probe in any_probe()) {
            let (disk, refusals) = (&probe.disk, judge(&probe));
            let labelled = probe.signatures.iter().any(|s| s.label.as_deref() == Some("ir-vfd-dev"));
            let optical = probe.signatures.iter().any(|s| s.name == "iso9660" || s.name == "udf");
            let usb = disk.transport.as_deref() == Some("usb");
            let medium = disk.removable && (labelled || optical) || usb && labelled;
            prop_assert_eq!(refusals.iter().any(Refusal::is_boot_medium), medium);
            let uses = disk.all_mounts().len() + disk.all_swap().len() + disk.all_holders().len();
            let in_use = refusals.iter().filter(|refusal| refusal.reason() == Reason::InUse).count();
            prop_assert_eq!(in_use, uses);
        }

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
