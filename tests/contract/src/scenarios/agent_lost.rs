//! Controllers and agents that die in the middle of a step: the controller goes on, a step of an ironic-python-agent,
//! which does not say that it may be repeated, is not run twice.

use super::{Enrolled, last_error, run as last_run, step};
use crate::World;
use crate::agents::Kind;
use crate::bmc::{Boots, Mishap};
use crate::controller::Controller;
use crate::process::wait_until;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A silent agent is lost soon.
const MORE: &str = "\
agent_silence_s = 30
[agent]
heartbeat_timeout_s = 5
";

pub fn run(world: &World) -> Result<()> {
    let mut controller = Controller::with(world, "", MORE)?;
    let interfaces = &["deploy=direct"];
    let node = Enrolled::new(world, &controller.endpoint, &controller.network, Kind::Ipa, interfaces)?;
    controller_killed(&mut controller, &node).context("the controller is killed")?;
    agent_died(&node).context("the agent dies")?;
    reset(&node).context("the node is reset")?;
    // After all that nothing is taken for done.
    node.verb("provide", &[]).context("provide")?;
    node.ensure_rests_in("available")?;
    node.disk.ensure_zero()?;
    let boots = node.bmc.stop()?;
    ensure!(boots == Boots { ramdisk: 5, disk: 0 }, "it was booted otherwise: {boots:?}");
    Ok(())
}

/// Once while the agent runs a step, once while the controller does: no step is lost, none of the agent's is run twice
/// (Ironic: 05-experiments 1 and 2).
fn controller_killed(controller: &mut Controller, node: &Enrolled) -> Result<()> {
    let look = step("look", &json!({"disk": node.machine.disk}));
    let slow = json!({"interface": "management", "step": "fake_slow", "args": {"seconds": 2}});
    node.clean(&json!([step("wait_for_go", &json!({})), slow, look]))?;
    node.until_it_waits(1)?;
    controller.kill();
    // The step ends while no controller listens.
    node.machine.go(1)?;
    let log = node.machine.log(1);
    wait_until("the step has ended", super::PATIENCE, || {
        Ok(std::fs::read_to_string(&log)?.contains("Clean step completed"))
    })?;
    controller.start_again()?;
    node.until("the controller runs a step", |node| node["clean_step"]["step"] == "fake_slow")?;
    controller.kill();
    controller.start_again()?;
    let seen = node.until_in("manageable")?;
    let ran = node.machine.ran(1)?;
    ensure!(ran == ["wait_for_go", "look"], "the agent ran {ran:?}");
    let results = last_run(&seen)["results"].as_array().context("results")?;
    ensure!(results.len() == 3 && results.iter().all(|one| one["error"].is_null()), "{results:?}");
    node.until("the node is off", |node| node["power_state"] == "power off")?;
    node.ensure_rests_in("manageable").map(drop)
}

/// The node is left as it is, for an operator to inspect.
fn agent_died(node: &Enrolled) -> Result<()> {
    let seen = lost(node, 2, Mishap::AgentDies)?;
    ensure!(last_error(&seen).contains("the agent has not been heard for"), "{}", last_error(&seen));
    Ok(())
}

/// The node gets no second boot script in a boot, so no agent of it asks for a token.
fn reset(node: &Enrolled) -> Result<()> {
    let seen = lost(node, 3, Mishap::Reset)?;
    let error = last_error(&seen);
    ensure!(error.contains("its boot script was fetched again from 127.0.0.1"), "last_error: {error}");
    ensure!(!node.machine.log(4).exists(), "an agent was started");
    Ok(())
}

/// `mishap` in the middle of a step of boot number `boot`: the step fails and is not run again.
fn lost(node: &Enrolled, boot: usize, mishap: Mishap) -> Result<Value> {
    let look = step("look", &json!({"disk": node.machine.disk}));
    node.clean(&json!([step("wait_for_go", &json!({})), look]))?;
    node.until_it_waits(boot)?;
    node.bmc.suffer(mishap)?;
    let seen = node.until_in("clean failed")?;
    ensure!(last_error(&seen).contains("Clean step deploy.wait_for_go failed"), "{}", last_error(&seen));
    ensure!(seen["maintenance"] == true && seen["fault"] == "clean failure", "held: {seen}");
    ensure!(seen["power_state"] == "power on", "a failed node is {}", seen["power_state"]);
    ensure!(node.machine.ran(boot)? == ["wait_for_go"], "it was run again");
    node.verb("manage", &[])?;
    node.tool.run(&["node", "maintenance", "unset", &node.uuid])?;
    Ok(seen)
}
