//! Which hosts may be asked for an image. Pure; one judgement for controller and agent.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The setting that errors name.
const SETTING: &str = "[images] hosts";

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// This name; with a leading dot, names that end with it.
    Name(String),
    /// Addresses of this network.
    Net(IpNet),
}

impl Host {
    /// A network, an address, a name, or the end of names with a leading dot (`.example.org`).
    ///
    /// # Errors
    /// It is none of these. `*` is none: a leading dot says the same without a second meaning.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(net) = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)) {
            return Ok(Host::Net(net));
        }
        let name = text.strip_prefix('.').unwrap_or(text).trim_end_matches('.');
        let label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        // What ends in digits is an address that was mistyped.
        let last_is_name =
            name.rsplit('.').next().is_some_and(|last| last.bytes().any(|b| !b.is_ascii_digit()));
        if !name.split('.').all(label) || !last_is_name {
            return Err(format!(
                "{text:?} is neither a network, nor an address, nor a name; \".example.org\" means all names below example.org"
            ));
        }
        let dot = if text.starts_with('.') { "." } else { "" };
        Ok(Host::Name(format!("{dot}{}", name.to_ascii_lowercase())))
    }

    pub(crate) fn names(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        match self {
            Host::Name(name) if name.starts_with('.') => host.ends_with(name.as_str()),
            Host::Name(name) => host == *name,
            Host::Net(_) => false,
        }
    }
}

/// As [`Host::parse`] reads it.
impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Net(net) => net.fmt(f),
        }
    }
}

/// Which hosts may be asked. Never this machine, no link-local address, and nothing in [`Hosts::never`], unless a network
/// among the rules says so: a name does not, because its DNS server chooses its address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    /// When there are none, every host may be asked.
    pub rules: Vec<Host>,
    /// Networks that only a network among the rules opens: BMCs, the controller itself.
    pub never: Vec<IpNet>,
}

impl Hosts {
    /// Whether `host`, a name or an address, may be asked at `address`: the one that is connected to.
    ///
    /// # Errors
    /// Why not, with the setting.
    pub fn judge(&self, host: &str, address: IpAddr) -> Result<(), String> {
        let address = canonical(address);
        let by_net = self.rules.iter().any(|rule| matches!(rule, Host::Net(net) if net.contains(&address)));
        if by_net {
            return Ok(());
        }
        let at =
            if host.parse() == Ok(address) { address.to_string() } else { format!("{host} ({address})") };
        let never = never(address).or_else(|| {
            let closed = self.never.iter().any(|net| net.contains(&address));
            closed.then_some("the controller's own or a BMC's")
        });
        if let Some(what) = never {
            return Err(format!("{at} is {what} address, which no network in {SETTING} names"));
        }
        if self.rules.is_empty() || self.rules.iter().any(|rule| rule.names(host)) {
            return Ok(());
        }
        Err(format!("{at} is not in {SETTING}"))
    }

    /// Whether `host` may be asked through a proxy, which resolves it: a name has to be among the rules by its name.
    ///
    /// # Errors
    /// Why not, with the setting.
    pub fn judge_for_proxy(&self, host: &str) -> Result<(), String> {
        match host.parse::<IpAddr>() {
            Ok(address) => self.judge(host, address),
            Err(_) if self.rules.is_empty() || self.rules.iter().any(|rule| rule.names(host)) => Ok(()),
            Err(_) => Err(format!("{host} is not in {SETTING} by its name, and a proxy resolves it")),
        }
    }

    /// What can be said of `host` before it is resolved: whether [`Hosts::judge`] could allow it.
    ///
    /// # Errors
    /// Why it never will.
    pub fn judge_unresolved(&self, host: &str) -> Result<(), String> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.judge(host, address);
        }
        let by_address = self.rules.iter().any(|rule| matches!(rule, Host::Net(_)));
        if self.rules.is_empty() || by_address || self.rules.iter().any(|rule| rule.names(host)) {
            return Ok(());
        }
        Err(format!("{host} is not in {SETTING}"))
    }
}

/// The IPv4 address in an IPv6 address that only carries one: mapped, compatible, or for a NAT64 gateway (64:ff9b::/96).
fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address.to_canonical() else { return address.to_canonical() };
    let [a, b, c, d, e, f, high, low] = v6.segments();
    let v4 = Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        [0x64, 0xff9b, 0, 0, 0, 0] => IpAddr::V4(v4),
        [0, 0, 0, 0, 0, 0] if v6 != Ipv6Addr::UNSPECIFIED && v6 != Ipv6Addr::LOCALHOST => IpAddr::V4(v4),
        _ => IpAddr::V6(v6),
    }
}

fn never(address: IpAddr) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let this_network = matches!(address, IpAddr::V4(address) if address.octets()[0] == 0);
    if address.is_loopback() || address.is_unspecified() || this_network {
        Some("a loopback")
    } else if link_local {
        Some("a link-local")
    } else if address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
        Some("a multicast")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(rules: &[&str], never: &[&str]) -> Hosts {
        Hosts {
            rules: rules.iter().map(|text| Host::parse(text).expect(text)).collect(),
            never: never.iter().map(|text| text.parse().expect(text)).collect(),
        }
    }

    #[test]
    fn through_a_proxy_a_name_is_judged_by_itself() {
        for (rules, host, allowed) in [
            (&[][..], "a", true),
            (&[], "192.0.2.1", true),
            (&[], "127.0.0.1", false),
            (&["a"], "A", true),
            (&["a"], "b", false),
            (&["192.0.2.0/24"], "a", false),
            (&["192.0.2.0/24"], "192.0.2.1", true),
        ] {
            let judged = hosts(rules, &[]).judge_for_proxy(host);
            assert_eq!(judged.is_ok(), allowed, "{rules:?} {host}: {judged:?}");
        }
        assert!(hosts(&[], &["192.0.2.0/24"]).judge_for_proxy("192.0.2.1").is_err());
    }

    #[test]
    fn hosts_are_judged_by_name_and_by_where_they_are() {
        for (rules, host, address, allowed) in [
            (&[][..], "a", "192.0.2.1", true),
            (&[], "a", "2001:db8::1", true),
            (&[], "a", "127.0.0.1", false),
            (&[], "a", "127.255.255.254", false),
            (&[], "a", "::1", false),
            (&[], "a", "::", false),
            (&[], "a", "::ffff:127.0.0.1", false),
            (&[], "a", "::127.0.0.1", false),
            (&[], "a", "64:ff9b::7f00:1", false),
            (&[], "a", "64:ff9b::c000:201", true),
            (&[], "a", "0.0.0.0", false),
            (&[], "a", "0.1.2.3", false),
            (&[], "a", "169.254.169.254", false),
            (&[], "a", "::ffff:169.254.169.254", false),
            (&[], "a", "fe80::1", false),
            (&[], "a", "febf::1", false),
            (&[], "a", "fec0::1", true),
            (&[], "a", "224.0.0.1", false),
            (&[], "a", "ff02::1", false),
            (&[], "a", "255.255.255.255", false),
            (&["a"], "a", "127.0.0.1", false),
            (&["localhost"], "localhost", "127.0.0.1", false),
            (&["127.0.0.0/8"], "a", "127.0.0.1", true),
            (&["127.0.0.1"], "a", "127.0.0.2", false),
            (&["127.0.0.0/8"], "a", "::ffff:127.0.0.1", true),
            (&["::1"], "a", "::1", true),
            (&["169.254.169.254"], "a", "169.254.169.254", true),
            (&["a"], "A", "192.0.2.1", true),
            (&["A"], "a.", "192.0.2.1", true),
            (&["a"], "b", "192.0.2.1", false),
            (&["a"], "192.0.2.1", "192.0.2.1", false),
            (&[".example"], "x.example", "192.0.2.1", true),
            (&[".example"], "y.x.example", "192.0.2.1", true),
            (&[".example"], "example", "192.0.2.1", false),
            (&[".example"], "xexample", "192.0.2.1", false),
            (&["example"], "x.example", "192.0.2.1", false),
            (&["192.0.2.0/24"], "b", "192.0.2.1", true),
            (&["192.0.2.0/24"], "b", "::ffff:192.0.2.1", true),
            (&["192.0.2.0/24"], "b", "198.51.100.1", false),
            (&["2001:db8::/32"], "b", "2001:db8:1::1", true),
            (&["2001:db8::/32"], "b", "2001:db9::1", false),
            (&["0.0.0.0/0"], "b", "2001:db8::1", false),
        ] {
            let judged = hosts(rules, &[]).judge(host, address.parse().expect(address));
            assert_eq!(judged.is_ok(), allowed, "{rules:?} {host} {address}: {judged:?}");
        }
    }

    #[test]
    fn bmcs_and_the_controller_are_asked_only_where_a_network_names_them() {
        let closed = &["10.1.0.0/16", "192.0.2.7/32"];
        for (rules, address, allowed) in [
            (&[][..], "10.1.2.3", false),
            (&[], "::ffff:10.1.2.3", false),
            (&[], "10.2.0.1", true),
            (&["mirror"], "192.0.2.7", false),
            (&["192.0.2.7"], "192.0.2.7", true),
            (&["10.0.0.0/8"], "10.1.2.3", true),
        ] {
            let judged = hosts(rules, closed).judge("mirror", address.parse().expect(address));
            assert_eq!(judged.is_ok(), allowed, "{rules:?} {address}: {judged:?}");
        }
    }

    #[test]
    fn a_refusal_names_host_address_and_setting() {
        let judged = |rules: &[&str], host: &str| hosts(rules, &[]).judge(host, IpAddr::from([127, 0, 0, 1]));
        let said = judged(&[], "m").expect_err("loopback");
        assert_eq!(said, "m (127.0.0.1) is a loopback address, which no network in [images] hosts names");
        let said = judged(&[], "127.0.0.1").expect_err("loopback");
        assert_eq!(said, "127.0.0.1 is a loopback address, which no network in [images] hosts names");
        let said = hosts(&["a"], &[]).judge("m", IpAddr::from([192, 0, 2, 1])).expect_err("another");
        assert_eq!(said, "m (192.0.2.1) is not in [images] hosts");
    }

    #[test]
    fn what_can_be_known_is_known_before_a_name_is_resolved() {
        for (rules, host, allowed) in [
            (&[][..], "mirror", true),
            (&[], "127.0.0.1", false),
            (&[], "::1", false),
            (&["a"], "mirror", false),
            (&["a"], "a", true),
            (&["a", "192.0.2.0/24"], "mirror", true),
            (&["192.0.2.0/24"], "198.51.100.1", false),
        ] {
            let judged = hosts(rules, &[]).judge_unresolved(host);
            assert_eq!(judged.is_ok(), allowed, "{rules:?} {host}: {judged:?}");
        }
    }

    #[test]
    fn rules_are_networks_addresses_names_and_ends_of_names() {
        for (text, shown) in [
            ("192.0.2.1", "192.0.2.1/32"),
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("Mirror.Example.", "mirror.example"),
            (".Example", ".example"),
            ("my_host-1", "my_host-1"),
        ] {
            let rule = Host::parse(text).expect(text);
            assert_eq!(rule.to_string(), shown);
            assert_eq!(Host::parse(shown), Ok(rule), "read as it was shown");
        }
        for bad in [
            "",
            ".",
            "*",
            "*.example",
            "a b",
            "192.0.2.300",
            "192.0.2.0/33",
            "10.0",
            "http://a",
            "a:80",
            "a..b",
        ] {
            assert!(Host::parse(bad).is_err(), "{bad}");
        }
    }
}
