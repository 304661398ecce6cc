//! How a node's agent gets an image that the controller has.

use image_source::{Checksum, Hosts};
use ipnet::IpNet;
use model::AgentApi;
use serde::Serialize;
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
    /// The same image at other controllers, which may have to fetch it first.
    pub copies: Vec<ImageCopy>,
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// The digest.
    pub value: String,
    /// Hosts that the agent may ask, the controllers among them.
    pub hosts: Vec<String>,
    /// Networks that it may not ask.
    pub never_hosts: Vec<String>,
}

/// The image at another controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageCopy {
    /// URL at that controller.
    pub url: String,
    /// Fingerprint of its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
}

impl Endpoint {
    /// Where another controller says that agents reach it, if that is an address.
    fn of(api: &AgentApi) -> Option<Self> {
        let (_, address) = api.url.split_once("://")?;
        let pin = api.pin_sha256.as_ref().map(|digits| format!("sha256:{digits}"));
        Some(Self { address: address.trim_end_matches('/').parse().ok()?, pin })
    }

    fn url(&self, name: &str) -> String {
        let scheme = if self.pin.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/v1/anneal/images/{name}", self.address)
    }
}

impl ImageOffer {
    pub(crate) fn of(
        endpoint: &Endpoint,
        others: &[AgentApi],
        name: &str,
        checksum: &Checksum,
        hosts: &Hosts,
    ) -> Self {
        let others: Vec<Endpoint> = others.iter().filter_map(Endpoint::of).collect();
        let all = std::iter::once(endpoint).chain(&others).map(|one| one.address.ip()).collect::<Vec<_>>();
        let (rules, never_hosts) = with_controllers(hosts, &all);
        Self {
            url: endpoint.url(name),
            pin: endpoint.pin.clone(),
            copies: others.into_iter().map(|one| ImageCopy { url: one.url(name), pin: one.pin }).collect(),
            algorithm: checksum.algorithm.as_str(),
            value: checksum.value.clone(),
            hosts: rules,
            never_hosts,
        }
    }
}

/// The rules as the agent gets them, with the addresses at which controllers serve it.
fn with_controllers(hosts: &Hosts, controllers: &[IpAddr]) -> (Vec<String>, Vec<String>) {
    let is_one = |net: &IpNet| controllers.iter().any(|address| *net == IpNet::from(*address));
    let never: Vec<&IpNet> = hosts.never.iter().filter(|net| !is_one(net)).collect();
    let mut rules: Vec<String> = hosts.rules.iter().map(ToString::to_string).collect();
    let is_closed = |address: &IpAddr| address.is_loopback() || never.iter().any(|net| net.contains(address));
    // Without rules every other host may be asked, too: a rule would close them.
    if !rules.is_empty() || controllers.iter().any(is_closed) {
        rules.extend(controllers.iter().map(ToString::to_string));
    }
    (rules, never.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use image_source::Host;

    #[test]
    fn an_agent_may_ask_the_controllers_that_serve_it_and_no_other_address_more() {
        let own: IpAddr = "192.0.2.1".parse().unwrap();
        let judge = |rules: &[&str], never: &[&str], own: IpAddr, asked: &str| {
            let hosts = Hosts {
                rules: rules.iter().map(|text| Host::parse(text).unwrap()).collect(),
                never: never.iter().map(|text| text.parse().unwrap()).collect(),
            };
            let (rules, never) = with_controllers(&hosts, &[own, [192, 0, 2, 3].into()]);
            let sent = Hosts {
                rules: rules.iter().map(|text| Host::parse(text).unwrap()).collect(),
                never: never.iter().map(|text| text.parse().unwrap()).collect(),
            };
            sent.judge("host", asked.parse().unwrap()).is_ok()
        };
        let never = &["192.0.2.1/32", "192.0.2.2/32", "10.0.0.0/8"];
        for rules in [&[][..], &["198.51.100.0/24"]] {
            assert!(judge(rules, never, own, "192.0.2.1"), "{rules:?}");
            assert!(judge(rules, never, own, "192.0.2.3"), "another controller");
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
