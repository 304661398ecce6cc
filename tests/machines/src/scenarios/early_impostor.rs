//! An impostor asks for a node's boot script and token from before the node is powered on, and would report a signed erase of
//! a disk that it made up. It has not the node's lease, so it gets neither, and the node's own agent erases the disk.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use serde_json::json;

use crate::impostor::{HOME, Impostor};
use crate::node::history;
use crate::stage::{NO_METADATA, NODE, Stage, made_up_report, manageable, through, verb};

pub const ABOUT: &str =
    "an impostor that asks from before power-on: it gets no token, and the node is cleaned";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("KEPT", Bus::Sata, 16)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&disk]).await?;
    site.controller.set(NODE, json!({"/inspect_interface": "agent"})).await?;
    through(&site.controller, verb("inspect"), "manageable").await?;

    let mac = &node.machine.spec().mac;
    let impostor = Impostor::start(&site, mac, |agent| agent.reporting(made_up_report())).await?;
    through(&site.controller, verb("provide"), "available").await?;
    ensure!(!impostor.has_token(), "the impostor was given a token");
    let withheld = format!("the boot script for {mac} was withheld from {HOME}: ");
    let events = history(&site.controller, NODE).await?;
    ensure!(
        events.iter().any(|event| event.starts_with(&withheld)),
        "the history does not name it: {events:?}"
    );
    disk.ensure_erased()
}
