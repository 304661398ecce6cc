//! Settings of the DHCPv6 service.

use crate::BootError;
use std::net::Ipv6Addr;

/// What the service says, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dhcp6Config {
    /// The one interface it listens and answers on.
    pub interface: String,
    /// Our address there, of the TFTP server. The addresses of clients have the same first 64 bits.
    pub server: Ipv6Addr,
    /// Base URL of the boot HTTP service (`http://[2001:db8::1]:8089`).
    pub boot_url: String,
    /// Name servers.
    pub dns: Vec<Ipv6Addr>,
}

impl Dhcp6Config {
    /// Whether the settings make sense together.
    ///
    /// # Errors
    /// The first setting that does not, by name.
    pub fn check(&self) -> Result<(), BootError> {
        let wrong = |message: String| Err(BootError::Config { service: "dhcp6", message });
        if self.interface.is_empty() || self.interface.len() > 15 {
            return wrong(format!("interface '{}' is no interface name", self.interface));
        }
        let server = self.server;
        if server.is_unspecified()
            || server.is_loopback()
            || server.is_multicast()
            || server.is_unicast_link_local()
        {
            return wrong(format!("server {server} is not an address that nodes can keep"));
        }
        if !self.boot_url.starts_with("http://") || self.boot_url.ends_with('/') {
            return wrong(format!(
                "boot_url '{}' must begin with http:// and end without a slash",
                self.boot_url
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_named() {
        let sound = Dhcp6Config {
            interface: "eth0".to_owned(),
            server: "2001:db8::1".parse().unwrap(),
            boot_url: "http://[2001:db8::1]:8089".to_owned(),
            dns: Vec::new(),
        };
        assert!(sound.check().is_ok());
        let says = |config: Dhcp6Config| config.check().unwrap_err().to_string();
        assert!(says(Dhcp6Config { interface: String::new(), ..sound.clone() }).contains("interface"));
        for bad in ["::", "::1", "fe80::1", "ff02::1"] {
            let server = bad.parse().unwrap();
            assert!(says(Dhcp6Config { server, ..sound.clone() }).contains(&format!("server {bad} ")));
        }
        let boot_url = "https://[2001:db8::1]".to_owned();
        assert!(says(Dhcp6Config { boot_url, ..sound }).contains("boot_url"));
    }
}
