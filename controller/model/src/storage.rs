//! What a node's properties say of its storage.

use crate::node::Node;
use serde_json::Value;

/// Property of a node that has no disks: `true`, also as text, which is what `baremetal node set --property` sends. An erase
/// of it may then find none.
pub const DISKLESS: &str = "diskless";

/// Whether the node is declared to have no disks. Anything but true is no.
pub fn is_diskless(node: &Node) -> bool {
    match node.properties.get(DISKLESS) {
        Some(Value::Bool(diskless)) => *diskless,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn a_node_is_diskless_only_if_it_is_said_so() {
        let mut node = Node::enrolled(Uuid::nil(), "fake-hardware", Timestamp(0));
        assert!(!is_diskless(&node));
        for (value, diskless) in [
            (json!(true), true),
            (json!("true"), true),
            (json!("True"), true),
            (json!(false), false),
            (json!("false"), false),
            (json!("yes"), false),
            (json!(1), false),
            (json!({}), false),
            (json!(null), false),
        ] {
            node.properties.insert(DISKLESS.to_owned(), value.clone());
            assert_eq!(is_diskless(&node), diskless, "{value}");
        }
    }
}
