//! What hostile clients know of the nodes.

/// The nodes whose names and addresses a hostile client uses.
#[derive(Debug)]
pub struct Targets {
    nodes: Vec<(String, String)>,
}

impl Targets {
    /// Nodes, each with its UUID and MAC address.
    pub fn new(nodes: Vec<(String, String)>) -> Self {
        Self { nodes }
    }

    /// The UUID of any node.
    pub fn uuid(&self, random: &mut fastrand::Rng) -> &str {
        random.choice(&self.nodes).map_or("", |(uuid, _)| uuid)
    }

    /// The MAC address of any node, whatever it waits for: without the nonce of its boot a lookup gets nothing.
    pub fn mac(&self, random: &mut fastrand::Rng) -> &str {
        random.choice(&self.nodes).map_or("", |(_, mac)| mac)
    }
}
