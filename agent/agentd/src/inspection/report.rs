//! What is posted: the inventory, and what collectors and hardware managers add to it.

use super::nic_firmware;
use crate::commands;
use crate::config::Inspection;
use crate::lldp::{self, Listening, Tlv};
use crate::state::State;
use agent_protocol::inspection::{Configuration, Discovered, InspectionReport, Manager};
use agent_protocol::inventory::{Disk, Inventory};
use hwm_sdk::protocol::Suppressed;
use hwm_sdk::{HardwareManager, StepContext, Support};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// An image needs at least this much, in bytes (ironic-python-agent's `guess_root_disk`).
const ROOT_DISK_BYTES: u64 = 4 << 30;

/// The inventory itself; always collected.
const DEFAULT: &str = "default";
/// The LLDP neighbours of every interface.
const LLDP: &str = "lldp";
/// The system logs.
const LOGS: &str = "logs";
/// PCI functions.
const PCI_DEVICES: &str = "pci-devices";

/// Collect it all. Blocks: neighbours are listened for, and managers are asked.
pub fn collect(inspection: &Inspection, state: &State) -> InspectionReport {
    let mut inventory = (*state.inventory()).clone();
    let managers = state.managers();
    let managers: Vec<&Arc<dyn HardwareManager>> =
        managers.iter().filter(|manager| manager.evaluate(&inventory) > Support::None).collect();
    let wanted = |name: &str| inspection.collectors.iter().any(|wanted| wanted == name);
    let neighbours = match inspection.collect_lldp || wanted(LLDP) {
        true => neighbours(inspection, state.in_ramdisk(), &inventory, &managers),
        false => None,
    };
    if inspection.collect_lldp {
        for interface in &mut inventory.interfaces {
            interface.lldp = neighbours.as_ref().and_then(|heard| heard.get(&interface.name).map(written));
        }
    }
    if state.in_ramdisk() {
        nic_firmware::request(Path::new("/sys/class/net"), &inventory.interfaces);
    }
    let mut collectors = vec![DEFAULT.to_owned()];
    let mut other = Map::new();
    for name in &inspection.collectors {
        let (key, found) = match name.as_str() {
            DEFAULT => continue,
            // An interface without a neighbour is there with none.
            LLDP => match &neighbours {
                Some(heard) => {
                    let raw = heard.iter().map(|(name, tlvs)| (name.clone(), written(tlvs)));
                    ("lldp_raw", Value::Object(raw.collect()))
                }
                None => continue,
            },
            LOGS => match commands::system_logs(state) {
                Ok(logs) => (LOGS, Value::String(logs)),
                Err(error) => {
                    tracing::warn!(%error, "the logs cannot be collected for the inspection");
                    continue;
                }
            },
            PCI_DEVICES => ("pci_devices", pci_devices(Path::new("/sys"))),
            unknown => {
                tracing::warn!(collector = unknown, "no such inspection collector here; ignored");
                continue;
            }
        };
        other.insert(key.to_owned(), found);
        collectors.push(name.clone());
    }
    InspectionReport {
        root_disk: root_disk(&inventory.disks).cloned(),
        boot_interface: inventory.boot.pxe_interface.clone(),
        configuration: Configuration {
            collectors,
            managers: managers
                .iter()
                .map(|manager| Manager { name: manager.name().into(), version: manager.version().into() })
                .collect(),
        },
        error: None,
        anneal: discovered(&managers),
        other,
        inventory,
    }
}

/// What each manager adds. One that fails leaves a line that says so, and the inventory as it is.
fn discovered(managers: &[&Arc<dyn HardwareManager>]) -> Option<Discovered> {
    let mut discovered = Discovered::default();
    for manager in managers {
        let answer = manager.inventory(&StepContext::new());
        let answer = answer.map(|patch| json!(patch)).map_err(|error| error.to_string());
        match answer {
            Ok(patch) if patch.as_object().is_some_and(|patch| !patch.is_empty()) => {
                discovered.managers.insert(manager.name().to_owned(), patch);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(manager = manager.name(), error, "a hardware manager returned no inventory");
                discovered.problems.insert(manager.name().to_owned(), error);
            }
        }
    }
    (discovered != Discovered::default()).then_some(discovered)
}

/// The TLVs that were heard, by interface; `None` if the agent did not listen.
fn neighbours(
    inspection: &Inspection,
    bring_up: bool,
    inventory: &Inventory,
    managers: &[&Arc<dyn HardwareManager>],
) -> Option<BTreeMap<String, Vec<Tlv>>> {
    for manager in managers {
        let quirks = manager.quirks(inventory);
        let mut meant = quirks.iter().filter(|quirk| quirk.covers(&inventory.system_vendor));
        if let Some(quirk) = meant.find(|quirk| quirk.suppress == Suppressed::Lldp) {
            tracing::warn!(manager = manager.name(), reason = quirk.reason, "LLDP is not listened for");
            return None;
        }
    }
    let names: Vec<String> = inventory.interfaces.iter().map(|interface| interface.name.clone()).collect();
    tracing::info!(interfaces = ?names, seconds = inspection.lldp_time.as_secs_f32(), "listening for LLDP");
    lldp::listen(&names, Listening { time: inspection.lldp_time, bring_up })
        .inspect_err(|error| tracing::warn!(%error, "LLDP cannot be listened for"))
        .ok()
}

fn written(tlvs: impl AsRef<[Tlv]>) -> Value {
    tlvs.as_ref().iter().map(Tlv::to_json).collect()
}

/// In the form of ironic-python-agent's collector: numbers without `0x`, in text.
fn pci_devices(sys: &Path) -> Value {
    let plain = |text: &str| text.trim_start_matches("0x").to_owned();
    let device = |device: hwm_generic::PciDevice| {
        json!({
            "vendor_id": plain(&device.vendor), "product_id": plain(&device.device), "class": plain(&device.class),
            "revision": device.revision.as_deref().map(plain), "bus": device.address,
            "numa_node_id": device.numa_node.map_or_else(|| "-1".to_owned(), |node| node.to_string()),
        })
    };
    hwm_generic::pci_devices(sys).into_iter().map(device).collect()
}

/// The smallest disk that an image fits on, the first by name of several such.
fn root_disk(disks: &[Disk]) -> Option<&Disk> {
    disks.iter().filter(|disk| disk.size >= ROOT_DISK_BYTES).min_by_key(|disk| (disk.size, &disk.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_protocol::step::Step;
    use hwm_sdk::protocol::Quirk;
    use hwm_sdk::{StepCall, StepError, StepKind, StepOutcome};
    use std::time::Duration;

    #[test]
    fn the_root_disk_is_the_smallest_that_is_large_enough() {
        let disk = |name: &str, size| Disk { name: name.into(), size, ..Disk::default() };
        let disks = [disk("/dev/sdc", 5 << 30), disk("/dev/sdb", 5 << 30), disk("/dev/sda", 1 << 30)];
        assert_eq!(root_disk(&disks).map(|disk| disk.name.as_str()), Some("/dev/sdb"));
        assert_eq!(root_disk(&disks[2..]), None);
    }

    #[test]
    fn pci_functions_are_written_as_ipa_does() {
        let sys = tempfile::tempdir().expect("tempdir");
        let function = sys.path().join("bus/pci/devices/0000:3b:00.0");
        std::fs::create_dir_all(&function).expect("directory");
        for (file, value) in [
            ("vendor", "0x8086"),
            ("device", "0x1521"),
            ("class", "0x020000"),
            ("revision", "0x01"),
            ("numa_node", "-1"),
        ] {
            std::fs::write(function.join(file), format!("{value}\n")).expect("file");
        }
        assert_eq!(
            pci_devices(sys.path()),
            json!([{"vendor_id": "8086", "product_id": "1521", "class": "020000", "revision": "01",
                    "bus": "0000:3b:00.0", "numa_node_id": "-1"}])
        );
    }

    /// A manager that wants LLDP left alone on machines of ACME.
    struct Careful;

    impl HardwareManager for Careful {
        fn name(&self) -> &str {
            "careful"
        }
        fn version(&self) -> &str {
            "1"
        }
        fn evaluate(&self, _: &Inventory) -> Support {
            Support::ServiceProvider
        }
        fn quirks(&self, _: &Inventory) -> Vec<Quirk> {
            let machine = BTreeMap::from([("manufacturer".to_owned(), "ACME".to_owned())]);
            vec![Quirk {
                suppress: Suppressed::Lldp,
                machine,
                reason: "its firmware's LLDP agent hangs".into(),
            }]
        }
        fn steps(&self, _: StepKind, _: &Inventory) -> Vec<Step> {
            Vec::new()
        }
        fn run(&self, call: &StepCall, _: &StepContext) -> Result<StepOutcome, StepError> {
            Err(StepError::Unknown { manager: "careful".into(), step: call.step.step.clone() })
        }
    }

    #[test]
    fn the_agent_does_not_listen_where_a_manager_declares_harm() {
        let inspection = Inspection {
            urls: Vec::new(),
            collectors: Vec::new(),
            first_wait: Duration::ZERO,
            collect_lldp: true,
            lldp_time: Duration::from_millis(100),
        };
        let careful: Arc<dyn HardwareManager> = Arc::new(Careful);
        let listened = |manufacturer: &str| {
            let mut inventory = Inventory::default();
            inventory.system_vendor.manufacturer = manufacturer.to_owned();
            neighbours(&inspection, false, &inventory, &[&careful]).is_some()
        };
        assert!(!listened("ACME"));
        assert!(listened("Anneal Works"), "as root");
    }
}
