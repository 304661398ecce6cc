//! From the name of a BMC to addresses that the site allows. Addresses that `driver_info` holds itself never come here:
//! [`super::config::parse`] checks those.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::Settings;

/// Resolves names as the system does, and leaves out the addresses that are not allowed.
#[derive(Debug)]
pub(super) struct Resolver {
    pub(super) settings: Settings,
    /// A password would be sent to this address without TLS.
    pub(super) plain_password: bool,
}

impl Resolver {
    /// The addresses of `name` that are allowed. `Err` is why there is none.
    fn allowed(
        &self,
        name: &str,
        found: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, String> {
        let inside: Vec<_> = found.filter(|found| self.settings.connects_to(found.ip())).collect();
        if inside.is_empty() {
            return Err(format!("{name} has no address in the networks of bmc.networks"));
        }
        let plain = |ip: IpAddr| !self.plain_password || self.settings.sends_password_plainly_to(ip);
        let allowed: Vec<_> = inside.into_iter().filter(|found| plain(found.ip())).collect();
        if allowed.is_empty() { Err(format!("{name} {NOT_PLAINLY}")) } else { Ok(allowed) }
    }
}

/// Why a password is not sent.
pub(super) const NOT_PLAINLY: &str = "is not on loopback, and no password is sent there without TLS; use https, or set bmc.send_passwords_over_plain_http";

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let this = Self { settings: self.settings.clone(), plain_password: self.plain_password };
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed = this.allowed(name.as_str(), found)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_allowed_are_left_out() {
        let found =
            || ["192.0.2.1:0", "198.51.100.1:0", "127.0.0.1:0"].map(|text| text.parse().unwrap()).into_iter();
        let allowed = |networks: &[&str], plain_password: bool| {
            let networks = networks.iter().map(|text| text.parse().unwrap()).collect();
            let resolver =
                Resolver { settings: Settings { networks, ..Settings::default() }, plain_password };
            let allowed = resolver.allowed("bmc", found());
            allowed.map(|allowed| {
                allowed.iter().map(|found| found.ip().to_string()).collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(allowed(&[], false).unwrap(), "192.0.2.1 198.51.100.1 127.0.0.1");
        assert_eq!(allowed(&["198.51.100.0/24", "127.0.0.0/8"], false).unwrap(), "198.51.100.1 127.0.0.1");
        assert_eq!(allowed(&[], true).unwrap(), "127.0.0.1");
        assert_eq!(allowed(&["192.0.2.0/24"], true).unwrap_err(), format!("bmc {NOT_PLAINLY}"));
        let nowhere = allowed(&["203.0.113.0/24"], false).unwrap_err();
        assert_eq!(nowhere, "bmc has no address in the networks of bmc.networks");
    }
}
