//! Capabilities of a node: `properties.capabilities`, in Ironic's form `name:value,name:value`.

use crate::node::Node;
use serde_json::Value;

/// Ironic's name of the capability of a machine whose firmware starts signed programs alone.
pub const SECURE_BOOT: &str = "secure_boot";
/// Ironic's name of the mode that the firmware boots in: `bios` or `uefi`.
pub const BOOT_MODE: &str = "boot_mode";

/// The value of the capability with this name, without blanks around it; of several the first.
pub fn of<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    let all = node.properties.get("capabilities").and_then(Value::as_str)?;
    all.split(',').find_map(|pair| {
        let (known, value) = pair.split_once(':')?;
        (known.trim() == name).then_some(value.trim())
    })
}

/// Whether the firmware of the node starts signed programs alone, as its operator says.
pub fn has_secure_boot(node: &Node) -> bool {
    of(node, SECURE_BOOT).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn a_capability_is_found_by_its_whole_name() {
        let with = |value: Value| {
            let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
            node.properties.insert("capabilities".to_owned(), value);
            node
        };
        for (text, expected) in [
            ("secure_boot:true", true),
            ("boot_mode:uefi, secure_boot : True", true),
            ("secure_boot:false,secure_boot:true", false),
            ("not_secure_boot:true", false),
            ("secure_boot", false),
            ("", false),
        ] {
            assert_eq!(has_secure_boot(&with(json!(text))), expected, "{text}");
        }
        assert!(!has_secure_boot(&with(json!({"secure_boot": "true"}))), "no text");
        assert_eq!(of(&with(json!("boot_mode:bios,secure_boot:true")), BOOT_MODE), Some("bios"));
    }
}
