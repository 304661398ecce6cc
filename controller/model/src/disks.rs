//! Disks as a node remembers them.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The disks of a node, as they were when it was looked at last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDisks {
    /// Disks that the next erase must report: of the last inspection by Anneal's agent, and of the last certificate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<KnownDisk>,
    /// Disks that an operator has retired since the last certificate; the next one names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired: Vec<RetiredDisk>,
}

impl KnownDisks {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.retired.is_empty()
    }
}

/// A disk that identifies itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDisk {
    /// Serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// World wide name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A disk that left its node, accepted by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredDisk {
    /// The disk.
    #[serde(flatten)]
    pub disk: KnownDisk,
    /// The operator's reason.
    pub reason: String,
    /// When it was accepted.
    pub at: Timestamp,
}

/// A disk as a report lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedDisk {
    /// What it says of itself.
    pub disk: KnownDisk,
    /// It need not be there the next time: removable, virtual, a volume of a RAID controller, or kept by the operator.
    pub exempt: bool,
}

impl KnownDisk {
    /// Whether it says anything that distinguishes it from other disks.
    pub(crate) fn has_identity(&self) -> bool {
        self.serial.is_some() || self.wwn.is_some()
    }

    /// Whether the two are one disk: all that both say agrees, and there is something.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let agree = |one: &Option<String>, other: &Option<String>| Some(one.as_ref()? == other.as_ref()?);
        let (serial, wwn) = (agree(&self.serial, &other.serial), agree(&self.wwn, &other.wwn));
        serial != Some(false) && wwn != Some(false) && (serial.is_some() || wwn.is_some())
    }

    /// Whether `name` is its serial number or its world wide name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        [&self.serial, &self.wwn].into_iter().flatten().any(|own| own == name)
    }

    /// Its serial number, or else its world wide name.
    pub fn name(&self) -> &str {
        self.serial.as_deref().or(self.wwn.as_deref()).unwrap_or("none")
    }
}
