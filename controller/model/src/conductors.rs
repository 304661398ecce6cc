//! Controllers that share a store, and which of them drives a node. Each of them computes this alone, so it must depend on
//! nothing but the nodes and the reports; the lease of a node decides where two of them have read different reports.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::iter;
use uuid::Uuid;

/// Where agents reach a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentApi {
    /// Base URL of its API on the nodes' network.
    pub url: String,
    /// The same over IPv6, where `url` is over IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_ipv6: Option<String>,
    /// SHA-256 (64 hexadecimal digits) of the DER of its certificate; none for plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin_sha256: Option<String>,
    /// Whether it gives the nodes of its network their addresses, or would if no other did.
    #[serde(default)]
    pub gives_addresses: bool,
}

impl AgentApi {
    /// It by each of its URLs, IPv4 first.
    pub fn by_url(&self) -> impl Iterator<Item = Self> {
        let urls = iter::once(self.url.clone()).chain(self.url_ipv6.clone());
        urls.map(move |url| Self { url, url_ipv6: None, ..self.clone() })
    }
}

/// A controller, as it reports itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConductorReport {
    /// Its name, which no other has.
    pub hostname: String,
    /// The conductor group whose nodes it drives, in lower case; without one it drives the nodes of every group that has no
    /// controller of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Drivers that it has.
    pub drivers: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// Where agents reach it; nowhere if it boots no nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_api: Option<AgentApi>,
    /// How long a request to a BMC takes at most, in seconds: a successor waits for one that it may have died in. Earlier versions do
    /// not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc_request_timeout_s: Option<u64>,
    /// When it began to report itself.
    pub started_at: Timestamp,
    /// When it last did.
    pub reported_at: Timestamp,
    /// From then on it counts as gone, unless it has reported itself again.
    pub alive_until: Timestamp,
}

impl ConductorReport {
    /// Whether it counts as alive.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        now < self.alive_until
    }
}

/// The hostname of the controller among these, which are alive, that drives a node of a conductor group ("" for none).
///
/// Every controller has a rank for every node, and the highest drives it (rendezvous hashing): when one comes or goes, the
/// nodes of the others stay where they are.
pub fn driver_of<'a>(node: Uuid, group: &str, alive: &'a [ConductorReport]) -> Option<&'a str> {
    let of_group = |wanted: Option<&str>| {
        let those = alive.iter().filter(move |one| one.group.as_deref() == wanted);
        those.map(|one| one.hostname.as_str()).max_by_key(|name| (rank(node, name), *name))
    };
    of_group(Some(group)).or_else(|| of_group(None))
}

/// Frozen: controllers of two versions must agree. FNV-1a, then the finalizer of MurmurHash3, without which names that differ
/// in their last letter have ranks that differ little.
fn rank(node: Uuid, hostname: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = node.as_bytes().iter().chain(hostname.as_bytes());
    let mut hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn report(hostname: &str, group: Option<&str>) -> ConductorReport {
        let at = Timestamp(0);
        ConductorReport {
            hostname: hostname.to_owned(),
            group: group.map(str::to_owned),
            drivers: Vec::new(),
            version: String::new(),
            agent_api: None,
            bmc_request_timeout_s: None,
            started_at: at,
            reported_at: at,
            alive_until: Timestamp(10),
        }
    }

    fn nodes() -> impl Iterator<Item = Uuid> {
        (0..3000_u128).map(Uuid::from_u128)
    }

    #[test]
    fn each_drives_about_as_many_nodes_and_keeps_them_when_another_goes() {
        let all = [report("c1", None), report("c2", None), report("c3", None)];
        let mut counts = BTreeMap::new();
        for node in nodes() {
            let driver = driver_of(node, "", &all).unwrap();
            *counts.entry(driver).or_insert(0) += 1;
            let without_c2 = [all[0].clone(), all[2].clone()];
            let then = driver_of(node, "", &without_c2).unwrap();
            assert!(then == driver || driver == "c2", "{node} went from {driver} to {then}");
        }
        assert_eq!(counts.len(), 3);
        assert!(counts.values().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_group_is_driven_by_its_own_and_without_one_by_those_that_have_none() {
        let all = [report("own", Some("rack1")), report("any", None)];
        for node in nodes() {
            assert_eq!(driver_of(node, "rack1", &all), Some("own"));
            assert_eq!(driver_of(node, "", &all), Some("any"));
            assert_eq!(driver_of(node, "rack2", &all), Some("any"));
            assert_eq!(driver_of(node, "rack2", &all[..1]), None, "no controller reaches them");
        }
        assert_eq!(driver_of(Uuid::nil(), "", &[]), None);
    }

    #[test]
    fn ranks_are_frozen() {
        let ranks = ["c1", "c2", "controller.example"].map(|name| rank(Uuid::from_u128(1), name));
        assert_eq!(ranks, [0xc186_81c9_1d93_310b, 0x0462_5a41_a0e0_f043, 0x9da5_ade2_975c_1a80]);
    }

    #[test]
    fn it_is_alive_until_the_instant_that_it_names() {
        let one = report("c1", None);
        assert!(one.is_alive(Timestamp(9)) && !one.is_alive(Timestamp(10)));
    }
}
