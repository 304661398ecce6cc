//! A node with a real agent and no image to write: never ACTIVE by a deployment. Adopted instead, it is serviced and torn
//! down: erased before it is available.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::wait;
use reqwest::Method;
use serde_json::json;

use crate::node::history;
use crate::stage::{NO_METADATA, NODE, SHORT, Stage, manageable, through, verb};

use super::rescue_login::archives_served;

pub const ABOUT: &str = "not deployed without an image; serviced, torn down and erased";

pub async fn story(stage: Stage) -> Result<()> {
    let boots = stage.disk("BOOTS", Bus::Sata, 64)?.labelled(Table::Mbr, Content::Data)?;
    let data = stage.disk("DATA", Bus::Nvme, 64)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&boots, &data]).await?;
    let controller = &site.controller;
    let console = node.machine.spec().serial_log();

    // Not cleaned on the way, so that the disks still hold what the workload of later boots from.
    controller.set(NODE, json!({"/automated_clean": false})).await?;
    through(controller, verb("provide"), "available").await?;
    let path = format!("/v1/nodes/{NODE}/states/provision");
    let (status, said) = controller.call(Method::PUT, &path, Some(verb("active"))).await?;
    let names_it = said.to_string().contains("'instance_info.image_source'");
    ensure!(status == 400 && names_it, "without an image: {status} {said}");
    let events = history(controller, NODE).await?;
    ensure!(!events.iter().any(|event| event.contains("-> active")), "it was active: {events:?}");
    boots.ensure_untouched()?;
    data.ensure_untouched()?;
    through(controller, verb("manage"), "manageable").await?;

    // The workload's machine is what its properties say, and goes on afterwards.
    controller.set(NODE, json!({"/properties/cpus": 1, "/properties/cpu_arch": "x86_64"})).await?;
    through(controller, verb("adopt"), "active").await?;
    let service = json!({"target": "service", "service_steps": [
        {"interface": "deploy", "step": "verify_properties"}]});
    let seen = through(controller, service, "active").await?;
    ensure!(seen.results("deploy.verify_properties").len() == 1, "{}", seen.anneal()["run"]);
    ensure!(seen.0["power_state"] == "power on", "a node in service is {}", seen.0["power_state"]);
    let archives = archives_served(&controller.config().log())?;
    ensure!(archives == 0, "a service boot got the archive of rescues, whose login is for a rescue alone");
    wait::for_line(&console, OLD_SYSTEM, SHORT).await?;
    boots.ensure_untouched()?;

    controller.set(NODE, json!({"/automated_clean": true})).await?;
    through(controller, verb("deleted"), "available").await?;
    ensure!(!node.machine.is_on().await, "an available node is off");
    boots.ensure_erased()?;
    data.ensure_erased()
}
