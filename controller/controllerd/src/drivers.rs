//! The drivers of the `bmc` crate, as the API and the conductor want them.

use api::{BootDevice, DriverDescription, DriverError, DriverPort, InterfaceChoice, Validity};
use async_trait::async_trait;
use bmc::{Bmc, BmcError, ErrorKind};
use conductor::Settings;
use conductor::agent_client::{AgentClient, Unplanned};
use model::{Abilities, Contact, Node};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers the API's questions.
pub struct Port {
    drivers: Vec<DriverDescription>,
    settings: Settings,
    agents: AgentClient,
}

impl Port {
    /// With every driver there is; steps have the priorities of `settings`, and `agents` are asked for plans.
    pub fn new(settings: Settings, agents: AgentClient) -> Self {
        Self { drivers: bmc::DRIVERS.iter().map(|name| described(name)).collect(), settings, agents }
    }
}

/// A driver as the API shows it.
fn described(name: &str) -> DriverDescription {
    let interfaces = bmc::interfaces(name).unwrap_or_default().iter().map(|interface| {
        let choice = InterfaceChoice {
            default: interface.default().name.to_owned(),
            enabled: interface.enabled.iter().map(|known| known.name.to_owned()).collect(),
        };
        (interface.name, choice)
    });
    DriverDescription { name: name.to_owned(), interfaces: interfaces.collect() }
}

fn of(node: &Node) -> Result<Arc<dyn Bmc>, DriverError> {
    bmc::open(&node.driver, &node.driver_info, &node.uuid.to_string()).map_err(refused)
}

fn refused(error: BmcError) -> DriverError {
    match error.kind() {
        ErrorKind::Config | ErrorKind::Unsupported => DriverError::Invalid(error.to_string()),
        _ => DriverError::Bmc(error.to_string()),
    }
}

#[async_trait]
impl DriverPort for Port {
    fn drivers(&self) -> &[DriverDescription] {
        &self.drivers
    }

    fn properties(&self, driver: &str) -> Option<BTreeMap<String, String>> {
        let properties = bmc::properties(driver)?;
        Some(properties.into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect())
    }

    async fn validate(&self, driver: &str, driver_info: &Map<String, Value>) -> BTreeMap<String, Validity> {
        let validity = match bmc::validate(driver, driver_info) {
            Ok(()) => Validity { result: Some(true), reason: None },
            Err(error) => Validity { result: Some(false), reason: Some(error.to_string()) },
        };
        ["power", "management"]
            .into_iter()
            .map(|interface| (interface.to_owned(), validity.clone()))
            .collect()
    }

    fn abilities(&self, node: &Node) -> Result<Abilities, DriverError> {
        conductor::act::abilities(&bmc::Builtin, &self.settings, node).map_err(refused)
    }

    async fn boot_device(&self, node: &Node) -> Result<BootDevice, DriverError> {
        let setting = of(node)?.boot_device().await.map_err(refused)?;
        Ok(BootDevice {
            device: setting.device.map(|device| device.to_string()),
            persistent: setting.persistent,
        })
    }

    async fn set_boot_device(&self, node: &Node, device: &str, persistent: bool) -> Result<(), DriverError> {
        let device =
            device.parse::<bmc::BootDevice>().map_err(|error| DriverError::Invalid(error.to_string()))?;
        of(node)?.set_boot_device(device, persistent, None).await.map_err(refused)
    }

    async fn supported_boot_devices(&self, node: &Node) -> Result<Vec<String>, DriverError> {
        Ok(of(node)?.supported_boot_devices().iter().map(ToString::to_string).collect())
    }

    async fn erase_plan(&self, node: &Node, contact: &Contact, step: &Value) -> Result<Value, DriverError> {
        let planned = self.agents.plan_erase(node, contact, step).await;
        planned.map_err(|error| match error {
            Unplanned::Busy(text) => DriverError::Busy(text),
            Unplanned::Refused(text) => DriverError::Invalid(text),
            Unplanned::Unreachable(text) => DriverError::Agent(text),
        })
    }
}
