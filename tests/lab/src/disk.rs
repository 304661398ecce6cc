//! Disks of an emulated node: an image file on a bus, with an identity and perhaps a fault.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, bail};
use serde_json::{Value, json};

/// How a disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    /// An NVMe controller with one namespace.
    Nvme,
    /// A SATA disk on the chipset's AHCI.
    Sata,
    /// A SCSI disk on a virtio-scsi HBA.
    Scsi,
    /// virtio-blk.
    Virtio,
}

impl Bus {
    /// The word used on command lines and in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nvme => "nvme",
            Self::Sata => "sata",
            Self::Scsi => "scsi",
            Self::Virtio => "virtio",
        }
    }
}

impl FromStr for Bus {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        let all = [Self::Nvme, Self::Sata, Self::Scsi, Self::Virtio];
        match all.into_iter().find(|bus| bus.as_str() == word) {
            Some(bus) => Ok(bus),
            None => bail!("{word:?} is no bus: nvme, sata, scsi or virtio"),
        }
    }
}

/// SATA ports of the emulated chipset.
pub const SATA_PORTS: usize = 6;

/// Fault of a disk.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Every write that touches this 512-byte sector fails with EIO (`None`: every write at all).
    WriteError(Option<u64>),
    /// Every read that touches this 512-byte sector fails with EIO.
    ReadError(u64),
    /// Writes are refused. QEMU can do this on SCSI and virtio only.
    ReadOnly,
    /// At most so many bytes are written in a second: an erase that can be interrupted.
    SlowWrites(u64),
}

/// One disk.
#[derive(Debug, Clone)]
pub struct DiskSpec {
    /// Raw image file.
    pub file: PathBuf,
    /// How it is attached.
    pub bus: Bus,
    /// Serial number that the guest sees; at most 20 characters.
    pub serial: String,
    /// World wide name; SATA and SCSI only.
    pub wwn: Option<u64>,
    /// Bytes of a sector, logical and physical. QEMU's SATA disks have 512.
    pub sector: u32,
    /// Zeros that the guest writes become holes of the image: for large disks, of which the machine of the tests has not enough.
    pub keeps_holes: bool,
    /// Its fault.
    pub faults: Vec<Fault>,
}

impl DiskSpec {
    /// A sound disk without a world wide name, with sectors of 512 bytes.
    #[must_use]
    pub fn new(file: impl Into<PathBuf>, bus: Bus, serial: &str) -> Self {
        let (file, serial) = (file.into(), serial.to_owned());
        Self { file, bus, serial, wwn: None, sector: 512, keeps_holes: false, faults: Vec::new() }
    }

    /// The same disk with sectors of so many bytes; not for SATA.
    #[must_use]
    pub fn with_sectors(self, sector: u32) -> Self {
        Self { sector, ..self }
    }

    /// The same disk, whose image stays as small as it is while the guest writes zeros.
    #[must_use]
    pub fn with_holes(self) -> Self {
        Self { keeps_holes: true, ..self }
    }

    /// Adds a fault.
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// QEMU options for disk number `index` of a node; `port` is its number among the SATA disks.
    #[must_use]
    pub fn qemu_args(&self, index: usize, port: usize) -> Vec<String> {
        let mut args = Vec::new();
        let limit = self.faults.iter().find_map(|fault| match fault {
            Fault::SlowWrites(rate) => Some(*rate),
            _ => None,
        });
        if let Some(rate) = limit {
            let group = json!({
                "qom-type": "throttle-group",
                "id": format!("throttle{index}"),
                "limits": {"bps-write": rate},
            });
            args.extend(["-object".to_owned(), group.to_string()]);
        }
        args.extend(["-blockdev".to_owned(), self.block_device(index).to_string()]);
        args.extend(self.frontend(index, port));
        args
    }

    /// The chain of block drivers, from the guest's side: raw, throttle, blkdebug, file.
    fn block_device(&self, index: usize) -> Value {
        let read_only = self.faults.contains(&Fault::ReadOnly);
        let mut chain = json!({
            "driver": "file",
            "filename": self.file,
            "read-only": read_only,
            "discard": "unmap",
            // The host does not lose power here; the guest's flushes need not reach the host's disk.
            "cache": {"direct": false, "no-flush": true},
        });
        let rules: Vec<Value> = self.faults.iter().filter_map(error_rule).collect();
        if !rules.is_empty() {
            chain = json!({"driver": "blkdebug", "image": chain, "inject-error": rules});
        }
        if self.faults.iter().any(|fault| matches!(fault, Fault::SlowWrites(_))) {
            let group = format!("throttle{index}");
            chain = json!({"driver": "throttle", "throttle-group": group, "file": chain});
        }
        json!({
            "driver": "raw",
            "node-name": format!("disk{index}"),
            "read-only": read_only,
            "discard": "unmap",
            "detect-zeroes": if self.keeps_holes { "unmap" } else { "off" },
            "file": chain,
        })
    }

    fn frontend(&self, index: usize, port: usize) -> Vec<String> {
        let wwn = self.wwn.map(|wwn| format!(",wwn={wwn:#018x}")).unwrap_or_default();
        let serial = &self.serial;
        // The NIC takes place 1 when it is to boot; see node.rs.
        let mut common = format!("drive=disk{index},serial={serial},bootindex={}", 10 + index);
        if self.sector != 512 {
            let sector = self.sector;
            common.push_str(&format!(",logical_block_size={sector},physical_block_size={sector}"));
        }
        let mut args = Vec::new();
        let mut device = |text: String| args.extend(["-device".to_owned(), text]);
        match self.bus {
            Bus::Nvme => device(format!("nvme,id=dev{index},{common}")),
            Bus::Sata => device(format!("ide-hd,id=dev{index},bus=ide.{port},{common}{wwn}")),
            Bus::Virtio => device(format!("virtio-blk-pci,id=dev{index},{common}")),
            Bus::Scsi => {
                device(format!("virtio-scsi-pci,id=hba{index}"));
                device(format!("scsi-hd,id=dev{index},bus=hba{index}.0,{common}{wwn}"));
            }
        }
        args
    }
}

/// A rule of QEMU's blkdebug driver (`docs/devel/blkdebug.txt`).
fn error_rule(fault: &Fault) -> Option<Value> {
    const EIO: u32 = 5;
    let (kind, sector) = match fault {
        Fault::WriteError(sector) => ("write", *sector),
        Fault::ReadError(sector) => ("read", Some(*sector)),
        Fault::ReadOnly | Fault::SlowWrites(_) => return None,
    };
    let mut rule = json!({"event": "none", "iotype": kind, "errno": EIO});
    if let Some(sector) = sector {
        rule["sector"] = sector.into();
    }
    Some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_is_named_as_on_the_command_line() {
        assert_eq!("scsi".parse::<Bus>().unwrap(), Bus::Scsi);
        let error = "floppy".parse::<Bus>().unwrap_err();
        assert!(error.to_string().contains("floppy"), "{error}");
    }

    #[test]
    fn faults_stand_between_the_guest_and_the_file() {
        let disk = DiskSpec::new("/x.img", Bus::Nvme, "S1")
            .with(Fault::WriteError(Some(7)))
            .with(Fault::SlowWrites(1000));
        let args = disk.qemu_args(3, 0);
        assert_eq!(args[0], "-object");
        let chain: Value = serde_json::from_str(&args[3]).unwrap();
        assert_eq!(chain["file"]["driver"], "throttle");
        assert_eq!(chain["file"]["file"]["driver"], "blkdebug");
        assert_eq!(chain["file"]["file"]["inject-error"][0]["sector"], 7);
        assert_eq!(chain["file"]["file"]["image"]["filename"], "/x.img");
        assert_eq!(args[5], "nvme,id=dev3,drive=disk3,serial=S1,bootindex=13");
        let large = DiskSpec::new("/x.img", Bus::Virtio, "S1").with_sectors(4096).qemu_args(3, 0);
        assert!(
            large[3].ends_with("bootindex=13,logical_block_size=4096,physical_block_size=4096"),
            "{large:?}"
        );
    }
}
