//! The inventory of a node, as agents and BMCs report it, and the node's properties that follow from it.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The inventory of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// In ironic-python-agent's form: `interfaces`, `cpu`, `memory`, `disks`, `system_vendor`, `boot` …
    pub inventory: Value,
    /// What collectors and plugins added.
    pub plugin_data: Value,
    /// When it was received.
    pub at: Timestamp,
    /// Where it comes from: `agent`, `redfish`, `fake`.
    pub source: String,
    /// Inspection rules have changed the plugin data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ruled: bool,
}

/// Smallest disk that can hold a root file system, in bytes, as in Ironic.
const LEAST_ROOT: u64 = 4 << 30;

/// The properties that follow from an inventory; values that it lacks are left out. `local_gb` is the size of the smallest
/// disk of at least 4 GiB, less 1 GiB, as in Ironic's inspection.
pub fn properties(inventory: &Value) -> Map<String, Value> {
    let number = |path: &str| inventory.pointer(path).and_then(Value::as_u64).filter(|value| *value > 0);
    let text = |path: &str| inventory.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut found = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            found.insert(name.to_owned(), value);
        }
    };
    put("cpus", number("/cpu/count").map(Value::from));
    put("cpu_arch", text("/cpu/architecture").map(Value::from));
    put("memory_mb", number("/memory/physical_mb").map(Value::from));
    let sizes = inventory.get("disks").and_then(Value::as_array).into_iter().flatten();
    let root = sizes.filter_map(|disk| disk.get("size")?.as_u64()).filter(|size| *size >= LEAST_ROOT).min();
    put("local_gb", root.map(|size| ((size >> 30) - 1).into()));
    put("vendor", text("/system_vendor/manufacturer").map(Value::from));
    found
}

/// The modaliases of the PCI functions (`pci:v00008086d…`) in the plugin data of an inspection by Anneal's agent; `None` where there
/// are none: other agents and BMCs do not report them.
pub fn pci_modaliases(plugin_data: &Value) -> Option<Vec<String>> {
    let managers = plugin_data.pointer("/anneal/managers").and_then(Value::as_object)?;
    let functions =
        managers.values().filter_map(|patch| patch.pointer("/extra/pci_devices")?.as_array()).flatten();
    let found: Vec<String> =
        functions.filter_map(|function| Some(function.get("modalias")?.as_str()?.to_owned())).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_modaliases_of_all_managers_are_found() {
        let functions = |modalias: Value| json!({"extra": {"pci_devices": [{"modalias": modalias}, {"class": "0x020000"}]}});
        let reported = json!({"anneal": {"managers": {"a": functions(json!("pci:v1")), "b": functions(json!("pci:v2"))}}});
        assert_eq!(pci_modaliases(&reported), Some(vec!["pci:v1".to_owned(), "pci:v2".to_owned()]));
        for none in [
            json!({}),
            json!({"anneal": {"managers": {}}}),
            json!({"anneal": {"managers": {"a": functions(json!(7))}}}),
            json!({"pci_devices": [{"vendor_id": "8086"}]}),
        ] {
            assert_eq!(pci_modaliases(&none), None, "{none}");
        }
    }

    #[test]
    fn properties_are_what_the_inventory_reports_and_no_more() {
        let reported = json!({
            "cpu": {"count": 8, "architecture": "x86_64"}, "memory": {"physical_mb": 4096},
            "disks": [{"size": 1u64 << 40}, {"size": 500u64 << 30}, {"size": 1u64 << 30}, {"size": "big"}],
            "system_vendor": {"manufacturer": "ACME"},
        });
        assert_eq!(
            Value::Object(properties(&reported)),
            json!({"cpus": 8, "cpu_arch": "x86_64", "memory_mb": 4096, "local_gb": 499, "vendor": "ACME"})
        );
        for odd in [json!(null), json!({"cpu": 3, "disks": {}}), json!({"cpu": {"count": -1}, "memory": []})]
        {
            assert!(properties(&odd).is_empty(), "{odd}");
        }
    }
}
