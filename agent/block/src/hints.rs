//! Root device hints and the disks of this machine.

use crate::disk::Disk;
use crate::probe::Probe;
use root_device::Hint;

impl From<&Disk> for root_device::Disk {
    fn from(disk: &Disk) -> Self {
        Self {
            name: disk.path.to_string_lossy().into_owned(),
            size: disk.size,
            model: disk.model.clone(),
            vendor: disk.vendor.clone(),
            serial: disk.serial.clone(),
            wwn: disk.wwn.clone(),
            wwn_with_extension: disk.wwn_with_extension.clone(),
            wwn_vendor_extension: disk.wwn_vendor_extension.clone(),
            hctl: disk.hctl.clone(),
            transport: disk.transport.clone(),
            rotational: disk.rotational,
            removable: disk.removable,
            read_only: disk.read_only,
        }
    }
}

impl Probe {
    /// Whether a hint names this disk; `volume_name` is that of the md array that it is a member of.
    pub fn is_meant_by(&self, hint: &Hint) -> bool {
        hint.matches(&(&self.disk).into(), &volumes(self))
    }
}

/// Names of the md arrays that the disk is a member of, also by a volume of which it is a part: the label is
/// `HOST:NAME`, or the name alone.
fn volumes(probe: &Probe) -> Vec<String> {
    let all = probe.signatures.iter().chain(probe.above.iter().flat_map(|layer| &layer.signatures));
    let members = all.filter(|signature| signature.name == "linux_raid_member");
    let labels = members.filter_map(|signature| signature.label.as_deref());
    labels.map(|label| label.split_once(':').map_or(label, |(_, name)| name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{Signature, SignatureKind};

    #[test]
    fn a_hint_means_a_disk_by_its_attributes_or_by_the_array_that_it_is_a_member_of() {
        let member = Signature {
            kind: SignatureKind::Member,
            name: "linux_raid_member".into(),
            label: Some("host:large".into()),
            uuid: None,
            offset: None,
            length: 0,
            range: (0, 1),
        };
        let disk = Disk { path: "/dev/sda".into(), serial: Some("S1".into()), ..Disk::default() };
        let probe = Probe { disk, signatures: vec![member], ..Probe::default() };
        for (name, value, expected) in [
            ("volume_name", "large", true),
            ("volume_name", "small", false),
            ("name", "/dev/sda", true),
            ("serial", "S1", true),
            ("serial", "S2", false),
        ] {
            let hint = Hint::parse([(name, value.to_owned())]).unwrap();
            assert_eq!(probe.is_meant_by(&hint), expected, "{hint}");
        }
    }
}
