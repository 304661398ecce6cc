//! What the report of an erase step must contain before the step counts as done, by the level of the step.

use agent_protocol::record::{BOOT_MEDIUM, DiskRecord, Outcome};
use model::disks::{KnownDisk, ReportedDisk};
use model::{CatalogueStep, Node, storage};

/// A step of the agent that erases disks (`hwm-generic/src/steps.rs`; a vendor's manager can take none of these names).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EraseStep {
    /// Erases each disk.
    Devices,
    /// Erases each disk that one command erases, and the metadata of the others.
    Express,
    /// Erases the metadata of each disk.
    Metadata,
}

impl EraseStep {
    /// The erase step that this step is, if it is one.
    pub(super) fn of(step: &CatalogueStep) -> Option<Self> {
        match (step.interface.as_str(), step.step.as_str()) {
            ("deploy", "erase_devices") => Some(Self::Devices),
            ("deploy", "erase_devices_express") => Some(Self::Express),
            ("deploy", "erase_devices_metadata") => Some(Self::Metadata),
            _ => None,
        }
    }

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
