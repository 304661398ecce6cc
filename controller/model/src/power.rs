//! Power states and targets, with Ironic's names.

use serde::{Deserialize, Serialize};

/// Whether a node has power, as last read from its BMC. A node on its way down is still [`PowerState::On`] until the BMC
/// reports that it is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PowerState {
    /// On.
    #[serde(rename = "power on")]
    On,
    /// Off.
    #[serde(rename = "power off")]
    Off,
}

impl PowerState {
    /// Wire string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "power on",
            Self::Off => "power off",
        }
    }
}

/// What `PUT …/states/power` can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PowerTarget {
    /// Switch on.
    #[serde(rename = "power on")]
    On,
    /// Switch off hard.
    #[serde(rename = "power off")]
    Off,
    /// Hard reset, or off and on.
    #[serde(rename = "rebooting")]
    Reboot,
    /// Ask the operating system to shut down (1.27).
    #[serde(rename = "soft power off")]
    SoftOff,
    /// Ask the operating system to reboot (1.27).
    #[serde(rename = "soft rebooting")]
    SoftReboot,
}

impl PowerTarget {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::On, Self::Off, Self::Reboot, Self::SoftOff, Self::SoftReboot];

    /// Wire string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "power on",
            Self::Off => "power off",
            Self::Reboot => "rebooting",
            Self::SoftOff => "soft power off",
            Self::SoftReboot => "soft rebooting",
        }
    }

    /// The target a wire string names.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.as_str() == text)
    }

    /// The state the node is in once the target is reached.
    pub fn resulting_state(self) -> PowerState {
        match self {
            Self::Off | Self::SoftOff => PowerState::Off,
            Self::On | Self::Reboot | Self::SoftReboot => PowerState::On,
        }
    }
}
