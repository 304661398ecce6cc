//! How a node's agent gets an image that the controller has.

use image_source::{Checksum, Hosts};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// Where nodes reach the controller's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Address and port.
    pub address: SocketAddr,
    /// Fingerprint of its certificate; without one it speaks plain HTTP, on loopback.
    pub pin: Option<String>,
}

/// The image as the agent is to fetch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageOffer {
    /// URL at the controller.
    pub url: String,
    /// Fingerprint of the controller's certificate.
    pub pin: Option<String>,
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// The digest.
    pub value: String,
    /// Hosts that the agent may ask, the controller among them.
    pub hosts: Vec<String>,
    /// Networks that it may not ask.
    pub never_hosts: Vec<String>,
}

impl ImageOffer {
    pub(crate) fn of(endpoint: &Endpoint, name: &str, checksum: &Checksum, hosts: &Hosts) -> Self {
        let (rules, never_hosts) = with_controller(hosts, endpoint.address.ip());
        let scheme = if endpoint.pin.is_some() { "https" } else { "http" };
        Self {
            url: format!("{scheme}://{}/v1/anneal/images/{name}", endpoint.address),
            pin: endpoint.pin.clone(),
            algorithm: checksum.algorithm.as_str(),
            value: checksum.value.clone(),
            hosts: rules,
            never_hosts,
        }
    }
}

/// The rules as the agent gets them, with the address at which the controller serves it.
fn with_controller(hosts: &Hosts, own: IpAddr) -> (Vec<String>, Vec<String>) {
    let mut rules: Vec<String> = hosts.rules.iter().map(ToString::to_string).collect();
    let closed =
        own.is_loopback() || hosts.never.iter().any(|net| net.contains(&own) && *net != IpNet::from(own));
    // Without rules every other host may be asked, too: a rule would close them.
    if !rules.is_empty() || closed {
        rules.push(own.to_string());
    }
    let never = hosts.never.iter().filter(|net| **net != IpNet::from(own)).map(ToString::to_string);
    (rules, never.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use image_source::Host;

    #[test]
    fn an_agent_may_ask_the_controller_that_serves_it_and_no_other_address_more() {
        let own: IpAddr = "192.0.2.1".parse().unwrap();
        let judge = |rules: &[&str], never: &[&str], own: IpAddr, asked: &str| {
            let hosts = Hosts {
                rules: rules.iter().map(|text| Host::parse(text).unwrap()).collect(),
                never: never.iter().map(|text| text.parse().unwrap()).collect(),
            };
            let (rules, never) = with_controller(&hosts, own);
            let sent = Hosts {
                rules: rules.iter().map(|text| Host::parse(text).unwrap()).collect(),
                never: never.iter().map(|text| text.parse().unwrap()).collect(),
            };
            sent.judge("host", asked.parse().unwrap()).is_ok()
        };
        let never = &["192.0.2.1/32", "192.0.2.2/32", "10.0.0.0/8"];
        for rules in [&[][..], &["198.51.100.0/24"]] {
            assert!(judge(rules, never, own, "192.0.2.1"), "{rules:?}");
            assert!(judge(rules, never, own, "198.51.100.1"));
            assert!(!judge(rules, never, own, "192.0.2.2"));
            assert!(!judge(rules, never, own, "10.0.0.1"));
            assert_eq!(judge(rules, never, own, "203.0.113.1"), rules.is_empty());
        }
        assert!(judge(&[], &[], [127, 0, 0, 1].into(), "127.0.0.1"));
        assert!(judge(&[], never, [10, 0, 0, 7].into(), "10.0.0.7"), "in a BMC network");
        assert!(!judge(&[], never, [10, 0, 0, 7].into(), "10.0.0.8"));
    }
}
