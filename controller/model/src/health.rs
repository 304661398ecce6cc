//! Health of a node's hardware.

use serde::{Deserialize, Serialize};

/// Health of the whole hardware as the BMC reports it, with Redfish's names, which Ironic uses, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// Nothing is wrong.
    #[serde(rename = "OK")]
    Ok,
    /// Something needs attention.
    Warning,
    /// Something needs attention at once.
    Critical,
}

impl Health {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Ok, Self::Warning, Self::Critical];

    /// Wire string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "Warning",
            Self::Critical => "Critical",
        }
    }

    /// The health that a wire string names.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|health| health.as_str() == text)
    }
}
