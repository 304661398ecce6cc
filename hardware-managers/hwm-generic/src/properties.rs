//! `verify_properties`: is the node still the machine that its properties describe?
//!
//! | property | agrees when |
//! |---|---|
//! | `cpus` | equal to the logical processors |
//! | `cpu_arch` | equal; `amd64` is `x86_64`, `arm64` is `aarch64` |
//! | `memory_mb` | equal to the MiB of the fitted modules; where the firmware does not list them (SMBIOS type 17), less than an eighth away from what the kernel has: firmware and kernel keep some for themselves, and one module of eight may not be missing |
//! | `local_gb` | some disk has that many whole GiB, or one more: inspection leaves one for partitioning. 0 says nothing |
//!
//! Numbers may be text (`"8"`), as in Ironic. What `node.properties` does not name is not compared; if it names none
//! of the four, the step fails, since it would verify nothing.

use crate::finding::Finding;
use agent_protocol::inventory::Inventory;
use block::Disk;
use hwm_sdk::StepError;
use serde_json::Value;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Compare. Pure.
///
/// # Errors
/// [`StepError::Argument`] when a property is no number, or when there is none to compare.
pub fn compare(node: &Value, inventory: &Inventory, disks: &[Disk]) -> Result<Vec<Finding>, StepError> {
    let mut findings = Vec::new();
    if let Some(cpus) = number(node, "cpus")? {
        let found = inventory.cpu.count;
        findings.push(finding("cpus", cpus, found.to_string(), found == cpus));
    }
    if let Some(architecture) = node["properties"]["cpu_arch"].as_str() {
        let found = &inventory.cpu.architecture;
        let agrees = canonical(found) == canonical(architecture);
        findings.push(finding("cpu_arch", architecture, found.clone(), agrees));
    }
    if let Some(wanted) = number(node, "memory_mb")? {
        let (found, agrees) = match inventory.memory.physical_mb {
            Some(fitted) => (format!("{fitted} fitted"), fitted == wanted),
            None => {
                let kernel = inventory.memory.total / MIB;
                (format!("{kernel} in the kernel"), kernel.abs_diff(wanted) < wanted / 8)
            }
        };
        findings.push(finding("memory_mb", wanted, found, agrees));
    }
    if let Some(wanted) = number(node, "local_gb")?.filter(|&wanted| wanted > 0) {
        let agrees = disks.iter().any(|disk| [wanted, wanted + 1].contains(&(disk.size / GIB)));
        findings.push(finding("local_gb", wanted, sizes(disks), agrees));
    }
    if findings.is_empty() {
        return Err(StepError::Argument {
            name: "node.properties".into(),
            problem: "has none of cpus, cpu_arch, memory_mb, local_gb, so there is nothing to verify; set them, or \
                      inspect the node"
                .into(),
        });
    }
    Ok(findings)
}

fn finding(item: &str, expected: impl ToString, found: String, agrees: bool) -> Finding {
    Finding { item: item.to_owned(), expected: expected.to_string(), found, agrees }
}

fn number(node: &Value, name: &str) -> Result<Option<u64>, StepError> {
    let number = match &node["properties"][name] {
        Value::Null => return Ok(None),
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64(),
    };
    // A number that is too large for any machine would overflow below.
    number.filter(|&number| number < u64::MAX / GIB).map(Some).ok_or_else(|| StepError::Argument {
        name: format!("node.properties.{name}"),
        problem: "is not a whole number".into(),
    })
}

fn canonical(architecture: &str) -> String {
    match architecture.trim().to_lowercase().as_str() {
        "amd64" => "x86_64".into(),
        "arm64" => "aarch64".into(),
        other => other.into(),
    }
}

fn sizes(disks: &[Disk]) -> String {
    if disks.is_empty() {
        return "no disk".into();
    }
    let sizes: Vec<String> =
        disks.iter().map(|disk| format!("{} of {}", disk.path.display(), disk.size / GIB)).collect();
    sizes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_protocol::inventory::{Cpu, Memory};
    use serde_json::json;

    fn inventory(physical_mb: Option<u64>, total_mb: u64) -> Inventory {
        Inventory {
            cpu: Cpu { count: 8, architecture: "x86_64".into(), ..Cpu::default() },
            memory: Memory { total: total_mb * MIB, physical_mb },
            ..Inventory::default()
        }
    }

    fn disks(sizes: &[u64]) -> Vec<Disk> {
        let disk = |&size: &u64| Disk { path: "/dev/sda".into(), size, ..Disk::default() };
        sizes.iter().map(disk).collect()
    }

    fn all(properties: Value, inventory: &Inventory, sizes: &[u64]) -> Vec<Finding> {
        compare(&json!({ "properties": properties }), inventory, &disks(sizes)).expect("compared")
    }

    fn agrees(properties: Value, inventory: &Inventory, sizes: &[u64]) -> bool {
        all(properties, inventory, sizes).iter().all(|finding| finding.agrees)
    }

    #[test]
    fn a_node_is_what_its_properties_say() {
        let properties = json!({"cpus": "8", "cpu_arch": "amd64", "memory_mb": 65536, "local_gb": 99});
        let (whole, sizes) = (inventory(Some(65536), 64000), [10 * GIB, 100 * GIB + 7]);
        let findings = all(properties, &whole, &sizes);
        assert_eq!(findings.len(), 4);
        assert!(findings.iter().all(|finding| finding.agrees), "{findings:?}");
    }

    #[test]
    fn every_difference_is_found() {
        let properties = json!({"cpus": 16, "cpu_arch": "aarch64", "memory_mb": "65536", "local_gb": 200});
        let findings = all(properties, &inventory(Some(57344), 65536), &[100 * GIB]);
        let items: Vec<&str> = findings.iter().filter(|f| !f.agrees).map(|f| f.item.as_str()).collect();
        assert_eq!(items, ["cpus", "cpu_arch", "memory_mb", "local_gb"]);
        assert_eq!((findings[2].expected.as_str(), findings[2].found.as_str()), ("65536", "57344 fitted"));
        assert_eq!(findings[3].found, "/dev/sda of 100");
    }

    #[test]
    fn memory_without_a_list_of_modules_may_differ_by_less_than_an_eighth() {
        let memory = |total_mb| agrees(json!({"memory_mb": 8192}), &inventory(None, total_mb), &[]);
        assert_eq!([8193, 8192, 7900, 7169].map(memory), [true; 4]);
        assert_eq!([9216, 7168, 4096].map(memory), [false; 3]);
    }

    #[test]
    fn a_disk_counts_with_whole_gibibytes_and_one_to_spare() {
        let disk = |size| agrees(json!({"local_gb": 100}), &inventory(None, 1), &[size]);
        assert_eq!([100 * GIB, 102 * GIB - 1].map(disk), [true; 2]);
        assert_eq!([100 * GIB - 1, 102 * GIB].map(disk), [false; 2]);
        assert!(!agrees(json!({"local_gb": 100}), &inventory(None, 1), &[]));
    }

    #[test]
    fn nothing_to_verify_and_nonsense_are_named() {
        let problem = |properties: Value| {
            let node = json!({ "properties": properties });
            compare(&node, &inventory(None, 1), &[]).expect_err("refused").to_string()
        };
        for nothing in [Value::Null, json!({"vendor": "x"}), json!({"cpus": null, "local_gb": 0})] {
            assert!(problem(nothing).contains("nothing to verify"));
        }
        assert!(problem(json!({"cpus": "many"})).contains("node.properties.cpus"));
        assert!(problem(json!({"memory_mb": -1})).contains("node.properties.memory_mb"));
        assert!(problem(json!({"local_gb": u64::MAX})).contains("node.properties.local_gb"));
    }
}
