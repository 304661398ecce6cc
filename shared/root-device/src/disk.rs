//! What hints and the choice of a root disk are about.

use serde_json::Value;

/// A whole disk, as far as it matters for the choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// Device node, `/dev/sda`; not an identity, it may differ at the next boot.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Model.
    pub model: Option<String>,
    /// Vendor.
    pub vendor: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// World wide name: `0x5000c500a1b2c3d4`, `eui.…`.
    pub wwn: Option<String>,
    /// World wide name with its vendor extension.
    pub wwn_with_extension: Option<String>,
    /// Vendor extension of the world wide name.
    pub wwn_vendor_extension: Option<String>,
    /// SCSI address `host:channel:target:lun`.
    pub hctl: Option<String>,
    /// How it is attached: `nvme`, `sata`, `usb`, …
    pub transport: Option<String>,
    /// Whether the medium spins.
    pub rotational: bool,
    /// Whether the medium can be taken out.
    pub removable: bool,
    /// Whether the kernel refuses writes.
    pub read_only: bool,
}

impl Disk {
    /// An entry of `inventory.disks`, as agents report it. ironic-python-agent reports neither `removable` nor
    /// `read_only`: both count as false. `None` without name or size.
    pub fn of_inventory(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let flag = |value: &Value| value.as_bool().unwrap_or(false);
        Some(Self {
            name: text("name")?,
            size: entry["size"].as_u64()?,
            model: text("model"),
            vendor: text("vendor"),
            serial: text("serial"),
            wwn: text("wwn"),
            wwn_with_extension: text("wwn_with_extension"),
            wwn_vendor_extension: text("wwn_vendor_extension"),
            hctl: text("hctl"),
            transport: text("tran"),
            rotational: flag(&entry["rotational"]),
            removable: flag(&entry["anneal"]["removable"]),
            read_only: flag(&entry["anneal"]["read_only"]),
        })
    }

    /// The disk for an operator: `/dev/sda (serial S1)`.
    pub fn describe(&self) -> String {
        match (&self.serial, &self.wwn) {
            (Some(serial), _) => format!("{} (serial {serial})", self.name),
            (None, Some(wwn)) => format!("{} (WWN {wwn})", self.name),
            (None, None) => format!("{} (no serial)", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Disk;
    use serde_json::json;

    #[test]
    fn an_entry_of_an_inventory_is_read_as_agents_report_it() {
        let entry = json!({
            "name": "/dev/sda", "size": 8, "model": "M", "vendor": "", "serial": "S1", "wwn": null, "rotational": true,
            "hctl": "0:0:0:0", "tran": "usb", "anneal": {"removable": true, "read_only": false},
        });
        let expected = Disk {
            name: "/dev/sda".into(),
            size: 8,
            model: Some("M".into()),
            serial: Some("S1".into()),
            hctl: Some("0:0:0:0".into()),
            transport: Some("usb".into()),
            rotational: true,
            removable: true,
            ..Disk::default()
        };
        assert_eq!(Disk::of_inventory(&entry), Some(expected));
        for odd in
            [json!(null), json!({"name": "/dev/sda"}), json!({"size": 8}), json!({"name": 1, "size": 8})]
        {
            assert_eq!(Disk::of_inventory(&odd), None, "{odd}");
        }
    }

    #[test]
    fn a_disk_is_described_by_what_identifies_it() {
        let disk = |serial: Option<&str>, wwn: Option<&str>| Disk {
            name: "/dev/sda".into(),
            serial: serial.map(str::to_owned),
            wwn: wwn.map(str::to_owned),
            ..Disk::default()
        };
        assert_eq!(disk(Some("S1"), Some("0x5")).describe(), "/dev/sda (serial S1)");
        assert_eq!(disk(None, Some("0x5")).describe(), "/dev/sda (WWN 0x5)");
        assert_eq!(disk(None, None).describe(), "/dev/sda (no serial)");
    }
}
