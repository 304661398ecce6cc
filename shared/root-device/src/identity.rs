//! What identifies a disk.

use crate::disk::Disk;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Serial number and world wide name of a disk: what it is known by, whatever its name is after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskIdentity {
    /// Its serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Its world wide name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
}

impl DiskIdentity {
    /// `None` where there is neither, or both are empty.
    pub fn of(serial: Option<&str>, wwn: Option<&str>) -> Option<Self> {
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let identity = Self { serial: text(serial), wwn: text(wwn) };
        (identity.serial.is_some() || identity.wwn.is_some()).then_some(identity)
    }

    /// Whether it is that of `disk`.
    pub fn is_of(&self, disk: &Disk) -> bool {
        self.fits(disk.serial.as_deref(), disk.wwn.as_deref())
    }

    /// Whether it is that of a disk with these names: both where both are known, since two disks may have the same
    /// serial number.
    pub fn fits(&self, serial: Option<&str>, wwn: Option<&str>) -> bool {
        let same = |wanted: &Option<String>, has: Option<&str>| wanted.is_none() || wanted.as_deref() == has;
        let known = self.serial.is_some() || self.wwn.is_some();
        known && same(&self.serial, serial) && same(&self.wwn, wwn)
    }
}

impl fmt::Display for DiskIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        write!(f, "serial {}, WWN {}", word(&self.serial), word(&self.wwn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(serial: Option<&str>, wwn: Option<&str>) -> Disk {
        Disk { serial: serial.map(str::to_owned), wwn: wwn.map(str::to_owned), ..Disk::default() }
    }

    #[test]
    fn what_is_known_of_a_disk_must_be_the_same() {
        let both = DiskIdentity::of(Some("S1"), Some("0x5")).expect("an identity");
        assert!(both.is_of(&disk(Some("S1"), Some("0x5"))));
        assert!(!both.is_of(&disk(Some("S1"), Some("0x6"))) && !both.is_of(&disk(Some("S1"), None)));
        let serial = DiskIdentity::of(Some("S1"), Some("")).expect("an identity");
        assert!(serial.is_of(&disk(Some("S1"), Some("0x6"))) && !serial.is_of(&disk(None, Some("0x6"))));
        assert_eq!(serial.to_string(), "serial S1, WWN none");
    }

    #[test]
    fn without_serial_number_and_wwn_there_is_no_identity() {
        assert_eq!((DiskIdentity::of(None, None), DiskIdentity::of(Some(""), None)), (None, None));
        let none = DiskIdentity { serial: None, wwn: None };
        assert!(!none.is_of(&disk(None, None)), "it would be that of every such disk");
    }

    #[test]
    fn exact_bytes() {
        let serial = DiskIdentity { serial: Some("S1".into()), wwn: None };
        for (identity, text) in [
            (serial, r#"{"serial":"S1"}"#),
            (DiskIdentity { serial: None, wwn: Some("0x5".into()) }, r#"{"wwn":"0x5"}"#),
        ] {
            assert_eq!(serde_json::to_string(&identity).expect("JSON"), text);
            assert_eq!(serde_json::from_str::<DiskIdentity>(text).expect("an identity"), identity);
        }
        // A member that is not known could have named another disk.
        assert!(serde_json::from_str::<DiskIdentity>(r#"{"serial":"S1","uuid":"x"}"#).is_err());
    }
}
