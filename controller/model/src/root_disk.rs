//! The disk that a deployment wrote.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What identifies the disk with the operating system, whatever its name is after a reboot: a rebuild writes no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootDisk {
    /// Its serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Its WWN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
}

impl RootDisk {
    /// From what the step `write_image` reported; `None` where it names neither serial number nor WWN.
    pub fn reported(report: &Value) -> Option<Self> {
        let text =
            |name: &str| report["image"][name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let (serial, wwn) = (text("serial"), text("wwn"));
        (serial.is_some() || wwn.is_some()).then_some(Self { serial, wwn })
    }
}

#[cfg(test)]
mod tests {
    use super::RootDisk;
    use serde_json::json;

    #[test]
    fn a_disk_without_identity_is_not_remembered() {
        let disk = RootDisk::reported(&json!({"image": {"device": "/dev/sda", "serial": "S1", "wwn": null}}));
        assert_eq!(disk, Some(RootDisk { serial: Some("S1".into()), wwn: None }));
        for report in
            [json!(null), json!({"image": {"serial": ""}}), json!({"image": {"device": "/dev/sda"}})]
        {
            assert_eq!(RootDisk::reported(&report), None);
        }
    }
}
