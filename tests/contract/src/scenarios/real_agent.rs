//! anneal-controller cleans a node that boots ironic-python-agent, which knows nothing of Anneal's extensions.

use super::Enrolled;
use crate::World;
use crate::agents::Kind;
use crate::controller::Controller;
use anyhow::{Result, ensure};

pub fn run(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    let node = Enrolled::new(world, &controller.endpoint, Kind::Ipa)?;
    node.verb("provide", &[])?;
    node.ensure_rests_in("available")?;
    ensure!(!node.disk.has_gpt()?, "the GPT is still there");
    node.disk.ensure_zero()?;

    // The steps are known while the node is off.
    let steps = node.tool.json(&["node", "steps", &node.uuid])?.to_string();
    for step in ["erase_devices", "erase_devices_metadata"] {
        ensure!(steps.contains(&format!("\"{step}\"")), "the step {step} was not learnt: {steps}");
    }
    node.verb("manage", &[])?;
    node.verb("clean", &["--clean-steps", r#"[{"interface": "deploy", "step": "erase_devices_metadata"}]"#])?;
    node.ensure_rests_in("manageable")?;
    ensure!(node.bmc.stop()? == 2, "one boot a cleaning");
    Ok(())
}
