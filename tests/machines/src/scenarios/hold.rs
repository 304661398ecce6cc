//! A manual cleaning that the operator holds: held, switched off, held, switched on (from its disk: no ramdisk is asked
//! for), held, and cleaned at last, for which it boots the ramdisk again.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::wait;
use reqwest::Method;
use serde_json::json;

use crate::node::{Node, history};
use crate::stage::{ERASE, NODE, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str = "a manual cleaning that is held twice, with the power off and on again in between";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("HELD", Bus::Sata, 64)?.labelled(Table::Mbr, Content::Data)?;
    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&disk]).await?;
    let controller = &site.controller;
    let console = node.machine.spec().serial_log();
    let power = |step: &str| json!({"interface": "power", "step": step});
    let clean = json!({"target": "clean", "clean_steps": [
        power("hold"), power("power_off"), power("hold"), power("power_on"), power("hold"),
        {"interface": "deploy", "step": "erase_devices"}]});

    // The agent had to be asked first whether it knows the last step.
    let held = through(controller, clean, "clean hold").await?;
    ensure!(held.0["clean_step"]["step"] == "hold", "clean_step: {}", held.0["clean_step"]);
    ensure!(held.0["driver_internal_info"]["clean_step_index"] == 0, "the first hold: {}", held.0);
    ensure!(held.anneal()["agent"]["boot_id"].is_string(), "no agent is known: {}", held.anneal());
    wait::until("the wait to be stored", SHORT, || async {
        let reason = Node::now(controller, NODE).await?.anneal()["wait"]["reason"].to_string();
        Ok(reason.contains("unhold").then_some(()))
    })
    .await?;
    let path = format!("/v1/nodes/{NODE}/states/power");
    let (status, said) = controller.call(Method::PUT, &path, Some(json!({"target": "power off"}))).await?;
    let refused = status == 400 && said.to_string().contains("clean hold");
    ensure!(refused && node.machine.is_on().await, "the power of a held node is locked: {status} {said}");

    let held = through(controller, verb("unhold"), "clean hold").await?;
    ensure!(held.0["driver_internal_info"]["clean_step_index"] == 2, "the second hold: {}", held.0);
    ensure!(!node.machine.is_on().await && held.0["power_state"] == "power off", "power_off: {}", held.0);
    ensure!(!std::fs::read_to_string(&console)?.contains(OLD_SYSTEM), "it booted its disk too early");

    let held = through(controller, verb("unhold"), "clean hold").await?;
    ensure!(held.0["driver_internal_info"]["clean_step_index"] == 4, "the third hold: {}", held.0);
    ensure!(node.machine.is_on().await && held.0["power_state"] == "power on", "power_on: {}", held.0);
    wait::for_line(&console, OLD_SYSTEM, SHORT).await?;
    disk.ensure_untouched()?;

    let ended = through(controller, verb("unhold"), "manageable").await?;
    ensure!(ended.results(ERASE).len() == 1, "{}", ended.anneal()["run"]);
    ensure!(!node.machine.is_on().await, "a cleaned node is off");
    let events = history(controller, NODE).await?;
    let holds = events.iter().filter(|event| event.contains("-> clean hold: ")).count();
    ensure!(holds == 3, "three holds: {events:?}");
    let begun = events.iter().filter(|event| event.contains("erase_devices begins (")).count();
    ensure!(begun == 1, "the erase begins only after the node has booted the ramdisk again: {events:?}");
    disk.ensure_erased()
}
