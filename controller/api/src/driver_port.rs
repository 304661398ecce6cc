//! The one port through which the API asks drivers: it is injected, so that this crate knows no BMC.

use async_trait::async_trait;
use model::{Abilities, Contact, Node};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Interfaces of a driver in Ironic, in the order of its answers.
pub const INTERFACES: [&str; 13] = [
    "bios",
    "boot",
    "console",
    "deploy",
    "firmware",
    "inspect",
    "management",
    "network",
    "power",
    "raid",
    "rescue",
    "storage",
    "vendor",
];

/// Answers questions to drivers.
#[async_trait]
pub trait DriverPort: Send + Sync {
    /// The enabled drivers.
    fn drivers(&self) -> &[DriverDescription];

    /// Keys of `driver_info` with what they mean; `None` for an unknown driver.
    fn properties(&self, driver: &str) -> Option<BTreeMap<String, String>>;

    /// Whether `driver_info` suffices, without going out: one entry for each interface that has something to
    /// say; the others count as valid.
    async fn validate(&self, driver: &str, driver_info: &Map<String, Value>) -> BTreeMap<String, Validity>;

    /// What the interfaces of the node can do, with the out-of-band steps at their configured priorities.
    fn abilities(&self, node: &Node) -> Result<Abilities, DriverError>;

    /// Where the node boots from, as its BMC tells.
    async fn boot_device(&self, node: &Node) -> Result<BootDevice, DriverError>;

    /// Boot the node from `device`: once, or always when `persistent`.
    async fn set_boot_device(&self, node: &Node, device: &str, persistent: bool) -> Result<(), DriverError>;

    /// Devices that [`DriverPort::set_boot_device`] takes for this node.
    async fn supported_boot_devices(&self, node: &Node) -> Result<Vec<String>, DriverError>;

    /// What an erase step (`interface`, `step`, `args`) would do to each disk, as the node's agent tells it.
    async fn erase_plan(&self, node: &Node, contact: &Contact, step: &Value) -> Result<Value, DriverError>;
}

/// A driver and the interfaces it offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverDescription {
    /// `redfish`, `ipmi`, `fake-hardware`.
    pub name: String,
    /// By interface without `_interface`, see [`INTERFACES`].
    pub interfaces: BTreeMap<&'static str, InterfaceChoice>,
}

/// Implementations of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceChoice {
    /// The one a node has that names none.
    pub default: String,
    /// All of them.
    pub enabled: Vec<String>,
}

/// What a driver says of one interface of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validity {
    /// Whether it can be used; `None`: it does not exist.
    pub result: Option<bool>,
    /// Why not. Never a secret.
    pub reason: Option<String>,
}

/// A boot device as the BMC tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootDevice {
    /// Ironic's name: `pxe`, `disk`, …; `None`: the BMC does not tell.
    pub device: Option<String>,
    /// For every boot; `None`: the BMC does not tell.
    pub persistent: Option<bool>,
}

/// Why a driver could not answer. The texts go to the client: no secrets in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// What was asked, or the node's `driver_info`, makes no sense to it (400).
    #[error("{0}")]
    Invalid(String),
    /// The BMC did not answer, or not as it should (503).
    #[error("{0}")]
    Bmc(String),
    /// The node's agent does something else now (409).
    #[error("{0}")]
    Busy(String),
    /// The node's agent did not answer, or not as it should (503).
    #[error("{0}")]
    Agent(String),
}
