//! Settings of the DHCP service.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::BootError;

/// What the service says, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DhcpConfig {
    /// The one interface it listens and answers on.
    pub interface: String,
    /// Our address there: server identifier and TFTP server.
    pub server: Ipv4Addr,
    /// Base URL of the boot HTTP service (`http://10.9.0.1:8080`).
    pub boot_url: String,
    /// Whether it gives out addresses.
    pub mode: Mode,
}

/// Server or helper of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The only DHCP server of the network: gives addresses to all, boot files to those that boot.
    Server(Pool),
    /// Another server gives the addresses; this one sends PXE and UEFI HTTP clients their boot file,
    /// and answers no other client.
    Proxy,
}

/// The addresses of server mode, and what goes with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// First address that is given out.
    pub first: Ipv4Addr,
    /// Last address that is given out.
    pub last: Ipv4Addr,
    /// Bits of the network's mask, 8 to 30.
    pub prefix: u8,
    /// Default router, if there is one.
    pub router: Option<Ipv4Addr>,
    /// Name servers.
    pub dns: Vec<Ipv4Addr>,
    /// Time a lease holds; at least two minutes.
    pub lease: Duration,
}

impl Pool {
    pub(super) fn mask(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0))
    }

    pub(super) fn broadcast(&self) -> Ipv4Addr {
        self.first | !self.mask()
    }

    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }
}

/// More would be slow to search, and no one wants a flat network of that size.
const LARGEST_POOL: u32 = 65_536;

impl DhcpConfig {
    /// Whether the settings make sense together.
    ///
    /// # Errors
    /// The first setting that does not, by name.
    pub fn check(&self) -> Result<(), BootError> {
        let wrong = |message: String| Err(BootError::Config { service: "dhcp", message });
        if self.interface.is_empty() || self.interface.len() > 15 {
            return wrong(format!("interface '{}' is no interface name", self.interface));
        }
        if self.server.is_unspecified() || self.server.is_broadcast() || self.server.is_multicast() {
            return wrong(format!("server {} is not an address of a host", self.server));
        }
        // It must fit the 128 bytes of the packet's `file` field with `/boot/ipxe?mac=…` behind it.
        if !self.boot_url.starts_with("http://") || self.boot_url.len() > 90 || self.boot_url.ends_with('/') {
            return wrong(format!(
                "boot_url '{}' must begin with http://, end without a slash and have at most 90 bytes",
                self.boot_url
            ));
        }
        let Mode::Server(pool) = &self.mode else { return Ok(()) };
        if !(8..=30).contains(&pool.prefix) {
            return wrong(format!("prefix {} is not within 8 to 30", pool.prefix));
        }
        let network = pool.first & pool.mask();
        if pool.first > pool.last || pool.last & pool.mask() != network {
            return wrong(format!("range {} to {} is not within one network", pool.first, pool.last));
        }
        if pool.first == network || pool.last == pool.broadcast() {
            return wrong(format!(
                "range {} to {} holds the network's own or broadcast address",
                pool.first, pool.last
            ));
        }
        if pool.last.to_bits() - pool.first.to_bits() >= LARGEST_POOL {
            return wrong(format!("range {} to {} is larger than {LARGEST_POOL}", pool.first, pool.last));
        }
        if self.server & pool.mask() != network {
            return wrong(format!("server {} is not in the network of the range", self.server));
        }
        if pool.lease < Duration::from_secs(120) || pool.lease.as_secs() > u64::from(u32::MAX) {
            return wrong("lease must be at least 120 s".to_owned());
        }
        Ok(())
    }
}
