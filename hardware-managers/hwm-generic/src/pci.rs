//! PCI functions (`/sys/bus/pci/devices`).

use crate::sysfs::{link, names, number, text};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A PCI function. Ids are as the kernel writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PciDevice {
    /// `0000:3b:00.0`.
    pub address: String,
    /// `0x8086`.
    pub vendor: String,
    /// `0x1521`.
    pub device: String,
    /// Base class, subclass and programming interface: `0x020000`.
    pub class: String,
    /// Name of the class: `Ethernet controller`.
    pub class_name: &'static str,
    /// `0x01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// NUMA node, where it belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// Kernel driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// By what the kernel finds a module for it: `pci:v00008086d00001521sv…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modalias: Option<String>,
    /// Whether its driver has made a SCSI host of it.
    #[serde(skip)]
    pub has_scsi_host: bool,
    /// Whether its driver has made anything of it that can have disks: a host of whatever kind, a disk, or a bus of its own.
    #[serde(skip)]
    pub has_host_or_disk: bool,
}

/// Classes of sysfs with what a storage driver makes of a function. Behind Intel's VMD it is another PCI bus.
const MADE_BY_STORAGE_DRIVERS: [&str; 5] = ["scsi_host", "nvme", "mmc_host", "block", "pci_bus"];

/// All functions by address. A function that is being removed and no longer reports its identity is left out.
pub fn devices(sys: &Path) -> Vec<PciDevice> {
    let bus = sys.join("bus/pci/devices");
    let made = MADE_BY_STORAGE_DRIVERS.map(|class| sys.join("class").join(class));
    let made: Vec<PathBuf> = made
        .iter()
        .flat_map(|class| names(class).into_iter().map(|name| class.join(name)))
        .filter_map(|entry| entry.canonicalize().ok())
        .collect();
    let device = |address: String| {
        let function = bus.join(&address);
        let place = function.canonicalize().ok()?;
        let has_scsi_host = names(&function).iter().any(|name| is_scsi_host(name));
        let class = text(&function.join("class"))?;
        Some(PciDevice {
            vendor: text(&function.join("vendor"))?,
            device: text(&function.join("device"))?,
            class_name: class_name(&class),
            class,
            revision: text(&function.join("revision")),
            // The kernel reports -1 for no NUMA node.
            numa_node: number(&function.join("numa_node")),
            driver: link(&function.join("driver")),
            modalias: text(&function.join("modalias")),
            has_scsi_host,
            has_host_or_disk: has_scsi_host || made.iter().any(|entry| entry.starts_with(&place)),
            address,
        })
    };
    names(&bus).into_iter().filter_map(device).collect()
}

/// `host7`, as the kernel names them.
fn is_scsi_host(name: &str) -> bool {
    let number = name.strip_prefix("host").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Base classes and, with four digits, subclasses (PCI Code and ID Assignment Specification 1.16). The first that
/// the class begins with is its name.
const CLASSES: &[(&str, &str)] = &[
    ("0100", "SCSI storage controller"),
    ("0101", "IDE controller"),
    ("0104", "RAID controller"),
    ("0106", "SATA controller"),
    ("0107", "SAS controller"),
    ("0108", "Non-volatile memory controller"),
    ("01", "Mass storage controller"),
    ("0200", "Ethernet controller"),
    ("0207", "InfiniBand controller"),
    ("0208", "Fabric controller"),
    ("02", "Network controller"),
    ("0300", "VGA controller"),
    ("0302", "3D controller"),
    ("03", "Display controller"),
    ("04", "Multimedia controller"),
    ("05", "Memory controller"),
    ("0600", "Host bridge"),
    ("0601", "ISA bridge"),
    ("0604", "PCI bridge"),
    ("06", "Bridge"),
    ("07", "Communication controller"),
    ("0806", "IOMMU"),
    ("08", "System peripheral"),
    ("09", "Input device controller"),
    ("0a", "Docking station"),
    ("0b", "Processor"),
    ("0c03", "USB controller"),
    ("0c04", "Fibre Channel controller"),
    ("0c05", "SMBus controller"),
    ("0c07", "IPMI interface"),
    ("0c", "Serial bus controller"),
    ("0d", "Wireless controller"),
    ("0e", "Intelligent controller"),
    ("0f", "Satellite communication controller"),
    ("10", "Encryption controller"),
    ("11", "Signal processing controller"),
    ("12", "Processing accelerator"),
    ("13", "Non-essential instrumentation"),
    ("40", "Coprocessor"),
];

fn class_name(class: &str) -> &'static str {
    let digits = class.trim_start_matches("0x").to_lowercase();
    let found = CLASSES.iter().find(|(begin, _)| digits.starts_with(begin));
    found.map_or("Unclassified device", |(_, name)| name)
}
