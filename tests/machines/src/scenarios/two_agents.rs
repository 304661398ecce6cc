//! Two agents claim one node. One without the nonce of the boot gets no answer and changes nothing. When the node has rebooted
//! by itself, it gets no second boot script: the controller powers the node off and on, and the agent of that boot goes on with
//! the interrupted erase.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::binaries::binary;
use lab::disk::{Bus, Fault};
use lab::loopback::LoopDevice;
use lab::machine::Lasting;
use lab::node::Boot;
use lab::process::{Daemon, leashed};
use lab::site::{Site, SiteNode};
use lab::wait;
use reqwest::Method;
use serde_json::json;

use crate::disk::OldDisk;
use crate::node::{Node, erasing, history};
use crate::stage::{LONG, NO_METADATA, NODE, SHORT, Stage, cleaned, full_speed, manageable};

pub const ABOUT: &str = "one token for one agent: an impostor gets nowhere, a rebooted node gets in again";

pub async fn story(stage: Stage) -> Result<()> {
    let slow = stage.disk("SLOW", Bus::Sata, 64)?.with(Fault::SlowWrites(1 << 20));
    let bait = stage.disk("BAIT", Bus::Virtio, 8)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&slow]).await?;
    site.controller.provision(NODE, "provide").await?;
    let (first, seen) = erasing(&site.controller, NODE, "SLOW", 0.02, LONG).await?;
    impostor(&stage, &site, &node, &bait).await?;

    let (still, later) = erasing(&site.controller, NODE, "SLOW", 0.0, SHORT).await?;
    ensure!(still.anneal()["agent"] == first.anneal()["agent"], "another agent is taken for the node's");
    let url = |node: &Node| node.0["driver_internal_info"]["agent_url"].clone();
    ensure!(url(&still) == url(&first), "another callback URL");
    ensure!(later.bytes_done >= seen.bytes_done, "the erase began again");
    bait.ensure_untouched()?;

    // The node restarts by itself and boots the ramdisk again.
    node.machine.choose_boot(Some((Boot::Pxe, Lasting::Once))).await?;
    node.machine.reset().await?;
    wait::until("the second agent to get in", LONG, || async {
        let now = Node::now(&site.controller, NODE).await?;
        ensure!(now.state().starts_with("clean"), "it is {}: {}", now.state(), now.last_error());
        let boot = |node: &Node| node.anneal()["agent"]["boot_id"].clone();
        Ok((boot(&now).is_string() && boot(&now) != boot(&first)).then_some(()))
    })
    .await?;
    ensure!(slow.findings()?.unchanged > 0, "the erase ended too early for this scenario");
    let (second, _) = erasing(&site.controller, NODE, "SLOW", 0.0, LONG).await?;
    let running = |node: &Node| node.anneal()["agent"]["running"].clone();
    ensure!(running(&second) != running(&first), "the command of the boot that is over goes on");
    let events = history(&site.controller, NODE).await?;
    let text = "its boot script was fetched again";
    ensure!(events.iter().any(|event| event.contains(text)), "no event {text:?}: {events:?}");
    full_speed(&node.machine, 0).await?;
    cleaned(&site.controller, "available").await?;
    bait.ensure_untouched()?;
    slow.ensure_erased()
}

/// A real agent elsewhere says that it runs on this node; then hand-made heartbeats do.
async fn impostor(stage: &Stage, site: &Site, node: &SiteNode, bait: &OldDisk) -> Result<()> {
    let device = LoopDevice::attach(&bait.spec.file, 512)?;
    let (url, pin) = site.controller.public()?;
    let log = stage.dir.join("impostor.log");
    let mut command = leashed(binary("anneal-agent")?);
    command.args(["--api-url", &url, "--pin", &pin, "--mac", &node.machine.spec().mac]);
    command.arg("--only-device").arg(device.path()).env("NO_COLOR", "1");
    let agent = Daemon::start("the impostor", command, &log)?;
    wait::for_line(&log, "the controller answered 404", SHORT).await?;

    let lookup = format!("/v1/lookup?addresses={}", node.machine.spec().mac);
    let (status, body) = site.controller.call(Method::GET, &lookup, None).await?;
    ensure!(status == 404, "a lookup without the nonce of the boot: {status} {body}");
    let seen = Node::now(&site.controller, NODE).await?;
    ensure!(seen.anneal()["rival"].is_null(), "who does not know the nonce is no rival");
    let uuid = seen.0["uuid"].as_str().context("no uuid")?.to_owned();
    let known = seen.0["driver_internal_info"]["agent_url"].clone();
    for (callback_url, what) in [(known, "a guessed token"), (json!("https://127.0.0.1:9999"), "another URL")]
    {
        let beat = json!({
            "callback_url": callback_url,
            "agent_token": "******",
            "agent_version": "1.0",
            "anneal": {"extension": 1, "boot_id": "x", "process_id": "y"},
        });
        let path = format!("/v1/heartbeat/{uuid}");
        let (status, answer) = site.controller.call(Method::POST, &path, Some(beat)).await?;
        ensure!(status == 400, "{what}: {status} {answer}");
    }
    agent.terminate(Duration::from_secs(20)).await?;
    Ok(())
}
