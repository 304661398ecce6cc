//! Boot devices, indicators and virtual media, with Ironic's wire strings.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A string that is none of an enum's wire strings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {noun} '{given}'; known are: {known}")]
pub struct ParseError {
    noun: &'static str,
    given: String,
    known: String,
}

/// A plain enum whose variants are strings on the wire.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident, $noun:literal { $($(#[$vdoc:meta])* $variant:ident = $wire:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The string Ironic uses on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                Self::ALL.iter().copied().find(|known| known.as_str() == text).ok_or_else(|| ParseError {
                    noun: $noun,
                    given: text.chars().take(64).collect(),
                    known: Self::ALL.iter().map(|known| known.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

wire_enum! {
    /// Where a node boots from (`ironic.common.boot_devices`).
    BootDevice, "boot device" {
        /// Network boot by PXE.
        Pxe = "pxe",
        /// The first disk.
        Disk = "disk",
        /// Optical drive or virtual media seen as one.
        Cdrom = "cdrom",
        /// The firmware's set-up.
        Bios = "bios",
        /// First disk, safe mode (IPMI).
        Safe = "safe",
        /// Floppy disk or virtual floppy.
        Floppy = "floppy",
        /// USB device.
        Usb = "usb",
        /// UEFI HTTP boot.
        UefiHttp = "uefihttp",
    }
}

wire_enum! {
    /// Firmware mode of a boot (`ironic.common.boot_modes`).
    BootMode, "boot mode" {
        /// Legacy BIOS.
        Bios = "bios",
        /// UEFI.
        Uefi = "uefi",
    }
}

wire_enum! {
    /// State of an indicator (`ironic.common.indicator_states`).
    IndicatorState, "indicator state" {
        /// Blinking.
        Blinking = "blinking",
        /// Dark.
        Off = "off",
        /// Lit.
        On = "on",
        /// The BMC does not report it.
        Unknown = "unknown",
    }
}

wire_enum! {
    /// Kind of a virtual drive (`ironic.common.boot_devices.VMEDIA_DEVICES`).
    MediaKind, "virtual media device" {
        /// A USB stick.
        Disk = "disk",
        /// An optical drive.
        Cdrom = "cdrom",
        /// A floppy drive.
        Floppy = "floppy",
    }
}

/// An indicator: an LED of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indicator {
    /// What it is on: `system`, `chassis`.
    pub component: &'static str,
    /// Its name there.
    pub name: String,
    /// Whether it can be looked at only.
    pub read_only: bool,
    /// What it can do.
    pub states: &'static [IndicatorState],
}

/// A virtual drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VirtualDrive {
    /// What it passes for, in Redfish's names: `CD`, `DVD`, `Floppy`, `USBStick`.
    pub media_types: Vec<String>,
    /// Whether something lies in it.
    pub inserted: bool,
    /// URL of that; without a password.
    pub image: Option<String>,
}

/// The boot override that a BMC reports; `None` is "the BMC does not say".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BootSetting {
    /// Device, when an override is in force and its name is known.
    pub device: Option<BootDevice>,
    /// For every boot (true) or the next only (false). Some BMCs report `Once` as continuous.
    pub persistent: Option<bool>,
    /// Firmware mode.
    pub mode: Option<BootMode>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_strings_round_trip_and_unknown_ones_are_named() {
        for device in BootDevice::ALL {
            assert_eq!(device.as_str().parse(), Ok(*device));
        }
        let error = "tape".parse::<BootDevice>().unwrap_err().to_string();
        assert!(error.contains("unknown boot device 'tape'") && error.contains("pxe, disk"), "{error}");
    }
}
