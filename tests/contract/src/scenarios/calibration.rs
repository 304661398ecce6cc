//! Ironic cleans ironic-python-agent: nothing of ours but the tools around. It shows that the set-up works.

use super::{Enrolled, start_ironic};
use crate::World;
use crate::agents::Kind;
use anyhow::{Result, ensure};

pub fn run(world: &World) -> Result<()> {
    let (ironic, network) = start_ironic(world, "")?;
    let node = Enrolled::new(world, &ironic.endpoint, &network, Kind::Ipa, &[])?;
    node.verb("provide", &[])?;
    node.ensure_rests_in("available")?;
    ensure!(!node.disk.has_gpt()?, "erase_devices_metadata left the GPT");
    ensure!(node.disk.left()?.old_blocks > 0, "erase_devices_metadata is not supposed to erase everything");

    node.verb("manage", &[])?;
    node.verb("clean", &["--clean-steps", r#"[{"interface": "deploy", "step": "erase_devices"}]"#])?;
    node.ensure_rests_in("manageable")?;
    node.disk.ensure_zero()?;
    // Ironic touches the power state twice when it starts a node that is off, so boots are not counted.
    node.bmc.stop()?;
    Ok(())
}
