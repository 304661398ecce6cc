//! Cleaning by hand: every step that can run here, and what Ironic's configuration makes of it.

use super::{DISK_SIZE, Names, step};
use crate::World;
use crate::scenarios::Enrolled;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Everything that can run here. The operator's switches are obeyed, and so is an argument that says otherwise.
pub(super) fn story(_: &World, node: &Enrolled) -> Result<Names> {
    node.tool.run(&["node", "set", &node.uuid, "--property", "cpu_arch=x86_64"])?;
    // The operator's skip list protects this disk.
    let kept = format!("skip_block_devices=[{{\"name\": \"{}\"}}]", node.machine.disk);
    node.tool.run(&["node", "set", &node.uuid, "--property", &kept])?;
    let before = node.disk.left()?;
    clean(node, &json!([step("erase_devices")]))?;
    ensure!(node.disk.left()? == before, "a disk of skip_block_devices was written to");
    node.tool.run(&["node", "unset", &node.uuid, "--property", "skip_block_devices"])?;
    // One random pass and no zeroes: shred_random_overwrite_iterations, shred_final_overwrite_with_zeros.
    clean(node, &json!([step("erase_devices"), step("verify_properties")]))?;
    let left = node.disk.left()?;
    ensure!(left.old_blocks == 0, "erase_devices left {left:?}");
    ensure!(left.nonzero_bytes > DISK_SIZE / 2, "what was to be random is {left:?}");
    let mut zeroes = step("erase_devices");
    zeroes["args"] = json!({"pattern": "zeroes", "passes": 1});
    clean(node, &json!([zeroes, step("erase_devices_express")]))?;
    node.disk.ensure_zero()?;
    Ok(["erase_devices", "verify_properties", "erase_devices_express"].map(str::to_owned).into())
}

/// Cleaned by hand to a good end.
fn clean(node: &Enrolled, steps: &Value) -> Result<Value> {
    node.verb("clean", &["--clean-steps", &steps.to_string()])?;
    node.ensure_rests_in("manageable")
}
