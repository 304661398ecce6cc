//! A real Ironic in the lab's network, with what an operator of one has: its boot files over HTTP, and a DHCP server.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use contract::ironic::Ironic as Service;
use contract::peers::{IRONIC, Peers};
use contract::process::{Daemon, check, wait_until};
use lab::binaries;
use serde_json::Value;

use super::peers;

/// Boot files are served here.
const FILES: u16 = 8088;
const START: Duration = Duration::from_secs(30);

/// In addition to the usual ones: real power, real boot. The full erase runs, and nothing but that.
const SETTINGS: &str = "\
[DEFAULT]
my_ip = @ADDRESS@
enabled_hardware_types = redfish
enabled_boot_interfaces = ipxe,redfish-virtual-media
enabled_management_interfaces = redfish
enabled_power_interfaces = redfish
isolinux_bin = @IMAGE@/medium/isolinux.bin
ldlinux_c32 = @IMAGE@/medium/ldlinux.c32
[api]
host_ip = 0.0.0.0
public_endpoint = http://@ADDRESS@:@PORT@
[conductor]
file_url_allowed_paths = @IMAGE@,@SHARE@
[deploy]
http_url = http://@ADDRESS@:@FILES@
http_root = @DIR@/state/http
iso_master_path = @DIR@/state/isos
erase_devices_priority = 20
erase_devices_metadata_priority = 0
[service_catalog]
endpoint_override = http://@ADDRESS@:@PORT@
";

/// It and its neighbours.
pub struct Ironic {
    service: Service,
    _files: Daemon,
    _dhcp: Daemon,
}

impl Ironic {
    /// Starts all three below `dir`; nodes on `bridge` see them at `address`, in a network of 24 bits.
    ///
    /// # Errors
    /// When a part does not start.
    pub fn start(dir: &Path, bridge: &str, address: Ipv4Addr) -> Result<Self> {
        let files = dir.join("ironic/state/http");
        fs::create_dir_all(&files)?;
        // It serves ranges, which a BMC asks for.
        let mut http = Command::new("busybox");
        http.args(["httpd", "-f", "-v", "-p", &format!("{address}:{FILES}"), "-h"]);
        let served = Daemon::start(http.arg(&files), &dir.join("files.log"))?;
        wait_until("the boot files are served", START, || Ok(TcpStream::connect((address, FILES)).is_ok()))?;
        let [a, b, c, _] = address.octets();
        let mut dhcp = Command::new("dnsmasq");
        dhcp.args([
            "--keep-in-foreground",
            "--port=0",
            "--conf-file=/dev/null",
            "--bind-interfaces",
            "--log-facility=-",
        ]);
        dhcp.arg(format!("--interface={bridge}"))
            .arg(format!("--dhcp-range={a}.{b}.{c}.100,{a}.{b}.{c}.120"));
        // The NIC's firmware is iPXE already, or UEFI, which loads iPXE first.
        dhcp.args(["--enable-tftp", "--tftp-root=/usr/lib/ipxe", "--dhcp-match=set:ipxe,175"]);
        dhcp.arg("--dhcp-boot=tag:!ipxe,snponly.efi");
        dhcp.arg(format!("--dhcp-boot=tag:ipxe,http://{address}:{FILES}/boot.ipxe"));
        dhcp.arg(format!("--dhcp-leasefile={}", dir.join("leases").display())).arg("--user=root");
        let dhcp = Daemon::start(&dhcp, &dir.join("dnsmasq.log"))?;
        let settings = SETTINGS
            .replace("@ADDRESS@", &address.to_string())
            .replace("@FILES@", &FILES.to_string())
            .replace("@SHARE@", &share(dir).display().to_string())
            .replace("@IMAGE@", &binaries::image_dir()?.canonicalize()?.display().to_string());
        let peers = Peers::install(&peers()?, &[IRONIC])?;
        let service = Service::start(&peers, dir, &settings, |endpoint| {
            let drivers = ask(endpoint, &["driver", "list"]).unwrap_or_default();
            drivers.as_array().is_some_and(|list| list.iter().any(|one| one["name"] == "redfish"))
        })?;
        Ok(Self { service, _files: served, _dhcp: dhcp })
    }

    /// Asks for a verb with a body of its own.
    ///
    /// # Errors
    /// When it is refused.
    pub fn provision(&self, node: &str, body: &Value) -> Result<()> {
        let url = format!("{}/v1/nodes/{node}/states/provision", self.service.endpoint);
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--show-error",
            "--fail-with-body",
            "--request",
            "PUT",
            "--data",
            &body.to_string(),
        ]);
        curl.args(["--header", "content-type: application/json"]);
        check(curl.args(["--header", "x-openstack-ironic-api-version: 1.59", &url])).map(drop)
    }

    /// Asks with `anneal`.
    ///
    /// # Errors
    /// When it is refused, or fails.
    pub fn ask(&self, words: &[&str]) -> Result<Value> {
        ask(&self.service.endpoint, words)
    }
}

/// Where an operator of the Ironic below `dir` puts images.
pub fn share(dir: &Path) -> PathBuf {
    dir.join("share")
}

fn ask(endpoint: &str, words: &[&str]) -> Result<Value> {
    let mut command = Command::new(binaries::binary("anneal")?);
    command.args(words).args(["-o", "json"]).env("ANNEAL_ENDPOINT", endpoint);
    let output = check(&mut command).with_context(|| words.join(" "))?;
    if output.stdout.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&output.stdout).with_context(|| words.join(" "))
}

/// Installs Ironic from PyPI, once. Called outside of any namespace of ours: it needs the network.
///
/// # Errors
/// When Python is missing, or PyPI is out of reach.
pub fn install() -> Result<()> {
    Peers::install(&peers()?, &[IRONIC])?;
    ensure!(Path::new("/usr/sbin/dnsmasq").is_file(), "no dnsmasq (Debian: apt install dnsmasq-base)");
    Ok(())
}
