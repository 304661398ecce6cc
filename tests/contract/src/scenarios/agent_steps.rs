//! What the steps of an ironic-python-agent may do to a run: reboot the node, make the hardware manager another one,
//! be aborted or not.

use super::{Enrolled, last_error, run as last_run, step};
use crate::World;
use crate::agents::Kind;
use crate::bmc::Boots;
use crate::controller::Controller;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// In automated cleaning: after the metadata, before the disks.
const MORE: &str = "\
[conductor.clean_step_priority_override]
'deploy.upgrade' = 90.0
'deploy.restart' = 50.0
";

pub fn run(world: &World) -> Result<()> {
    let controller = Controller::with(world, "", MORE)?;
    let interfaces = &["deploy=direct"];
    let node = Enrolled::new(world, &controller.endpoint, &controller.network, Kind::Ipa, interfaces)?;
    automated(&node).context("automated cleaning")?;
    manual(&node).context("manual cleaning")?;
    aborted(&node).context("abort of an abortable step")?;
    aborted_after_the_step(&node).context("abort of a step that is not abortable")?;
    let boots = node.bmc.stop()?;
    ensure!(boots == Boots { ramdisk: 6, disk: 0 }, "it was booted otherwise: {boots:?}");
    Ok(())
}

/// The whole list again with the new manager, then the reboot that a step asked for, with a token of its own.
fn automated(node: &Enrolled) -> Result<()> {
    node.verb("provide", &[])?;
    let seen = node.ensure_rests_in("available")?;
    let first = ["erase_devices_metadata", "upgrade", "erase_devices_metadata", "upgrade", "restart"];
    ensure_ran(node, 1, &first)?;
    ensure_ran(node, 2, &["erase_devices"])?;
    ensure!(last_run(&seen)["replans"] == 1, "the run: {}", last_run(&seen));
    let story = node.tool.json(&["node", "history", &node.uuid])?.to_string();
    ensure!(story.contains("automated cleaning starts again with fresh steps"), "the story: {story}");
    node.disk.ensure_zero()?;
    nothing_is_certified(node)
}

/// The disk is zero, but the agent gives no record of a disk, so that this is not certified.
fn nothing_is_certified(node: &Enrolled) -> Result<()> {
    let records = node.tool.json(&["node", "records", &node.uuid])?;
    let records = records.as_array().context("a list of steps")?;
    ensure!(records.len() == 5 && records.iter().all(|step| step["report"].is_null()), "{records:?}");
    let table = node.tool.text(&["node", "records", &node.uuid])?;
    ensure!(table.contains("no record of any disk"), "the table of records: {table}");
    let certificates = node.tool.json(&["certificate", "list", &node.uuid])?;
    ensure!(certificates == json!([]), "certificates: {certificates}");
    Ok(())
}

/// The step that was refused is run by the new manager; those before it are not run again.
fn manual(node: &Enrolled) -> Result<()> {
    node.verb("manage", &[])?;
    let look = step("look", &json!({"disk": node.machine.disk}));
    let steps = json!([step("upgrade", &json!({"to": "3"})), step("restart", &json!({})), look]);
    node.verb("clean", &["--clean-steps", &steps.to_string()])?;
    let seen = node.ensure_rests_in("manageable")?;
    ensure_ran(node, 3, &["upgrade", "restart"])?;
    ensure_ran(node, 4, &["look"])?;
    ensure!(last_run(&seen)["replans"] == 1, "the run: {}", last_run(&seen));
    let versions = &seen["driver_internal_info"]["hardware_manager_version"];
    ensure!(versions["contract_one_disk"] == "3", "versions: {versions}");
    Ok(())
}

fn two_steps(node: &Enrolled, first: &str) -> Value {
    json!([step(first, &json!({})), step("look", &json!({"disk": node.machine.disk}))])
}

/// At once. The agent cannot cancel, so the node is not switched off and the error says so to the operator.
fn aborted(node: &Enrolled) -> Result<()> {
    node.clean(&two_steps(node, "wait_for_go"))?;
    node.until_it_waits(5)?;
    node.ask("abort", &[])?;
    let seen = node.until_in("clean failed")?;
    ensure_was_aborted(&seen, "deploy.wait_for_go")?;
    ensure!(last_error(&seen).contains("may still be at it"), "last_error: {}", last_error(&seen));
    ensure_ran(node, 5, &["wait_for_go"])?;
    node.verb("manage", &[])
}

/// When it has ended, and before the next one.
fn aborted_after_the_step(node: &Enrolled) -> Result<()> {
    node.clean(&two_steps(node, "wait_unabortable"))?;
    node.until_it_waits(6)?;
    node.ask("abort", &[])?;
    let seen = node.show()?;
    ensure!(seen["provision_state"] == "clean wait", "the node is {}", seen["provision_state"]);
    ensure!(last_run(&seen)["abort"] == true, "the run: {}", last_run(&seen));
    node.machine.go(6)?;
    let seen = node.until_in("clean failed")?;
    ensure_was_aborted(&seen, "deploy.wait_unabortable")?;
    ensure_ran(node, 6, &["wait_for_go"])?;
    node.verb("manage", &[])
}

fn ensure_was_aborted(node: &Value, label: &str) -> Result<()> {
    for part in ["By request, the clean operation was aborted", label] {
        ensure!(last_error(node).contains(part), "{part:?} is not in {}", last_error(node));
    }
    ensure!(node["maintenance"] == false, "an aborted node is in maintenance");
    ensure!(node["power_state"] == "power on", "an aborted node is {}", node["power_state"]);
    Ok(())
}

fn ensure_ran(node: &Enrolled, boot: usize, wanted: &[&str]) -> Result<()> {
    let ran = node.machine.ran(boot)?;
    ensure!(ran == wanted, "boot {boot} ran {ran:?}, not {wanted:?}");
    Ok(())
}
