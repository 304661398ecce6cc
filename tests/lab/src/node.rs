//! What an emulated server is made of, and the QEMU command line that follows from it (pure).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::disk::{Bus, DiskSpec};
use crate::software_tpm;
use crate::trunk::TrunkNic;
use crate::uefi_variables::{self, SecureBoot};

/// UEFI firmware of Debian's `ovmf`, without Secure Boot.
const OVMF_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
/// The one with Secure Boot, which keeps its variables from the operating system by system management mode.
const OVMF_SECURE_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd";
/// Its empty variable store; every node gets a copy.
const OVMF_VARS: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";
/// A variable store with Microsoft's keys.
pub(crate) const OVMF_MICROSOFT_VARS: &str = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd";

/// Place of a device that was chosen for the next boot; disks have 10 and more.
pub const BOOT_FIRST: u32 = 1;
/// Place of the NIC otherwise: after all disks.
pub const BOOT_LAST: u32 = 1000;
/// Place of the virtual CD when it is not chosen: after the NIC.
pub const BOOT_MEDIA_LAST: u32 = 1001;
/// The virtual CD's id in QEMU.
pub const CD: &str = "cd0";
/// The virtual USB stick's id in QEMU.
pub const STICK: &str = "stick0";
/// The NIC's id in QEMU.
pub const NIC: &str = "nic0";

/// Firmware of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// SeaBIOS; PXE by the iPXE ROM of the NIC.
    Bios,
    /// OVMF with its own PXE and HTTP clients, the NIC without a ROM.
    Uefi,
    /// OVMF; PXE by the iPXE ROM of the NIC.
    UefiIpxeRom,
}

impl Firmware {
    /// Whether it is UEFI.
    #[must_use]
    pub fn is_uefi(self) -> bool {
        self != Self::Bios
    }
}

/// An emulated server.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// Name in logs; letters, digits and dashes.
    pub name: String,
    /// Firmware.
    pub firmware: Firmware,
    /// RAM in MiB.
    pub memory_mib: u32,
    /// MAC address of the NIC.
    pub mac: String,
    /// Tap of the NIC; it must exist.
    pub tap: String,
    /// NICs at ports with tagged frames, instead of that one.
    pub trunk: Vec<TrunkNic>,
    /// Disks in the order of their numbers.
    pub disks: Vec<DiskSpec>,
    /// Directory of its own: serial console, sockets, UEFI variables.
    pub dir: PathBuf,
    /// How its BMC's virtual CD looks to it.
    pub cd_bus: CdBus,
    /// The keys that a UEFI firmware has; with any Secure Boot is on. Without this it has no Secure Boot.
    pub secure_boot: Option<SecureBoot>,
    /// Whether it has a TPM 2.0.
    pub tpm: bool,
    /// More QEMU options, as they are.
    pub extra: Vec<String>,
}

impl NodeSpec {
    /// A node with 256 MiB and no disks. Its directory is made.
    ///
    /// # Errors
    /// When the directory cannot be made, or is too long a path for a socket in it (107 bytes, `unix(7)`).
    pub fn new(
        name: &str,
        firmware: Firmware,
        mac: &str,
        tap: &str,
        dir: impl Into<PathBuf>,
    ) -> Result<Self> {
        let dir = dir.into();
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let spec = Self {
            name: name.to_owned(),
            firmware,
            memory_mib: 256,
            mac: mac.to_owned(),
            tap: tap.to_owned(),
            trunk: Vec::new(),
            disks: Vec::new(),
            dir,
            cd_bus: CdBus::default(),
            secure_boot: None,
            tpm: false,
            extra: Vec::new(),
        };
        let socket = spec.qmp_socket();
        ensure!(socket.as_os_str().len() < 108, "{} is too long for a socket", socket.display());
        Ok(spec)
    }

    /// Adds a disk.
    #[must_use]
    pub fn with_disk(mut self, disk: DiskSpec) -> Self {
        self.disks.push(disk);
        self
    }

    /// What the node writes to its serial port.
    #[must_use]
    pub fn serial_log(&self) -> PathBuf {
        self.dir.join("serial.log")
    }

    /// Where QEMU's own messages go.
    #[must_use]
    pub fn qemu_log(&self) -> PathBuf {
        self.dir.join("qemu.log")
    }

    /// Socket of QEMU's machine protocol.
    #[must_use]
    pub fn qmp_socket(&self) -> PathBuf {
        self.dir.join("qmp.sock")
    }

    /// The flash with the UEFI firmware's variables, there from the first power-on.
    #[must_use]
    pub fn uefi_variables(&self) -> PathBuf {
        self.dir.join("uefi-vars.fd")
    }

    /// Makes what QEMU expects to find: a UEFI node's variables, kept from one power-on to the next as
    /// on a real board.
    ///
    /// # Errors
    /// When OVMF is not installed, the directory cannot be written, or a key cannot be read.
    pub fn ensure_files(&self) -> Result<()> {
        let variables = self.uefi_variables();
        if self.firmware.is_uefi() && !variables.exists() {
            let from = match &self.secure_boot {
                Some(SecureBoot::Microsoft) => OVMF_MICROSOFT_VARS,
                _ => OVMF_VARS,
            };
            std::fs::copy(from, &variables)
                .with_context(|| format!("cannot copy {from} (Debian package ovmf)"))?;
            if let Some(SecureBoot::Keys(keys)) = &self.secure_boot {
                uefi_variables::enrol(&variables, keys)?;
            }
        }
        Ok(())
    }

    /// QEMU's command line for one power-on.
    #[must_use]
    pub fn qemu_args(&self, boot: Boot, cd: Option<&Path>) -> Vec<String> {
        let mut args = words(&[
            "-name",
            &self.name,
            // graphics=off: SeaBIOS and iPXE speak on the serial port.
            "-machine",
            if self.secure_boot.is_some() { "q35,graphics=off,smm=on" } else { "q35,graphics=off" },
            "-accel",
            "tcg",
            // The emulator needs a quarter less time for it than for `max`.
            "-cpu",
            "qemu64",
            "-smp",
            "1",
            "-m",
            &self.memory_mib.to_string(),
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-chardev",
            &format!("file,id=serial0,append=on,path={}", self.serial_log().display()),
            "-serial",
            "chardev:serial0",
            "-qmp",
            &format!("unix:{},server=on,wait=off", self.qmp_socket().display()),
            "-device",
            "virtio-rng-pci",
        ]);
        args.extend(self.nic_args(boot));
        if self.tpm {
            args.extend(software_tpm::qemu_args(self));
        }
        if self.firmware.is_uefi() {
            let variables = self.uefi_variables();
            let code = if self.secure_boot.is_some() { OVMF_SECURE_CODE } else { OVMF_CODE };
            if self.secure_boot.is_some() {
                args.extend(words(&["-global", "driver=cfi.pflash01,property=secure,value=on"]));
                // With system management mode OVMF would keep a script for it.
                args.extend(words(&["-global", "ICH9-LPC.disable_s3=1"]));
            }
            args.extend(words(&[
                "-drive",
                &format!("if=pflash,unit=0,format=raw,readonly=on,file={code}"),
                "-drive",
                &format!("if=pflash,unit=1,format=raw,file={}", variables.display()),
            ]));
            if boot == Boot::Http {
                // Without PXE, OVMF offers only HTTP boot on the NIC.
                for name in ["IPv4PXESupport", "IPv6PXESupport"] {
                    let item = format!("name=opt/org.tianocore/{name},string=n");
                    args.extend(words(&["-fw_cfg", &item]));
                }
            }
        }
        let mut sata = 0..;
        for (index, disk) in self.disks.iter().enumerate() {
            let port = if disk.bus == Bus::Sata { sata.next() } else { None };
            args.extend(disk.qemu_args(index, port.unwrap_or(0)));
        }
        if let Some(cd) = cd {
            args.extend(self.cd_args(boot, cd, sata.next().unwrap_or(0)));
        }
        args.extend(self.extra.iter().cloned());
        args
    }

    fn nic_args(&self, boot: Boot) -> Vec<String> {
        let place = if matches!(boot, Boot::Disks | Boot::Cd) { BOOT_LAST } else { BOOT_FIRST };
        let rom = if self.firmware == Firmware::Uefi { ",romfile=" } else { "" };
        let tap = format!("tap,id=net0,ifname={},script=no,downscript=no", self.tap);
        let cables = match self.trunk.as_slice() {
            [] => vec![(self.mac.as_str(), tap)],
            nics => {
                (0..).zip(nics).map(|(at, nic)| (nic.mac.as_str(), nic.netdev(&format!("net{at}")))).collect()
            }
        };
        let mut args = Vec::new();
        for (at, (mac, cable)) in cables.into_iter().enumerate() {
            // The first one is NIC; firmware boots from no other.
            let place = if at == 0 { format!(",bootindex={place}") } else { String::new() };
            let device = format!("virtio-net-pci,id=nic{at},netdev=net{at},mac={mac}{place}{rom}");
            args.extend(words(&["-netdev", &cable, "-device", &device]));
        }
        args
    }

    fn cd_args(&self, boot: Boot, image: &Path, port: usize) -> Vec<String> {
        let place = if boot == Boot::Cd { BOOT_FIRST } else { BOOT_MEDIA_LAST };
        let drive = format!("if=none,id=media0,media=cdrom,readonly=on,format=raw,file={}", image.display());
        match self.cd_bus {
            CdBus::Usb => words(&[
                "-drive",
                &drive,
                "-device",
                "qemu-xhci,id=xhci",
                "-device",
                &format!("usb-storage,id={CD},bus=xhci.0,drive=media0,removable=on,bootindex={place}"),
            ]),
            CdBus::Sata => words(&[
                "-drive",
                &drive,
                "-device",
                &format!("ide-cd,id={CD},bus=ide.{port},drive=media0,bootindex={place}"),
            ]),
        }
    }
}

/// QEMU's words for a virtual USB stick with this image, which can only be read. Nothing boots from it.
#[must_use]
pub fn stick_args(image: &Path) -> Vec<String> {
    let drive = format!("if=none,id=media1,format=raw,readonly=on,file={}", image.display());
    let device = format!("usb-storage,id={STICK},bus=xhci1.0,drive=media1,removable=on");
    words(&["-drive", &drive, "-device", "qemu-xhci,id=xhci1", "-device", &device])
}

/// What a power-on tries first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boot {
    /// The disks, then the network.
    Disks,
    /// PXE, then the disks.
    Pxe,
    /// UEFI HTTP boot, then the disks.
    Http,
    /// The virtual CD, then the disks.
    Cd,
}

/// How a BMC shows its virtual CD to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CdBus {
    /// A USB drive, as BMCs have it.
    #[default]
    Usb,
    /// A CD drive on SATA.
    Sata,
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(firmware: Firmware) -> NodeSpec {
        let dir = tempfile::tempdir().unwrap();
        NodeSpec::new("n1", firmware, "52:54:00:00:00:01", "tap0", dir.path())
            .unwrap()
            .with_disk(DiskSpec::new("/a.img", Bus::Sata, "SA"))
    }

    fn nic(args: &[String]) -> &str {
        args.iter().find(|a| a.starts_with("virtio-net-pci")).unwrap()
    }

    #[test]
    fn the_chosen_target_is_before_the_disks() {
        let spec = spec(Firmware::Bios);
        assert!(nic(&spec.qemu_args(Boot::Pxe, None)).contains("bootindex=1"));
        assert!(nic(&spec.qemu_args(Boot::Disks, None)).contains("bootindex=1000"));
        assert!(!nic(&spec.qemu_args(Boot::Pxe, None)).contains("romfile="));
    }

    #[test]
    fn nics_of_a_trunk_stand_in_the_place_of_the_tap() {
        let trunk = TrunkNic::all(&["52:54:00:00:00:01", "52:54:00:00:00:02"]);
        let args = NodeSpec { trunk, ..spec(Firmware::Uefi) }.qemu_args(Boot::Cd, None);
        let nics: Vec<&String> = args.iter().filter(|a| a.starts_with("virtio-net-pci")).collect();
        assert_eq!(
            nics[0],
            "virtio-net-pci,id=nic0,netdev=net0,mac=52:54:00:00:00:01,bootindex=1000,romfile="
        );
        assert_eq!(nics[1], "virtio-net-pci,id=nic1,netdev=net1,mac=52:54:00:00:00:02,romfile=");
        assert!(args.contains(&"socket,id=net1,udp=127.0.0.1:22002,localaddr=127.0.0.1:21002".to_owned()));
        assert!(!args.iter().any(|a| a.contains("tap0")));
    }

    #[test]
    fn uefi_has_its_own_pxe_and_variables() {
        let spec = spec(Firmware::Uefi);
        let args = spec.qemu_args(Boot::Http, None);
        assert!(nic(&args).ends_with("romfile="));
        assert!(args.iter().any(|a| a.contains("uefi-vars.fd")));
        assert!(args.iter().any(|a| a.contains("IPv4PXESupport")));
    }
}
