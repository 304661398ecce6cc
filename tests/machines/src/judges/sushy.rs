//! A BMC by the OpenStack people: sushy-emulator (PyPI `sushy-tools`) in front of a libvirt machine.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::node::NodeSpec;
use lab::process::{Daemon, leashed};
use lab::wait;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::libvirt::Libvirt;
use super::peers;

const PORT: u16 = 8800;
const START_LIMIT: Duration = Duration::from_secs(90);
/// libvirt-python has to be as old as Debian's libvirt.
const PACKAGES: [&str; 2] = ["sushy-tools==2.2.0", "libvirt-python==9.0.0"];
const UUID: &str = "27946b59-9e44-4fa7-8e91-f3527a1ef094";

/// The emulator and its libvirt.
#[derive(Debug)]
pub struct Sushy {
    libvirt: Libvirt,
    name: String,
    _daemon: Daemon,
}

impl Sushy {
    /// Defines the machine (it stays off) and starts the emulator at an address, with their files below `dir`. It fetches virtual
    /// media from that address too, into a storage pool of libvirt.
    ///
    /// # Errors
    /// When a package is missing, [`install`] was not called, or a part does not start.
    pub async fn start(spec: &NodeSpec, dir: &Path, address: Ipv4Addr) -> Result<Self> {
        let program = peers()?.join("sushy/bin/sushy-emulator");
        let libvirt = Libvirt::start(dir).await?;
        let domain = dir.join("domain.xml");
        fs::write(&domain, domain_xml(spec)?)?;
        libvirt.virsh(&["define", &domain.display().to_string()]).await?;

        let dir = dir.join("sushy");
        let pool = dir.join("pool");
        fs::create_dir_all(&pool)?;
        libvirt.virsh(&["pool-create-as", "default", "dir", "--target", &pool.display().to_string()]).await?;
        let config = dir.join("emulator.conf");
        fs::write(
            &config,
            format!(
                "SUSHY_EMULATOR_LISTEN_IP = '{address}'\nSUSHY_EMULATOR_LISTEN_PORT = {PORT}\n\
                 SUSHY_EMULATOR_LIBVIRT_URI = '{}'\nSUSHY_EMULATOR_STATE_DIR = '{}'\n",
                libvirt.uri(),
                dir.display()
            ),
        )?;
        let mut command = leashed(program);
        command.arg("--config").arg(&config).env("TMPDIR", &dir);
        let mut daemon = Daemon::start("sushy-emulator", command, &dir.join("sushy.log"))?;
        wait::until("sushy-emulator to listen", START_LIMIT, || {
            let alive = daemon.ensure_alive();
            async move {
                alive?;
                Ok(TcpStream::connect((address, PORT)).await.ok())
            }
        })
        .await?;
        Ok(Self { libvirt, name: spec.name.clone(), _daemon: daemon })
    }

    /// `driver_info` of Ironic's redfish driver.
    #[must_use]
    pub fn driver_info(address: Ipv4Addr) -> Value {
        json!({
            "redfish_address": format!("http://{address}:{PORT}"),
            "redfish_system_id": format!("/redfish/v1/Systems/{UUID}"),
        })
    }

    /// Files in the CD drives of the machine, as libvirt has them.
    ///
    /// # Errors
    /// When it does not say.
    pub async fn media(&self) -> Result<Vec<String>> {
        let drives = self.libvirt.virsh(&["domblklist", &self.name, "--details"]).await?;
        let words = drives.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let cds = words.filter(|words| words.get(1) == Some(&"cdrom"));
        Ok(cds
            .filter_map(|words| words.get(3).filter(|file| **file != "-").map(|file| (*file).to_owned()))
            .collect())
    }

    /// Whether libvirt says that the machine runs.
    ///
    /// # Errors
    /// When it does not say.
    pub async fn is_on(&self) -> Result<bool> {
        Ok(self.libvirt.virsh(&["domstate", &self.name]).await?.trim() == "running")
    }
}

/// Installs the emulator from PyPI, once. Called outside of any namespace of ours: it needs the network.
///
/// # Errors
/// When Python, a compiler or libvirt's headers are missing, or PyPI is out of reach.
pub fn install() -> Result<()> {
    let venv = peers()?.join("sushy");
    fs::create_dir_all(&venv)?;
    // Two runs at once install one after the other.
    let lock = fs::File::create(venv.with_extension("lock"))?;
    lock.lock()?;
    let stamp = venv.join("installed");
    let wanted = PACKAGES.join("\n");
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        run(Command::new(venv.join("bin/pip")).args(["install", "--quiet"]).args(PACKAGES))?;
        fs::write(&stamp, wanted)?;
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let out = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr).trim());
    Ok(())
}

/// q35 without KVM, as the lab's own nodes are.
fn domain_xml(spec: &NodeSpec) -> Result<String> {
    let mut disks = String::new();
    for (index, disk) in spec.disks.iter().enumerate() {
        let letter = char::from(b'a' + u8::try_from(index)?);
        let (bus, device) = match disk.bus {
            Bus::Sata => ("sata", format!("sd{letter}")),
            Bus::Scsi => ("scsi", format!("sd{letter}")),
            Bus::Virtio => ("virtio", format!("vd{letter}")),
            Bus::Nvme => anyhow::bail!("libvirt 9 has no emulated NVMe"),
        };
        disks += &format!(
            "<disk type='file' device='disk'><driver name='qemu' type='raw' discard='unmap'/>\
             <source file='{}'/><target dev='{device}' bus='{bus}'/><serial>{}</serial></disk>\n",
            disk.file.display(),
            disk.serial
        );
    }
    Ok(format!(
        "<domain type='qemu'><name>{}</name><uuid>{UUID}</uuid>\n\
         <memory unit='MiB'>{}</memory><vcpu>1</vcpu><cpu mode='maximum'/>\n\
         <os><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>\n\
         <features><acpi/><apic/></features><on_reboot>restart</on_reboot><on_poweroff>destroy</on_poweroff>\n\
         <devices>\n{disks}\
         <controller type='scsi' model='virtio-scsi'/>\n\
         <interface type='ethernet'><mac address='{}'/><target dev='{}' managed='no'/><model type='virtio'/>\
         </interface>\n\
         <serial type='file'><source path='{}' append='on'/></serial>\n\
         <memballoon model='none'/></devices></domain>\n",
        spec.name,
        spec.memory_mib,
        spec.mac,
        spec.tap,
        spec.serial_log().display(),
    ))
}
