//! A hardware manager over a RAID command-line tool that vendors ship, of the kind of `storcli`: it reports
//! controllers, drives, volumes and controller settings, and makes the volumes of Ironic's `target_raid_config`.
//!
//! ```text
//!   tool      runs the tool, judges its answer        PROGRAM /call show all J
//!   topology  answer → inventory                      (pure)
//!   target    target_raid_config → volumes on drives  (pure)
//!   configure makes, initialises, removes volumes     settings: of controllers
//! ```
//!
//! It models such a tool, to show what a vendor's manager is like: it is tested against `tests/fake_tool.py`, and the output
//! of a real tool may differ. In the agent it is a manager like any
//! other; its program (`main.rs`) serves the same manager as an external one.

mod configure;
mod settings;
mod steps;
mod target;
mod tool;
mod topology;

pub use steps::STEPS;
pub use tool::Tool;

use agent_protocol::inventory::Inventory;
use agent_protocol::step::Step;
use configure::{Order, create, delete_all, flag};
use hwm_sdk::protocol::{Claim, ClaimKind, FirmwareComponent, InventoryPatch};
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome, Support};
use serde_json::Value;
use std::collections::BTreeMap;

/// Name of the manager.
pub const NAME: &str = "raid_tool";

/// The manager.
#[derive(Debug, Clone)]
pub struct RaidTool {
    tool: Tool,
}

impl RaidTool {
    /// Over this tool.
    pub fn new(tool: Tool) -> Self {
        Self { tool }
    }
}

impl HardwareManager for RaidTool {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    /// The tool comes with the hardware: who puts it into a ramdisk has some. Whether it answers is seen in `init`.
    fn evaluate(&self, _: &Inventory) -> Support {
        if self.tool.is_there() { Support::Mainline } else { Support::None }
    }

    fn claims(&self, _: &Inventory) -> Vec<Claim> {
        let properties = BTreeMap::from([("class".to_owned(), "0x0104*".to_owned())]);
        vec![Claim { kind: ClaimKind::Pci, id: None, properties }]
    }

    fn init(&self, _: &StepContext) -> Result<(), StepError> {
        topology::read(&self.tool).map(|_| ())
    }

    fn inventory(&self, _: &StepContext) -> Result<InventoryPatch, StepError> {
        let topology = topology::read(&self.tool)?;
        let firmware = |controller: &hwm_sdk::protocol::RaidController| {
            let component = format!("raid:{}", controller.id);
            Some(FirmwareComponent { component, current_version: controller.firmware_version.clone()? })
        };
        Ok(InventoryPatch {
            firmware: topology.raid.controllers.iter().filter_map(firmware).collect(),
            bios_settings: topology.settings,
            raid: Some(topology.raid),
            ..InventoryPatch::default()
        })
    }

    fn steps(&self, kind: StepKind, _: &Inventory) -> Vec<Step> {
        hwm_sdk::advertise(STEPS, kind)
    }

    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
        let declared = STEPS.iter().find(|declared| {
            (declared.interface, declared.step) == (&call.step.interface, &call.step.step)
                && declared.step(call.kind).is_some()
        });
        let delete_existing = flag(call, "delete_existing", false);
        match declared.map(|declared| declared.step) {
            Some(steps::CREATE) => {
                let order = Order {
                    target: ("node.target_raid_config", &call.node["target_raid_config"]),
                    root: flag(call, "create_root_volume", true),
                    nonroot: flag(call, "create_nonroot_volumes", true),
                    delete_existing,
                };
                create(&self.tool, &order, context)
            }
            Some(steps::APPLY) => {
                let target = call.args.get("raid_config").unwrap_or(&Value::Null);
                let order =
                    Order { target: ("raid_config", target), root: true, nonroot: true, delete_existing };
                create(&self.tool, &order, context)
            }
            Some(steps::DELETE) => delete_all(&self.tool),
            Some(steps::SETTINGS) => {
                settings::apply(&self.tool, call.args.get(settings::ARGUMENT).unwrap_or(&Value::Null))
            }
            _ => Err(StepError::Unknown { manager: NAME.to_owned(), step: call.step.step.clone() }),
        }
    }
}
