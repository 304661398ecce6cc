//! Which disks a node may lack the next time it is looked at.

use agent_protocol::record::BOOT_MEDIUM;
use block::{Probe, Refusal};
use root_device::Hint;

/// Why the disk is listed and need not be there the next time; `None` for a disk that the node has. `kept` are the hints
/// of the disks that the operator keeps.
pub(crate) fn exempt(probe: &Probe, kept: &[Hint]) -> Option<&'static str> {
    let disk = &probe.disk;
    let network = matches!(disk.transport.as_deref(), Some("fc" | "iscsi"));
    if block::judge(probe).iter().any(Refusal::is_boot_medium) {
        Some(BOOT_MEDIUM)
    } else if kept.iter().any(|hint| probe.is_meant_by(hint)) {
        Some("kept")
    } else if disk.removable {
        Some("removable")
    } else if disk.raid_volume {
        Some("raid-volume")
    } else if network {
        Some("network-volume")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Disk, Signature, SignatureKind};

    fn probe(change: impl FnOnce(&mut Disk)) -> Probe {
        let mut disk = Disk { name: "sda".into(), size: 1 << 30, logical_block: 512, ..Disk::default() };
        change(&mut disk);
        Probe { disk, ..Probe::default() }
    }

    #[test]
    fn only_what_comes_and_goes_by_design_is_exempt() {
        let transport = |name: &str| probe(|disk| disk.transport = Some(name.into()));
        for own in ["sata", "sas", "nvme", "virtio", "usb", "mmc"] {
            assert_eq!(exempt(&transport(own), &[]), None, "{own}");
        }
        for foreign in ["fc", "iscsi"] {
            assert_eq!(exempt(&transport(foreign), &[]), Some("network-volume"));
        }
        assert_eq!(exempt(&probe(|disk| disk.removable = true), &[]), Some("removable"));
        assert_eq!(exempt(&probe(|disk| disk.raid_volume = true), &[]), Some("raid-volume"));
        let mut medium = probe(|disk| disk.removable = true);
        medium.signatures.push(Signature {
            kind: SignatureKind::Filesystem,
            name: "iso9660".into(),
            label: None,
            uuid: None,
            offset: None,
            length: 0,
            range: (0, 0),
        });
        assert_eq!(exempt(&medium, &[]), Some(BOOT_MEDIUM));
        let hint = Hint::parse([("serial", "S1".to_owned())]).unwrap();
        let named = probe(|disk| disk.serial = Some("S1".into()));
        assert_eq!(exempt(&named, std::slice::from_ref(&hint)), Some("kept"));
        assert_eq!(exempt(&probe(|disk| disk.serial = Some("S2".into())), &[hint]), None);
    }
}
