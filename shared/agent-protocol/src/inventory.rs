//! The hardware of a node, in the names of ironic-python-agent's inventory.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Everything the agent found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Network interfaces with a MAC address.
    pub interfaces: Vec<Interface>,
    /// Processors.
    pub cpu: Cpu,
    /// Whole disks.
    pub disks: Vec<Disk>,
    /// Memory.
    pub memory: Memory,
    /// IPv4 address of the BMC, `0.0.0.0` when it has none.
    pub bmc_address: Option<String>,
    /// IPv6 address of the BMC.
    pub bmc_v6address: Option<String>,
    /// MAC address of the BMC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc_mac: Option<String>,
    /// DMI identity of the machine.
    pub system_vendor: SystemVendor,
    /// How it booted.
    pub boot: Boot,
    /// Host name of the ramdisk.
    pub hostname: String,
    /// Anneal's: external hardware managers, when there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anneal: Option<External>,
}

/// State, findings and errors of the external hardware managers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct External {
    /// One for every manager that this node was given.
    #[serde(default)]
    pub hardware_managers: Vec<ManagerReport>,
    /// Probes of the agent that are left out on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<Suppression>,
}

/// An external hardware manager.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagerReport {
    /// Name.
    pub name: String,
    /// `VERSION@DIGEST12`.
    pub version: String,
    /// Vendor, by its manifest.
    pub vendor: String,
    /// `ready`, `unsupported` (it says this machine is none of its own), `failed`, or `refused` (never started).
    pub state: String,
    /// Errors, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<ManagerRecord>,
    /// What it knows of the hardware: `bios_settings`, `firmware`, `raid`, `extra`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub patch: Map<String, Value>,
}

/// Something that went wrong with a manager.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagerRecord {
    /// Unix time in seconds.
    pub at: f64,
    /// A sentence.
    pub what: String,
}

/// A probe that is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppression {
    /// `bmc` or `lldp`.
    pub probe: String,
    /// The manager that says so.
    pub manager: String,
    /// Why.
    pub reason: String,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// Kernel name.
    pub name: String,
    /// MAC address, lower case with colons.
    pub mac_address: String,
    /// First IPv4 address.
    pub ipv4_address: Option<String>,
    /// First global IPv6 address.
    pub ipv6_address: Option<String>,
    /// Link up.
    pub has_carrier: bool,
    /// Raw LLDP TLVs `[type, hex]`, when collected.
    pub lldp: Option<Value>,
    /// PCI vendor id, `0x8086`.
    pub vendor: Option<String>,
    /// PCI device id.
    pub product: Option<String>,
    /// Mb/s.
    pub speed_mbps: Option<u64>,
    /// Kernel driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// PCI address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_address: Option<String>,
}

/// Processors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Model name.
    pub model_name: String,
    /// MHz as text, IPA's form.
    pub frequency: Option<String>,
    /// Logical processors.
    pub count: u64,
    /// `x86_64`.
    pub architecture: String,
    /// Feature flags.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_count: Option<u64>,
}

/// Memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes the kernel has.
    pub total: u64,
    /// MiB that are fitted, by DMI where it says so.
    pub physical_mb: Option<u64>,
}

/// DMI identity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemVendor {
    /// Product.
    pub product_name: String,
    /// Serial number.
    pub serial_number: String,
    /// Manufacturer.
    pub manufacturer: String,
    /// BIOS.
    #[serde(default)]
    pub firmware: Firmware,
}

/// BIOS identity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Firmware {
    /// Vendor.
    pub vendor: String,
    /// Version.
    pub version: String,
    /// Build date.
    pub build_date: String,
}

/// How the node booted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// `bios` or `uefi`.
    pub current_boot_mode: String,
    /// MAC that PXE used (`BOOTIF`).
    pub pxe_interface: Option<String>,
}

/// A whole disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// `/dev/sda`.
    pub name: String,
    /// Model.
    pub model: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Spins.
    pub rotational: bool,
    /// World wide name.
    pub wwn: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Vendor.
    pub vendor: Option<String>,
    /// World wide name with vendor extension.
    pub wwn_with_extension: Option<String>,
    /// Vendor extension of the WWN.
    pub wwn_vendor_extension: Option<String>,
    /// SCSI address `host:channel:target:lun`.
    pub hctl: Option<String>,
    /// `/dev/disk/by-path/…` name.
    pub by_path: Option<String>,
    /// Logical sector size in bytes.
    pub logical_sectors: Option<u64>,
    /// Physical sector size in bytes.
    pub physical_sectors: Option<u64>,
    /// `nvme`, `sata`, `sas`, `virtio`, `usb`, `loop` …
    pub tran: Option<String>,
    /// What Anneal adds: partitions, holders, read-only, signatures.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub anneal: Map<String, Value>,
}
