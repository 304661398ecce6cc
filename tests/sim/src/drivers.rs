//! The API's questions to drivers. Every machine has an implementation of each interface of its own.

use crate::bmc::abilities;
use crate::world::World;
use api::{BootDevice, DriverDescription, DriverError, DriverQueries, InterfaceChoice, Validity};
use async_trait::async_trait;
use model::{Abilities, Contact, Node};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the driver of every machine.
pub const DRIVER: &str = "redfish";

/// Answers the API.
pub struct SimPort {
    world: Arc<World>,
    drivers: [DriverDescription; 1],
}

impl SimPort {
    /// Answers for the machines of a world.
    pub fn new(world: Arc<World>) -> Self {
        let names: Vec<String> = world.machines.iter().map(|machine| machine.name.clone()).collect();
        let choice = |name: &'static str| {
            let default = names.first().cloned().unwrap_or_default();
            (name, InterfaceChoice { default, enabled: names.clone() })
        };
        let interfaces = api::driver_queries::INTERFACES.map(choice).into();
        let drivers = [DriverDescription { name: DRIVER.to_owned(), interfaces }];
        Self { world, drivers }
    }
}

#[async_trait]
impl DriverQueries for SimPort {
    fn drivers(&self) -> &[DriverDescription] {
        &self.drivers
    }

    fn properties(&self, driver: &str) -> Option<BTreeMap<String, String>> {
        (driver == DRIVER).then(BTreeMap::new)
    }

    async fn validate(&self, _: &str, _: &Map<String, Value>) -> BTreeMap<String, Validity> {
        BTreeMap::new()
    }

    fn abilities(&self, node: &Node) -> Result<Abilities, DriverError> {
        let machine = self.world.machine(node.uuid);
        let unknown = || DriverError::Invalid(format!("no machine is node {}", node.uuid));
        machine.map(|machine| abilities(machine)).ok_or_else(unknown)
    }

    async fn boot_device(&self, _: &Node) -> Result<BootDevice, DriverError> {
        Ok(BootDevice { device: None, persistent: None })
    }

    async fn set_boot_device(&self, _: &Node, _: &str, _: bool) -> Result<(), DriverError> {
        Ok(())
    }

    async fn supported_boot_devices(&self, _: &Node) -> Result<Vec<String>, DriverError> {
        Ok(vec!["pxe".to_owned()])
    }

    async fn erase_plan(&self, _: &Node, _: &Contact, _: &Value) -> Result<Value, DriverError> {
        Err(DriverError::Invalid("simulated agents make no plans".to_owned()))
    }
}
