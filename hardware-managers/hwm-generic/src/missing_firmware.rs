//! Devices whose drivers asked for firmware that the ramdisk does not hold. Only the kernel's log says so: most such drivers give
//! the device up, and some keep it until it is used.

use crate::sysfs::text;
use block::Roots;
use block::kernel_log::Kept;
use serde::Serialize;

/// A device that lacks firmware.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingFirmware {
    /// Its name on its bus: `0000:3b:00.0` on PCI.
    pub address: String,
    /// By what the kernel finds a module for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modalias: Option<String>,
    /// The driver that asked.
    pub driver: String,
    /// The files, as the driver names them, in the order of its requests: `e100/d102e_ucode.bin`. A driver that gets along with an older
    /// file asks for several.
    pub firmware: Vec<String>,
}

/// What the kernel's log says of firmware.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The devices that lack some, in the order of their requests.
    pub(crate) devices: Vec<MissingFirmware>,
    /// Why others may lack some of which the log does not say so.
    pub(crate) unknown: Option<String>,
}

/// The devices of this machine that lack firmware, as far as the kernel's log says.
pub(crate) fn missing(roots: &Roots) -> Missing {
    let mut log = Vec::new();
    let kmsg = roots.dev.join("kmsg");
    let unknown = match block::kernel_log::read(&kmsg, |record| log.extend_from_slice(record)) {
        Ok(Kept::Whole) => None,
        Ok(Kept::Part) => Some("the kernel's log has lost its oldest messages".to_owned()),
        Err(error) => Some(format!("the kernel's log {} cannot be read: {error}", kmsg.display())),
    };
    if let Some(why) = &unknown {
        tracing::warn!("which devices lack firmware is not fully known: {why}");
    }
    let found = lacking(&String::from_utf8_lossy(&log));
    let with_modalias = |device: Lacking| MissingFirmware {
        modalias: text(
            &roots.sys.join("bus").join(device.bus).join("devices").join(&device.address).join("modalias"),
        ),
        address: device.address,
        driver: device.driver,
        firmware: device.files,
    };
    Missing { devices: found.into_iter().map(with_modalias).collect(), unknown }
}

/// What the kernel's log says of a device.
#[derive(Debug, PartialEq, Eq)]
struct Lacking {
    /// `pci`, `usb`.
    bus: String,
    address: String,
    driver: String,
    files: Vec<String>,
}

/// How a request for firmware ended.
enum Ended<'a> {
    /// Without this file.
    Missing(&'a str),
    /// With it.
    Loaded(&'a str),
}

/// The devices that lack firmware, of records of `/dev/kmsg`, each with the lines of its device behind it. Pure.
fn lacking(log: &str) -> Vec<Lacking> {
    let mut found: Vec<Lacking> = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(record) = lines.next() {
        let mut bus = "pci";
        while let Some(property) = lines.next_if(|line| line.starts_with(' ')) {
            bus = property.trim_start().strip_prefix("SUBSYSTEM=").unwrap_or(bus);
        }
        let request = record.split_once(';').and_then(|(_, text)| request(text));
        let Some((driver, address, ended)) = request else { continue };
        let known = found.iter_mut().find(|device| device.bus == bus && device.address == address);
        match (ended, known) {
            (Ended::Missing(file), Some(device)) => {
                driver.clone_into(&mut device.driver);
                if !device.files.iter().any(|known| known == file) {
                    device.files.push(file.to_owned());
                }
            }
            (Ended::Missing(file), None) => found.push(Lacking {
                bus: bus.to_owned(),
                address: address.to_owned(),
                driver: driver.to_owned(),
                files: vec![file.to_owned()],
            }),
            (Ended::Loaded(file), Some(device)) => device.files.retain(|known| known != file),
            (Ended::Loaded(_), None) => {}
        }
    }
    found.retain(|device| !device.files.is_empty());
    found
}

/// Driver, device and end of a request for firmware, of the text of a message. Linux's (`drivers/base/firmware_loader/main.c`)
/// and those that Debian adds to it.
fn request(text: &str) -> Option<(&str, &str, Ended<'_>)> {
    const DEBIAN_MISSING: &str = ": firmware: failed to load ";
    const DEBIAN_LOADED: &str = ": firmware: direct-loading firmware ";
    const LINUX_MISSING: &str = ": Direct firmware load for ";
    let (device, ended) = if let Some((device, rest)) = text.split_once(DEBIAN_MISSING) {
        (device, Ended::Missing(rest.rsplit_once(" (-")?.0))
    } else if let Some((device, rest)) = text.split_once(LINUX_MISSING) {
        (device, Ended::Missing(rest.rsplit_once(" failed with error ")?.0))
    } else {
        let (device, file) = text.split_once(DEBIAN_LOADED)?;
        (device, Ended::Loaded(file))
    };
    let (driver, address) = device.split_once(' ')?;
    // It becomes part of a path.
    let is_name = !address.is_empty() && !address.contains('/') && !address.starts_with('.');
    is_name.then_some((driver, address, ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded in QEMU with Debian's kernel 6.1.172-1: an Intel 82551 was brought up, without the file and with it.
    const WITHOUT: &str = "6,333,2334603,-;e100: Intel(R) PRO/100 Network Driver\n\
        6,339,2382335,-;e100 0000:00:1d.0 eth0: addr 0xfebff000, irq 16, MAC addr 52:54:00:12:34:56\n \
        SUBSYSTEM=pci\n DEVICE=+pci:0000:00:1d.0\n\
        3,340,2415438,-;e100 0000:00:1d.0: firmware: failed to load e100/d102e_ucode.bin (-2)\n \
        SUBSYSTEM=pci\n DEVICE=+pci:0000:00:1d.0\n\
        3,341,2421558,-;firmware_class: See https://wiki.debian.org/Firmware for information about missing firmware\n\
        3,342,2422736,-;e100 0000:00:1d.0: firmware: failed to load e100/d102e_ucode.bin (-2)\n \
        SUBSYSTEM=pci\n DEVICE=+pci:0000:00:1d.0\n\
        4,343,2423509,-;e100 0000:00:1d.0: Direct firmware load for e100/d102e_ucode.bin failed with error -2\n \
        SUBSYSTEM=pci\n DEVICE=+pci:0000:00:1d.0\n";
    const WITH: &str = "6,341,2480145,-;e100 0000:00:1d.0: firmware: direct-loading firmware e100/d102e_ucode.bin\n \
        SUBSYSTEM=pci\n DEVICE=+pci:0000:00:1d.0\n\
        6,342,2481775,-;e100 0000:00:1d.0 eth0: NIC Link is Up 100 Mbps Full Duplex\n \
        SUBSYSTEM=pci\n DEVICE=+pci:0000:00:1d.0\n";

    fn device(bus: &str, address: &str, driver: &str, files: &[&str]) -> Lacking {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        Lacking { bus: bus.to_owned(), address: address.to_owned(), driver: driver.to_owned(), files }
    }

    #[test]
    fn a_device_without_its_firmware_is_named_once() {
        assert_eq!(lacking(WITHOUT), [device("pci", "0000:00:1d.0", "e100", &["e100/d102e_ucode.bin"])]);
        assert_eq!(lacking(WITH), []);
        assert_eq!(lacking(&format!("{WITHOUT}{WITH}")), [], "it was there the next time");
    }

    /// Written after the format strings of Linux 6.1 and of Debian's patch to it.
    #[test]
    fn a_file_that_was_found_later_is_not_missing_and_another_one_is() {
        let log = "4,1,1,-;bnx2x 0000:3b:00.0: Direct firmware load for bnx2x/bnx2x-e2-7.13.21.0.fw failed with error -2\n \
                   SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n\
                   6,2,2,-;bnx2x 0000:3b:00.0: firmware: direct-loading firmware bnx2x/bnx2x-e2-7.13.15.0.fw\n \
                   SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n\
                   4,3,3,-;usb 1-2: Direct firmware load for rtl_nic/rtl8153a-4.fw failed with error -2\n \
                   SUBSYSTEM=usb\n DEVICE=c189:1\n\
                   3,4,4,-;qla2xxx 0000:af:00.0: firmware: failed to load ql2500_fw.bin (-2)\n \
                   SUBSYSTEM=pci\n DEVICE=+pci:0000:af:00.0\n";
        let loaded = "6,5,5,-;qla2xxx 0000:af:00.0: firmware: direct-loading firmware ql2500_fw.bin\n";
        assert_eq!(
            lacking(&format!("{log}{loaded}")),
            [
                device("pci", "0000:3b:00.0", "bnx2x", &["bnx2x/bnx2x-e2-7.13.21.0.fw"]),
                device("usb", "1-2", "usb", &["rtl_nic/rtl8153a-4.fw"]),
            ]
        );
        assert_eq!(lacking(log)[2], device("pci", "0000:af:00.0", "qla2xxx", &["ql2500_fw.bin"]));
    }

    #[test]
    fn other_text_names_no_device() {
        for text in [
            "",
            "6,1,1,-;",
            "no record at all",
            "6,1,1,-;e100: Direct firmware load for x failed with error -2",
            "6,1,1,-;e100 ../..: Direct firmware load for x failed with error -2",
            "6,1,1,-;e100 0000:00:05.0: Direct firmware load for x",
            "6,1,1,-;e100 0000:00:05.0: firmware: failed to load x",
        ] {
            assert_eq!(lacking(text), [], "{text}");
        }
    }

    #[test]
    fn the_modalias_comes_from_sysfs() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let roots = Roots { sys: at("sys"), proc: at("proc"), dev: at("dev") };
        let without_log = missing(&roots);
        assert_eq!(without_log.devices, [], "without a log nothing is known");
        assert!(without_log.unknown.unwrap().contains("dev/kmsg cannot be read"));
        std::fs::create_dir_all(at("sys/bus/pci/devices/0000:00:1d.0")).unwrap();
        std::fs::create_dir_all(at("dev")).unwrap();
        std::fs::write(at("dev/kmsg"), WITHOUT).unwrap();
        let part = missing(&roots);
        assert_eq!(part.devices[0].modalias, None);
        assert_eq!(part.unknown.as_deref(), Some("the kernel's log has lost its oldest messages"));
        std::fs::write(at("dev/kmsg"), format!("6,0,0,-;Linux version\n{WITHOUT}")).unwrap();
        assert_eq!(missing(&roots), Missing { unknown: None, ..part });
        std::fs::write(at("sys/bus/pci/devices/0000:00:1d.0/modalias"), "pci:v00008086d00001209sv1\n")
            .unwrap();
        assert_eq!(
            serde_json::to_value(missing(&roots).devices).unwrap(),
            serde_json::json!([{"address": "0000:00:1d.0", "modalias": "pci:v00008086d00001209sv1", "driver": "e100",
                                "firmware": ["e100/d102e_ucode.bin"]}])
        );
    }
}
