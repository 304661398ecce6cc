//! Health of a node's hardware.

use serde::{Deserialize, Serialize};

/// What the BMC says of the hardware as a whole, in Redfish's words, which are Ironic's too.
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

    /// The health that a wire string names; none of any other.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|health| health.as_str() == text)
    }
}
