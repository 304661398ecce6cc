//! What the report of an erase step must contain before the step counts as done, by the level of the step.

use crate::stages::erase_step::EraseStep;
use agent_protocol::record::{BOOT_MEDIUM, DiskRecord, Outcome};
use model::disks::{KnownDisk, ReportedDisk};
use model::{Node, storage};

impl EraseStep {
    /// Why a report of these disks is too little for the step, called `label`, of this node to have succeeded.
    pub(super) fn shortfall(self, node: &Node, label: &str, disks: &[DiskRecord]) -> Option<String> {
        match storage::missing(node, &seen(disks)) {
            Err(unreadable) => {
                return Some(format!("the disks of step {label} cannot be checked: {unreadable}"));
            }
            Ok(missing) if !missing.is_empty() => {
                let each: Vec<String> =
                    missing.iter().map(|name| format!("disk {name} is missing")).collect();
                return Some(format!(
                    "{}: the report of step {label} does not list it; if it has left the node, accept that with \
                     anneal node disks retire",
                    each.join(", ")
                ));
            }
            Ok(_) => {}
        }
        let own = |disk: &&DiskRecord| disk.exempt.as_deref() != Some(BOOT_MEDIUM);
        if !disks.iter().any(|disk| own(&disk)) && !storage::is_diskless(node) {
            return Some(format!(
                "the report of step {label} has no disk of the node; if the node has none, set properties.{}",
                storage::DISKLESS
            ));
        }
        let too_little =
            |disk: &&DiskRecord| self == Self::Devices && disk.outcome == Outcome::MetadataErased;
        let disk = disks.iter().find(too_little)?;
        let serial = disk.serial.as_deref().unwrap_or("none");
        Some(format!("step {label} erased only the metadata of disk {} (serial {serial})", disk.device))
    }
}

/// The disks of a report, as far as a node remembers them.
pub(super) fn seen(disks: &[DiskRecord]) -> Vec<ReportedDisk> {
    let seen = |disk: &DiskRecord| ReportedDisk {
        disk: KnownDisk { serial: disk.serial.clone(), wwn: disk.wwn.clone(), model: disk.model.clone() },
        exempt: disk.exempt.is_some(),
    };
    disks.iter().map(seen).collect()
}
