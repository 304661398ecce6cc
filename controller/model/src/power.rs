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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn the_words_on_the_wire_are_ironics() {
        let words = ["power on", "power off", "rebooting", "soft power off", "soft rebooting"];
        for (target, word) in PowerTarget::ALL.into_iter().zip(words) {
            assert_eq!((target.as_str(), PowerTarget::parse(word)), (word, Some(target)));
            assert_eq!(to_value(target).unwrap(), word);
            assert_eq!(from_value::<PowerTarget>(json!(word)).unwrap(), target);
        }
        for (state, word) in [(PowerState::On, "power on"), (PowerState::Off, "power off")] {
            assert_eq!((state.as_str(), to_value(state).unwrap()), (word, json!(word)));
        }
        assert!(from_value::<PowerState>(json!("on")).is_err());
        assert!(from_value::<PowerTarget>(json!("on")).is_err());
        assert_eq!(PowerTarget::parse("on"), None);
    }
}
