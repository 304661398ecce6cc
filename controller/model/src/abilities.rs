//! What the interfaces of a node's driver can do, as the driver declares it.

use crate::ramdisk_deploy::is_deploy_step;
use crate::step::{CatalogueStep, StepKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Abilities of a node's driver, by its interfaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Abilities {
    /// The deploy interface works through an agent in the ramdisk, so that there are in-band steps. That of `ramdisk` cleans with
    /// it and deploys without ([`Self::deploys_with_agent`]).
    pub agent: bool,
    /// How the node is inspected.
    pub inspect: Inspect,
    /// How the node is rescued.
    pub rescue: Rescue,
    /// Steps that run in the controller, with their configured priorities.
    #[serde(default)]
    pub steps: BTreeMap<StepKind, Vec<CatalogueStep>>,
}

/// The inspect interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inspect {
    /// The ramdisk is booted and its agent sends the inventory.
    Agent,
    /// The BMC is asked.
    Bmc,
    /// The inventory is invented: fake-hardware.
    Fake,
    /// Not supported.
    None,
}

/// The rescue interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rescue {
    /// The ramdisk is booted and its agent lets the user in.
    Agent,
    /// Nothing happens: fake-hardware.
    Fake,
    /// Not supported.
    None,
}

impl Abilities {
    /// Whether a deployment is done by the agent.
    pub fn deploys_with_agent(&self) -> bool {
        self.agent && !self.out_of_band(StepKind::Deploy).iter().any(is_deploy_step)
    }

    /// The out-of-band steps of a kind.
    pub fn out_of_band(&self, kind: StepKind) -> &[CatalogueStep] {
        self.steps.get(&kind).map(Vec::as_slice).unwrap_or_default()
    }
}
