//! Questions of the API to drivers. The implementation is injected, so that this crate does not depend on BMC code.

use async_trait::async_trait;
use model::boot::BootNonce;
use model::{Abilities, CatalogueStep, Contact, Node, StepKind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// What a boot medium boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootMediumKind {
    /// Kernel and initramfs, by any firmware.
    Unsigned,
    /// A signed program, which obeys this controller.
    Signed,
    /// Signed loaders and a signed kernel, with an initramfs and arguments that nothing signs.
    Shim,
}

/// Answers to questions that only a driver, or the node's agent, has.
#[async_trait]
pub trait DriverQueries: Send + Sync {
    /// The enabled drivers.
    fn drivers(&self) -> &[DriverDescription];

    /// Keys of `driver_info` with what they mean; `None` for an unknown driver.
    fn properties(&self, driver: &str) -> Option<BTreeMap<String, String>>;

    /// Whether `driver_info` suffices, without contacting the BMC: one entry for each interface with a finding; the
    /// others count as valid.
    async fn validate(&self, driver: &str, driver_info: &Map<String, Value>) -> BTreeMap<String, Validity>;

    /// What the interfaces of the node can do, with the out-of-band steps at their configured priorities.
    fn abilities(&self, node: &Node) -> Result<Abilities, DriverError>;

    /// What the boot of this node with this nonce measures.
    ///
    /// # Errors
    /// Why that is not known, in words for an operator.
    async fn predicted_boot(&self, _node: &Node, _nonce: &BootNonce) -> Result<Arc<tpm::Prediction>, String> {
        Err("this controller boots no signed ramdisk (boot.signed_uki)".to_owned())
    }

    /// Steps of an agent, as it advertised them, at their configured priorities.
    fn configured(&self, _kind: StepKind, steps: Vec<CatalogueStep>) -> Vec<CatalogueStep> {
        steps
    }

    /// The device the node boots from, as its BMC reports it.
    async fn boot_device(&self, node: &Node) -> Result<BootDevice, DriverError>;

    /// Boot the node from `device`: once, or always when `persistent`.
    async fn set_boot_device(&self, node: &Node, device: &str, persistent: bool) -> Result<(), DriverError>;

    /// Devices that [`DriverQueries::set_boot_device`] takes for this node.
    async fn supported_boot_devices(&self, node: &Node) -> Result<Vec<String>, DriverError>;

    /// Boot the node in this mode, `bios` or `uefi`, from its next start on.
    async fn set_boot_mode(&self, node: &Node, _mode: &str) -> Result<(), DriverError> {
        Err(DriverError::unsupported(node, "set_boot_mode"))
    }

    /// Switch UEFI secure boot on or off.
    async fn set_secure_boot(&self, node: &Node, _on: bool) -> Result<(), DriverError> {
        Err(DriverError::unsupported(node, "set_secure_boot_state"))
    }

    /// Send the node a non-maskable interrupt.
    async fn inject_nmi(&self, node: &Node) -> Result<(), DriverError> {
        Err(DriverError::unsupported(node, "inject_nmi"))
    }

    /// The firmware's settings with their values, as its BMC reports them now. Empty if the driver has no BIOS interface.
    async fn bios_settings(&self, _node: &Node) -> Result<Map<String, Value>, DriverError> {
        Ok(Map::new())
    }

    /// The indicators (LEDs) of the node.
    async fn indicators(&self, node: &Node) -> Result<Vec<Indicator>, DriverError> {
        Err(DriverError::unsupported(node, "get_supported_indicators"))
    }

    /// State of an indicator: `on`, `off`, `blinking`, `unknown`.
    async fn indicator(&self, node: &Node, _lamp: &IndicatorId) -> Result<String, DriverError> {
        Err(DriverError::unsupported(node, "get_indicator_state"))
    }

    /// Set the state of an indicator.
    async fn set_indicator(&self, node: &Node, _lamp: &IndicatorId, _state: &str) -> Result<(), DriverError> {
        Err(DriverError::unsupported(node, "set_indicator_state"))
    }

    /// The virtual drives of the BMC with the images inserted.
    async fn virtual_media(&self, node: &Node) -> Result<Value, DriverError> {
        Err(DriverError::unsupported(node, "get_virtual_media"))
    }

    /// Put the image of this URL into the virtual drive of a kind, one of [`MEDIA`].
    async fn attach_media(&self, node: &Node, _device: &str, _url: &str) -> Result<(), DriverError> {
        Err(DriverError::unsupported(node, "attach_virtual_media"))
    }

    /// Eject the images from the virtual drives of these kinds; `None`: from all.
    async fn detach_media(&self, node: &Node, _devices: Option<&[String]>) -> Result<(), DriverError> {
        Err(DriverError::unsupported(node, "detach_virtual_media"))
    }

    /// Whether a boot medium can be made for the node, without contacting the BMC; `Err` says why not.
    fn boot_medium(&self, node: &Node) -> Result<BootMediumKind, String> {
        Err(format!("driver {} boots no node by virtual media", node.driver))
    }

    /// What an erase step (`interface`, `step`, `args`) would do to each disk, as reported by the node's agent.
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

/// A boot device as the BMC reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootDevice {
    /// Ironic's name: `pxe`, `disk`, …; `None`: the BMC does not report it.
    pub device: Option<String>,
    /// For every boot; `None`: the BMC does not report it.
    pub persistent: Option<bool>,
}

/// Kinds of virtual drives, in Ironic's names.
pub const MEDIA: [&str; 3] = ["disk", "cdrom", "floppy"];

/// States that an indicator can be set to.
pub const INDICATOR_STATES: [&str; 3] = ["blinking", "off", "on"];

/// Identifies an indicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndicatorId {
    /// What it is on: `system`, `chassis`, `disk`.
    pub component: String,
    /// Its name there.
    pub name: String,
}

/// An indicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indicator {
    /// Its identifier.
    pub lamp: IndicatorId,
    /// Whether its state cannot be set.
    pub read_only: bool,
    /// States that it supports, of [`INDICATOR_STATES`].
    pub states: Vec<String>,
}

/// Why a driver could not answer. Clients see the texts: they hold no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// The request or the node's `driver_info` is invalid for the driver (400).
    #[error("{0}")]
    Invalid(String),
    /// The node's hardware, or the interface it is driven with, does not support it (400).
    #[error("Driver {driver} does not support {extension} (disabled or not implemented).")]
    Unsupported {
        /// The node's driver.
        driver: String,
        /// What was asked for, in Ironic's name.
        extension: &'static str,
    },
    /// The BMC did not answer, or not as it should (503).
    #[error("{0}")]
    Bmc(String),
    /// The node's agent is busy (409).
    #[error("{0}")]
    Busy(String),
    /// The node's agent did not answer, or not as it should (503).
    #[error("{0}")]
    Agent(String),
}

impl DriverError {
    /// The node's driver has no `extension`.
    pub fn unsupported(node: &Node, extension: &'static str) -> Self {
        Self::Unsupported { driver: node.driver.clone(), extension }
    }
}
