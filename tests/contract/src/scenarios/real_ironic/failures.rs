//! Cleaning that does not end well.

use super::{Names, step};
use crate::World;
use crate::process::{check, wait_until};
use crate::scenarios::Enrolled;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(super) fn story(world: &World, node: &Enrolled) -> Result<Names> {
    failed(world, node).context("a failing step")?;
    abort(node, "linger", |_| true).context("abort")?;
    abort(node, "finish", |seen| seen["clean_step"]["abort_after"] == true)
        .context("abort of a step that cannot be")?;
    Ok(["verify_firmware", "linger", "finish"].map(str::to_owned).into())
}

/// The firmware is another one, and the step says how; Ironic repeats what the agent said, and keeps its logs.
fn failed(world: &World, node: &Enrolled) -> Result<()> {
    let mut verify = step("verify_firmware");
    verify["args"] = json!({"baseline": {"bios_version": "contract-9.9"}});
    let steps = json!([verify, step("erase_devices")]).to_string();
    let failed = node.fails("clean", &["--clean-steps", &steps], "clean failed")?;
    let error = failed["last_error"].as_str().unwrap_or_default();
    for part in ["Clean step deploy.verify_firmware failed on node", "bios_version", "contract-9.9"] {
        ensure!(error.contains(part), "{part:?} is not in last_error: {error}");
    }
    ensure!(failed["maintenance"] == true && failed["fault"] == "clean failure", "held: {failed}");
    logs_are_kept(&world.dir.with_file_name("logs"), &node.uuid).context("the agent's logs")?;
    node.tool.run(&["node", "maintenance", "unset", &node.uuid])?;
    node.verb("manage", &[])
}

/// As `log.collect_system_logs` has sent them, in the one archive that Ironic has written.
fn logs_are_kept(dir: &Path, uuid: &str) -> Result<()> {
    let mut archives: Vec<_> =
        std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    let archive = archives.pop().filter(|_| archives.is_empty()).context("not one archive")?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ensure!(
        name.starts_with(uuid) && name.contains("cleaning") && name.ends_with(".tar.gz"),
        "it is called {name}"
    );
    let read = |file: &str| -> Result<String> {
        let output = check(
            Command::new("tar")
                .args(["--extract", "--gzip", "--to-stdout", "--file"])
                .arg(&archive)
                .arg(file),
        )?;
        Ok(String::from_utf8(output.stdout)?)
    };
    ensure!(read("agent.log")?.contains("this machine is known"), "the agent's own log is another one's");
    ensure!(!read("dmesg")?.is_empty(), "nothing of the kernel");
    let inventory: Value = serde_json::from_str(&read("inventory.json")?)?;
    ensure!(inventory["disks"].is_array(), "the inventory is {inventory}");
    let commands: Value = serde_json::from_str(&read("commands.json")?)?;
    let commands = commands["commands"].as_array().context("commands")?;
    let failed =
        commands.iter().find(|one| one["command_name"] == "execute_clean_step").context("the step")?;
    let error = &failed["command_error"];
    ensure!(
        error["type"] == "CleaningError" && error["details"].to_string().contains("contract-9.9"),
        "{error}"
    );
    Ok(())
}

/// Aborts while `named` runs: a step that can be stopped ends the cleaning at once, with its agent left on, another one when
/// it ends. `expected` checks what the node shows right after, unless it has failed already.
fn abort(node: &Enrolled, named: &str, expected: fn(&Value) -> bool) -> Result<()> {
    let steps = json!([step(named), step("erase_devices")]).to_string();
    node.tool.run(&["node", "clean", &node.uuid, "--clean-steps", &steps])?;
    wait_until("the step runs", Duration::from_secs(60), || {
        let seen = node.show()?;
        Ok(seen["clean_step"]["step"] == named && seen["provision_state"] == "clean wait")
    })?;
    node.tool.run(&["node", "abort", &node.uuid])?;
    let seen = node.show()?;
    ensure!(seen["provision_state"] == "clean failed" || expected(&seen), "after the abort: {seen}");
    wait_until("the abort is done", Duration::from_secs(60), || {
        let seen = node.show()?;
        // Ironic says why a little later.
        Ok(seen["provision_state"] == "clean failed" && !seen["last_error"].is_null())
    })?;
    let seen = node.show()?;
    let error = seen["last_error"].as_str().unwrap_or_default();
    ensure!(error.contains("aborted") && error.contains(named), "last_error: {error}");
    ensure!(seen["maintenance"] == false, "an aborted node is in maintenance");
    let left = node.disk.left()?.old_blocks;
    ensure!(left > 0, "what came after the abort was done");
    node.verb("manage", &[])
}
