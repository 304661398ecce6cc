//! The settings of discovery: which unknown machines are booted, and what becomes of them.

use ipnet::IpNet;
use model::discovery::DiscoveryLimits;
use model::interface::AddPorts;
use std::net::IpAddr;

/// How unknown machines are discovered.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoverySettings {
    /// Where they are.
    pub networks: Vec<IpNet>,
    /// How many, and how long they wait.
    pub limits: DiscoveryLimits,
    /// Driver of the nodes that they become.
    pub driver: String,
    /// Which interfaces become ports.
    pub add_ports: AddPorts,
}

impl DiscoverySettings {
    /// Whether a machine with this address may be discovered; one without a known address may not.
    pub fn covers(&self, from: Option<IpAddr>) -> bool {
        let from = from.map(|from| from.to_canonical());
        from.is_some_and(|from| self.networks.iter().any(|network| network.contains(&from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_machines_of_the_networks_are_covered() {
        let limits = DiscoveryLimits { wait: Duration::from_secs(60), per_minute: 1, waiting: 1 };
        let networks = vec!["10.9.0.0/24".parse().unwrap(), "2001:db8::/64".parse().unwrap()];
        let settings =
            DiscoverySettings { networks, limits, driver: "redfish".to_owned(), add_ports: AddPorts::Pxe };
        let covers = |from: &str| settings.covers(from.parse().ok());
        for inside in ["10.9.0.1", "::ffff:10.9.0.1", "2001:db8::7"] {
            assert!(covers(inside), "{inside}");
        }
        for outside in ["10.9.1.1", "::ffff:10.9.1.1", "2001:db9::7", "0.0.0.0", ""] {
            assert!(!covers(outside), "{outside}");
        }
    }
}
