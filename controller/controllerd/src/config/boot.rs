//! The section `[boot]`.

use agent_protocol::boot_medium::{MOST_SERVERS, is_time_server};
use anyhow::{Context, Result, ensure};
use boot::firmware::FirmwareDir;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// `[boot]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Boot {
    pub enabled: bool,
    pub address: Option<Ipv4Addr>,
    pub ipv6_address: Option<Ipv6Addr>,
    pub interface: String,
    pub http_port: u16,
    pub tftp: bool,
    pub loader_dir: PathBuf,
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
    pub rescue: PathBuf,
    pub firmware_dir: PathBuf,
    pub medium_loader_dir: PathBuf,
    pub signed_uki: PathBuf,
    pub require_tpm: bool,
    pub consoles: Vec<String>,
    pub kernel_append: String,
    pub dhcp: DhcpMode,
    pub dhcp_first: Option<Ipv4Addr>,
    pub dhcp_last: Option<Ipv4Addr>,
    pub dhcp_prefix: u8,
    pub dhcp_router: Option<Ipv4Addr>,
    pub dhcp_lease_s: u32,
    pub dhcpv6: bool,
    pub dns: Vec<IpAddr>,
    pub ntp: Vec<String>,
    pub hello_url: String,
}

/// `[boot] dhcp`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DhcpMode {
    Off,
    Proxy,
    Server,
}

impl Default for Boot {
    fn default() -> Self {
        Self {
            enabled: false,
            address: None,
            ipv6_address: None,
            interface: String::new(),
            http_port: 8089,
            tftp: true,
            loader_dir: "/usr/lib/ipxe".into(),
            kernel: "/usr/share/anneal/vmlinuz".into(),
            initramfs: "/usr/share/anneal/initramfs".into(),
            rescue: "/usr/share/anneal/rescue".into(),
            firmware_dir: PathBuf::new(),
            medium_loader_dir: "/usr/share/anneal/medium".into(),
            signed_uki: PathBuf::new(),
            require_tpm: false,
            consoles: vec!["tty0".into(), "ttyS0,115200".into()],
            kernel_append: String::new(),
            dhcp: DhcpMode::Off,
            dhcp_first: None,
            dhcp_last: None,
            dhcp_prefix: 24,
            dhcp_router: None,
            dhcp_lease_s: 3600,
            dhcpv6: false,
            dns: Vec::new(),
            ntp: Vec::new(),
            hello_url: String::new(),
        }
    }
}

impl Boot {
    /// The addresses in the nodes' networks, IPv4 first, whether or not it is enabled.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let ipv6 = self.ipv6_address.map(IpAddr::V6);
        self.address.map(IpAddr::V4).into_iter().chain(ipv6)
    }

    /// Where boot HTTP is served, IPv4 first; nowhere unless it is enabled.
    pub fn http_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let enabled = self.enabled;
        self.addresses().filter(move |_| enabled).map(move |address| SocketAddr::new(address, self.http_port))
    }

    /// Where DHCPv6 is served; nowhere: it is switched off.
    pub fn dhcpv6_address(&self) -> Option<Ipv6Addr> {
        self.ipv6_address.filter(|_| self.dhcpv6)
    }

    /// The signed program of boot media, where they carry one.
    pub fn signed_uki(&self) -> Option<&Path> {
        Some(self.signed_uki.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// The add-on firmware, where there is any.
    pub fn firmware_dir(&self) -> Option<FirmwareDir> {
        Some(&self.firmware_dir).filter(|path| !path.as_os_str().is_empty()).map(FirmwareDir::new)
    }

    /// What a TPM proves is a boot from a medium of this controller.
    pub(super) fn check_tpm(&self) -> Result<()> {
        ensure!(
            !self.require_tpm || self.enabled,
            "boot.require_tpm needs boot.enabled: a TPM proves a boot from a medium of this controller"
        );
        Ok(())
    }

    /// As many as a boot medium names.
    pub(super) fn check_dns(&self) -> Result<()> {
        ensure!(self.dns.len() <= MOST_SERVERS, "boot.dns has more than {MOST_SERVERS} addresses");
        for server in &self.dns {
            let none = server.is_unspecified()
                || server.is_loopback()
                || server.is_multicast()
                || *server == IpAddr::V4(Ipv4Addr::BROADCAST);
            ensure!(!none, "boot.dns {server} is not an address of a name server");
        }
        Ok(())
    }

    /// As many as a boot medium names.
    pub(super) fn check_ntp(&self) -> Result<()> {
        ensure!(self.ntp.len() <= MOST_SERVERS, "boot.ntp has more than {MOST_SERVERS} servers");
        for server in &self.ntp {
            ensure!(is_time_server(server), "boot.ntp {server:?} is neither a name nor an IP address");
        }
        Ok(())
    }

    /// It stands in the configuration of instances, which request it as it is.
    pub(super) fn check_hello_url(&self) -> Result<()> {
        let url = &self.hello_url;
        let host = url.strip_prefix("http://").or(url.strip_prefix("https://"));
        let is_plain = |rest: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/[]%".contains(&byte);
            !rest.is_empty() && !rest.starts_with('/') && rest.bytes().all(plain)
        };
        ensure!(
            url.is_empty() || host.is_some_and(is_plain),
            "boot.hello_url {url:?} is no URL http://HOST… or https://HOST… without user, query and fragment"
        );
        ensure!(
            url.is_empty() || self.enabled,
            "boot.hello_url needs boot.enabled: boot HTTP hears instances"
        );
        Ok(())
    }

    /// Where boot services are needs an address.
    pub(super) fn check_addresses(&self) -> Result<()> {
        let has_one = self.addresses().next().is_some();
        ensure!(has_one, "boot.address or boot.ipv6_address is needed when boot.enabled");
        ensure!(
            self.address.is_some() || self.dhcp == DhcpMode::Off,
            "boot.dhcp serves IPv4 alone: it needs boot.address"
        );
        ensure!(self.ipv6_address.is_some() || !self.dhcpv6, "boot.dhcpv6 needs boot.ipv6_address");
        // With both, iPXE may ask over IPv6 for the script that only the lease of its MAC address gets.
        ensure!(
            self.dhcp != DhcpMode::Server || !self.dhcpv6,
            "boot.dhcpv6 and boot.dhcp = \"server\" exclude each other"
        );
        Ok(())
    }

    /// What is needed where boot services run.
    pub(super) fn check_services(&self) -> Result<()> {
        for (name, file) in [("kernel", &self.kernel), ("initramfs", &self.initramfs)] {
            ensure!(
                file.is_file(),
                "boot.{name} {} is not a file; `cargo xtask image` makes it",
                file.display()
            );
        }
        if let Some(firmware) = self.firmware_dir() {
            firmware.check().context("boot.firmware_dir (`cargo xtask image --firmware` makes it)")?;
        }
        if self.dhcp != DhcpMode::Off || self.dhcpv6 {
            ensure!(!self.interface.is_empty(), "boot.interface is needed for boot.dhcp and boot.dhcpv6");
        }
        if self.dhcp == DhcpMode::Server {
            ensure!(
                self.dhcp_first.is_some() && self.dhcp_last.is_some(),
                "boot.dhcp_first and boot.dhcp_last are needed for boot.dhcp = \"server\""
            );
        }
        Ok(())
    }
}
