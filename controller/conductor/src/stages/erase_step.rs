//! The steps of the agent that erase disks.

use model::CatalogueStep;

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
}
