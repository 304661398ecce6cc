//! Which hosts may be asked for an image. Pure.

use crate::url::ImageUrl;
use ipnet::IpNet;
use std::net::IpAddr;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// This name; with a leading dot, names that end with it.
    Name(String),
    /// Addresses of this network.
    Net(IpNet),
}

impl Host {
    /// A network, an address, a name, or the end of names with a leading dot.
    pub fn parse(text: &str) -> Self {
        let net = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        net.map_or_else(|_| Host::Name(text.to_owned()), Host::Net)
    }
}

/// Which hosts may be asked. Never this machine, and no link-local address, unless a network says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    /// When there are none, every host may be asked.
    pub rules: Vec<Host>,
}

impl Hosts {
    /// Whether the host of `url`, which is at `address`, may be asked.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(&self, url: &ImageUrl, address: IpAddr) -> Result<(), String> {
        let address = address.to_canonical();
        let by_net = self.rules.iter().any(|rule| matches!(rule, Host::Net(net) if net.contains(&address)));
        if by_net {
            return Ok(());
        }
        if let Some(what) = never(address) {
            return Err(format!("{address} is {what}, which no rule for image hosts names"));
        }
        let by_name = self.rules.iter().any(|rule| match rule {
            Host::Name(name) if name.starts_with('.') => {
                url.host().to_ascii_lowercase().ends_with(&name.to_ascii_lowercase())
            }
            Host::Name(name) => url.host().eq_ignore_ascii_case(name),
            Host::Net(_) => false,
        });
        if by_name || self.rules.is_empty() {
            return Ok(());
        }
        Err("no rule for image hosts names it".to_owned())
    }
}

fn never(address: IpAddr) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    if address.is_loopback() || address.is_unspecified() {
        Some("this machine")
    } else if link_local {
        Some("link-local")
    } else if address.is_multicast() || address == IpAddr::from([255, 255, 255, 255]) {
        Some("no single machine")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_judged_by_name_and_by_where_they_are() {
        let name = |name: &str| Host::Name(name.into());
        let net = Host::parse;
        assert_eq!(Host::parse("192.0.2.1"), Host::Net("192.0.2.1/32".parse().expect("a network")));
        assert_eq!(Host::parse(".example"), name(".example"));
        for (rules, url, address, allowed) in [
            (vec![], "http://a/", "192.0.2.1", true),
            (vec![], "http://a/", "127.0.0.1", false),
            (vec![], "http://a/", "::1", false),
            (vec![], "http://a/", "::ffff:127.0.0.1", false),
            (vec![], "http://a/", "0.0.0.0", false),
            (vec![], "http://a/", "169.254.169.254", false),
            (vec![], "http://a/", "fe80::1", false),
            (vec![], "http://a/", "224.0.0.1", false),
            (vec![name("a")], "http://a/", "127.0.0.1", false),
            (vec![net("127.0.0.0/8")], "http://a/", "127.0.0.1", true),
            (vec![name("a")], "http://A/", "192.0.2.1", true),
            (vec![name("a")], "http://b/", "192.0.2.1", false),
            (vec![name(".example")], "http://x.example/", "192.0.2.1", true),
            (vec![name(".example")], "http://xexample/", "192.0.2.1", false),
            (vec![net("192.0.2.0/24")], "http://b/", "192.0.2.1", true),
            (vec![net("192.0.2.0/24")], "http://b/", "198.51.100.1", false),
        ] {
            let judged = Hosts { rules: rules.clone() }
                .judge(&url.parse().expect("a URL"), address.parse().expect("an address"));
            assert_eq!(judged.is_ok(), allowed, "{rules:?} {url} {address}: {judged:?}");
        }
    }
}
