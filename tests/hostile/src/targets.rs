//! What hostile clients know of the nodes.

use std::collections::BTreeSet;
use std::sync::Mutex;

/// The nodes whose names and addresses a hostile client uses.
#[derive(Debug, Default)]
pub struct Targets {
    nodes: Vec<(String, String)>,
    /// MAC addresses of nodes whose own agent has its token.
    granted: Mutex<BTreeSet<String>>,
}

impl Targets {
    /// Nodes, each with its UUID and MAC address.
    pub fn new(nodes: Vec<(String, String)>) -> Self {
        Self { nodes, granted: Mutex::default() }
    }

    /// The UUID of any node.
    pub fn uuid(&self, random: &mut fastrand::Rng) -> &str {
        random.choice(&self.nodes).map_or("", |(uuid, _)| uuid)
    }

    /// The MAC address of a node whose agent has its token. Before that, on plain PXE, the machine that fetches a script and asks
    /// first is the node's agent (docs/threat-model.md): that is no question of load.
    pub fn mac(&self, random: &mut fastrand::Rng) -> Option<String> {
        let granted = room::held(&self.granted);
        random.choice(granted.iter()).cloned()
    }

    /// The agent of the machine with this MAC address got its token.
    pub fn grant(&self, mac: &str) {
        room::held(&self.granted).insert(mac.to_owned());
    }

    /// The machine boots again.
    pub fn withdraw(&self, mac: &str) {
        room::held(&self.granted).remove(mac);
    }
}
