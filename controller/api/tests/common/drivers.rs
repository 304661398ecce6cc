//! Drivers without a BMC: they record the requests.

use api::{
    BootDevice, BootMediumKind, DriverDescription, DriverError, DriverQueries, Indicator, IndicatorId,
    InterfaceChoice, Validity,
};
use async_trait::async_trait;
use model::abilities::{Inspect, Rescue};
use model::boot::BootNonce;
use model::{Abilities, CatalogueStep, Contact, Node, StepKind};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

const DEVICES: [&str; 4] = ["pxe", "disk", "cdrom", "bios"];

pub struct KeptDrivers {
    drivers: Vec<DriverDescription>,
    boot: Mutex<BTreeMap<Uuid, BootDevice>>,
    /// Configured priorities of steps of agents, by `interface.step`.
    pub overrides: Mutex<BTreeMap<String, i64>>,
    /// What a boot of the signed ramdisk measures; none: there is none.
    pub signed: Mutex<Option<Arc<tpm::Prediction>>>,
    /// What was asked of hardware, in order.
    pub requests: Mutex<Vec<(&'static str, Value)>>,
}

impl KeptDrivers {
    pub fn new() -> Self {
        let mut drivers = ["fake-hardware", "redfish"].map(described).to_vec();
        if let Some(inspect) = drivers[0].interfaces.get_mut("inspect") {
            inspect.enabled.push("agent".to_owned());
        }
        Self {
            drivers,
            boot: Mutex::default(),
            overrides: Mutex::default(),
            signed: Mutex::default(),
            requests: Mutex::default(),
        }
    }
}

impl KeptDrivers {
    /// Records the requests to nodes with the driver `redfish`; other drivers support none of them.
    fn record(&self, node: &Node, what: &'static str, argument: Value) -> Result<(), DriverError> {
        if node.driver != "redfish" {
            return Err(DriverError::unsupported(node, what));
        }
        self.requests.lock().expect("not poisoned").push((what, argument));
        Ok(())
    }
}

/// The interfaces in Ironic's names.
fn described(name: &str) -> DriverDescription {
    let own = match name {
        "ipmi" => "ipmitool",
        "fake-hardware" => "fake",
        other => other,
    };
    let interfaces = api::driver_queries::INTERFACES
        .into_iter()
        .map(|interface| {
            let default = match (interface, name) {
                ("network" | "storage", _) => "noop".to_owned(),
                (_, "fake-hardware") => "fake".to_owned(),
                ("power" | "management", _) => own.to_owned(),
                ("boot", _) => "ipxe".to_owned(),
                ("deploy", _) => "direct".to_owned(),
                ("raid", _) => "agent".to_owned(),
                (interface, _) => format!("no-{interface}"),
            };
            let mut enabled = vec![default.clone()];
            if (interface, name) == ("boot", "redfish") {
                enabled.push("redfish-virtual-media".to_owned());
            }
            (interface, InterfaceChoice { enabled, default })
        })
        .collect();
    DriverDescription { name: name.to_owned(), interfaces }
}

#[async_trait]
impl DriverQueries for KeptDrivers {
    fn drivers(&self) -> &[DriverDescription] {
        &self.drivers
    }

    fn properties(&self, driver: &str) -> Option<BTreeMap<String, String>> {
        match driver {
            "fake-hardware" => Some(BTreeMap::new()),
            "redfish" => {
                Some(BTreeMap::from([("redfish_address".to_owned(), "URL of the BMC. Required.".to_owned())]))
            }
            _ => None,
        }
    }

    async fn validate(&self, driver: &str, driver_info: &Map<String, Value>) -> BTreeMap<String, Validity> {
        if driver != "redfish" || driver_info.contains_key("redfish_address") {
            return BTreeMap::new();
        }
        let missing = Validity { result: Some(false), reason: Some("missing redfish_address".into()) };
        BTreeMap::from([("power".into(), missing.clone()), ("management".into(), missing)])
    }

    /// Nodes whose name begins with `oob` have no agent. Those inspect or rescue that have the interface `agent`.
    fn abilities(&self, node: &Node) -> Result<Abilities, DriverError> {
        let step = json!({"interface": "management", "step": "reset", "priority": 20, "in_band": false,
            "requires_ramdisk": false,
            "args": {"hard": {"description": "at once", "required": true, "schema": {"type": "boolean"}}}});
        let step = serde_json::from_value(step).expect("a step");
        let by_agent = |interface: &str| node.interfaces.get(interface).is_some_and(|name| name == "agent");
        Ok(Abilities {
            agent: !node.name.as_deref().is_some_and(|name| name.starts_with("oob")),
            inspect: if by_agent("inspect_interface") { Inspect::Agent } else { Inspect::None },
            rescue: if by_agent("rescue_interface") { Rescue::Agent } else { Rescue::None },
            steps: BTreeMap::from([(StepKind::Clean, vec![step])]),
        })
    }

    fn configured(&self, _kind: StepKind, mut steps: Vec<CatalogueStep>) -> Vec<CatalogueStep> {
        let overrides = self.overrides.lock().expect("not poisoned");
        for step in &mut steps {
            if let Some(priority) = overrides.get(&step.label()) {
                step.priority = (*priority).into();
            }
        }
        steps
    }

    async fn boot_device(&self, node: &Node) -> Result<BootDevice, DriverError> {
        let kept = self.boot.lock().expect("not poisoned").get(&node.uuid).cloned();
        Ok(kept.unwrap_or(BootDevice { device: None, persistent: None }))
    }

    async fn set_boot_device(&self, node: &Node, device: &str, persistent: bool) -> Result<(), DriverError> {
        if !DEVICES.contains(&device) {
            return Err(DriverError::Invalid(format!("Invalid boot device {device} specified.")));
        }
        let device = BootDevice { device: Some(device.to_owned()), persistent: Some(persistent) };
        self.boot.lock().expect("not poisoned").insert(node.uuid, device);
        Ok(())
    }

    async fn supported_boot_devices(&self, _node: &Node) -> Result<Vec<String>, DriverError> {
        Ok(DEVICES.map(str::to_owned).to_vec())
    }

    async fn set_boot_mode(&self, node: &Node, mode: &str) -> Result<(), DriverError> {
        self.record(node, "set_boot_mode", json!(mode))
    }

    async fn set_secure_boot(&self, node: &Node, on: bool) -> Result<(), DriverError> {
        self.record(node, "set_secure_boot_state", json!(on))
    }

    async fn inject_nmi(&self, node: &Node) -> Result<(), DriverError> {
        self.record(node, "inject_nmi", Value::Null)
    }

    async fn bios_settings(&self, _: &Node) -> Result<Map<String, Value>, DriverError> {
        let settings =
            json!({"BootMode": "Uefi", "Cores": 10, "Quiet": true, "Asset": null, "AdminPassword": "x"});
        Ok(settings.as_object().expect("an object").clone())
    }

    async fn indicators(&self, node: &Node) -> Result<Vec<Indicator>, DriverError> {
        self.record(node, "get_supported_indicators", Value::Null)?;
        let lamp = |component: &str, name: &str, read_only| Indicator {
            lamp: IndicatorId { component: component.into(), name: name.into() },
            read_only,
            states: ["blinking", "off", "on"].map(str::to_owned).to_vec(),
        };
        Ok(vec![lamp("system", "led", false), lamp("chassis", "led-0", true)])
    }

    async fn indicator(&self, _: &Node, _: &IndicatorId) -> Result<String, DriverError> {
        Ok("on".into())
    }

    async fn set_indicator(&self, node: &Node, lamp: &IndicatorId, state: &str) -> Result<(), DriverError> {
        self.record(node, "set_indicator_state", json!([lamp.component, lamp.name, state]))
    }

    async fn virtual_media(&self, node: &Node) -> Result<Value, DriverError> {
        self.record(node, "get_virtual_media", Value::Null)?;
        Ok(json!([{"media_types": ["cdrom"], "inserted": false, "image": null}]))
    }

    async fn attach_media(&self, node: &Node, device: &str, url: &str) -> Result<(), DriverError> {
        self.record(node, "attach_virtual_media", json!([device, url]))
    }

    async fn detach_media(&self, node: &Node, devices: Option<&[String]>) -> Result<(), DriverError> {
        self.record(node, "detach_virtual_media", json!(devices))
    }

    /// Returns what it was asked for; refuses an unknown level, and is busy at the level `busy`.
    fn boot_medium(&self, node: &Node) -> Result<BootMediumKind, String> {
        match node.extra.get("medium").and_then(Value::as_str) {
            Some("none") => Err("no loaders".to_owned()),
            Some("signed") => Ok(BootMediumKind::Signed),
            Some("shim") => Ok(BootMediumKind::Shim),
            _ => Ok(BootMediumKind::Unsigned),
        }
    }

    async fn predicted_boot(&self, _: &Node, _: &BootNonce) -> Result<Arc<tpm::Prediction>, String> {
        self.signed.lock().expect("not poisoned").clone().ok_or_else(|| "no signed ramdisk".to_owned())
    }

    async fn erase_plan(&self, _: &Node, contact: &Contact, step: &Value) -> Result<Value, DriverError> {
        match step["args"]["level"].as_str() {
            Some("busy") => {
                Err(DriverError::Busy("Agent is busy: executing command execute_clean_step".into()))
            }
            Some("gone") => Err(DriverError::Agent("the agent could not be reached".into())),
            Some(level) if level != "purge" => Err(DriverError::Invalid(format!("no level {level}"))),
            _ => Ok(json!({"refuses": false, "asked": step, "of": contact.callback_url})),
        }
    }
}
