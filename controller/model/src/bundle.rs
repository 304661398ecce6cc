//! Bundles of external hardware managers: which there are and which nodes they are meant for.

use crate::node::Node;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use uuid::Uuid;

/// Nodes that a bundle is meant for. Ordered from the widest to the narrowest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every node.
    All,
    /// Nodes of a driver.
    Driver(String),
    /// Nodes of a resource class.
    ResourceClass(String),
    /// One node.
    Node(Uuid),
}

/// One bundle for the nodes of one scope. There is one of a name in a scope: another takes its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    /// Name of the hardware manager in it.
    pub name: String,
    /// Whom it is meant for.
    pub scope: Scope,
    /// SHA-256 of the file, 64 hexadecimal digits: its name wherever it is kept.
    pub digest: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Version of the hardware manager.
    pub version: String,
    /// Whose it is.
    pub vendor: String,
    /// Id of the trusted key that has signed it; none: it is not signed.
    #[serde(default)]
    pub signed_by: Option<String>,
    /// Its manifest, for people.
    #[serde(default)]
    pub manifest: Map<String, Value>,
    /// When it was added.
    pub created_at: Timestamp,
}

impl Scope {
    /// Whether a node is in it.
    pub fn has(&self, node: &Node) -> bool {
        match self {
            Self::All => true,
            Self::Driver(driver) => *driver == node.driver,
            Self::ResourceClass(class) => node.resource_class.as_ref() == Some(class),
            Self::Node(uuid) => *uuid == node.uuid,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("all"),
            Self::Driver(driver) => write!(formatter, "driver:{driver}"),
            Self::ResourceClass(class) => write!(formatter, "resource_class:{class}"),
            Self::Node(uuid) => write!(formatter, "node:{uuid}"),
        }
    }
}

/// The bundles of a node by name: of several with one name, that of the narrowest scope.
pub fn of_node<'a>(bundles: &'a [Bundle], node: &Node) -> Vec<&'a Bundle> {
    let mut found: BTreeMap<&str, &Bundle> = BTreeMap::new();
    for bundle in bundles.iter().filter(|bundle| bundle.scope.has(node)) {
        let best = found.entry(&bundle.name).or_insert(bundle);
        if bundle.scope > best.scope {
            *best = bundle;
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_scope_wins_and_others_nodes_are_not_asked() {
        let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
        node.resource_class = Some("gold".to_owned());
        let bundle = |name: &str, scope: Scope| Bundle {
            name: name.to_owned(),
            digest: format!("{name}@{scope}"),
            scope,
            size: 1,
            version: "1".to_owned(),
            vendor: "v".to_owned(),
            signed_by: None,
            manifest: Map::new(),
            created_at: Timestamp(0),
        };
        let scopes = [
            Scope::Node(node.uuid),
            Scope::ResourceClass("gold".to_owned()),
            Scope::Driver("redfish".to_owned()),
            Scope::All,
        ];
        // Taking the best away lets the next one in, whatever order they are listed in.
        for from in 0..scopes.len() {
            let mut all: Vec<_> = scopes[from..].iter().map(|scope| bundle("a", scope.clone())).collect();
            for _ in 0..2 {
                all.reverse();
                let found: Vec<_> = of_node(&all, &node).iter().map(|bundle| bundle.scope.clone()).collect();
                assert_eq!(found, [scopes[from].clone()]);
            }
        }
        let others = [
            bundle("z", Scope::All),
            bundle("b", Scope::Driver("ipmi".to_owned())),
            bundle("c", Scope::ResourceClass("silver".to_owned())),
            bundle("d", Scope::Node(Uuid::from_u128(8))),
            bundle("a", Scope::All),
        ];
        let names: Vec<_> = of_node(&others, &node).iter().map(|bundle| bundle.name.as_str()).collect();
        assert_eq!(names, ["a", "z"]);
        node.resource_class = None;
        assert_eq!(
            of_node(&[bundle("a", Scope::ResourceClass(String::new()))], &node),
            Vec::<&Bundle>::new()
        );
    }
}
