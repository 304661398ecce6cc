//! What happens, in order.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::binaries::image_dir;
use lab::node::Firmware;
use lab::site::{Site, SiteNode};
use lab::wait;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::disks::{self, DemoDisk};
use crate::report::{self, DiskResult, NodeResult};
use crate::{Options, circle, observe};

/// A BMC answers within seconds; the rest is for a loaded machine.
const MANAGE_LIMIT: &str = "300";
/// From `provide` to the end, however it ends.
const CLEAN_LIMIT: Duration = Duration::from_secs(1800);
/// From `available` to the BMC's power off.
const OFF_LIMIT: Duration = Duration::from_secs(120);

/// One of the two nodes.
pub struct Actor {
    /// The machine and its BMC.
    pub node: SiteNode,
    /// Its disks, and what they held before the next erase.
    pub disks: Vec<DemoDisk>,
}

/// Runs the demonstration; an error when it fails. An interrupt ends it at any point.
pub async fn run(options: &Options, namespace: &str, scratch: &Path, pool: &Path) -> Result<()> {
    let play = async {
        let (site, mut actors) = set_up(options, namespace, scratch, pool).await?;
        let mut result = clean(options, &site, &actors).await;
        if let (Ok(()), Some(image)) = (&result, &options.os_image) {
            result = circle::run(&site, &mut actors, image, scratch).await;
        }
        Ok::<_, anyhow::Error>((site, actors, result))
    };
    let (site, actors, result) = tokio::select! {
        played = play => played?,
        interrupted = interrupt() => {
            interrupted?;
            bail!("interrupted")
        }
    };
    if options.keep {
        if let Err(error) = &result {
            println!("\n{error:#}");
        }
        print_how_to_play(&site, &actors, namespace)?;
        interrupt().await?;
    }
    for actor in &actors {
        actor.node.machine.power_off().await?;
    }
    result
}

/// Returns when the program receives SIGINT or SIGTERM.
async fn interrupt() -> Result<()> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen to signals")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot listen to signals"),
        _ = terminated.recv() => Ok(()),
    }
}

async fn set_up(
    options: &Options,
    namespace: &str,
    scratch: &Path,
    pool: &Path,
) -> Result<(Site, Vec<Actor>)> {
    println!("Two servers, one with a BIOS and one with UEFI, on a network of their own ({namespace}).");
    let mut site = Site::start(scratch, "").await?;
    let mut actors = Vec::new();
    for (number, (name, firmware)) in
        [("bios-1", Firmware::Bios), ("uefi-1", Firmware::Uefi)].into_iter().enumerate()
    {
        let disks = disks::of_node(number, &options.disk, options.os_image.is_some(), pool)?;
        let specs = disks.iter().map(|disk| disk.spec.clone()).collect();
        let node = site.node(name, firmware, specs).await?;
        for disk in &disks {
            let (spec, held) = (&disk.spec, disk.before.held_data());
            println!("  {name}: {} {}, {held} sectors hold data", spec.bus.as_str(), spec.serial);
        }
        actors.push(Actor { node, disks });
    }
    Ok((site, actors))
}

async fn clean(options: &Options, site: &Site, actors: &[Actor]) -> Result<()> {
    let controller = &site.controller;
    let names: Vec<&str> = actors.iter().map(|actor| actor.node.name.as_str()).collect();
    let stop = CancellationToken::new();
    let mut managed = Vec::new();

    println!("\nEnrolling them, each behind its Redfish BMC, all off:");
    for actor in actors {
        site.enrol(&actor.node).await?;
        let start = site.timeline.now();
        println!("$ anneal node manage {} --wait", actor.node.name);
        controller.anneal(&["node", "manage", &actor.node.name, "--wait", MANAGE_LIMIT]).await?;
        managed.push(site.timeline.now() - start);
    }
    let following = observe::follow(controller, &site.timeline, &names, stop.clone());
    let acting = async {
        let mut asked = Vec::new();
        for name in &names {
            println!("$ anneal node provide {name}");
            asked.push(site.timeline.now());
            controller.anneal(&["node", "provide", name]).await?;
        }
        watch(site, &names).await?;
        for actor in actors {
            if controller.node(&actor.node.name).await?["provision_state"] == "available" {
                off(actor).await?;
            }
        }
        stop.cancel();
        Ok(asked)
    };
    let ((), asked) = tokio::try_join!(following, acting)?;
    observe::boot_services(&controller.config().log(), &site.timeline)?;

    println!("\nReading the disks from outside.");
    let mut results = Vec::new();
    for ((actor, asked_at), manage_seconds) in actors.iter().zip(asked).zip(managed) {
        results.push(examine(site, actor, asked_at, manage_seconds).await?);
    }
    let sizes = image_dir()?.join("sizes.json");
    let sizes =
        std::fs::read_to_string(&sizes).with_context(|| format!("cannot read {}", sizes.display()))?;
    let sizes = serde_json::from_str(&sizes).context("sizes.json is no JSON")?;
    let memory = controller.peak_memory()?;
    let document = report::document(&results, &site.timeline, &sizes, Some(memory));
    report::print(&results, &site.timeline, &document);
    if let Some(file) = &options.report {
        std::fs::write(file, format!("{document:#}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
        println!("report: {}", file.display());
    }
    let complaints = document["complaints"].as_array().cloned().unwrap_or_default();
    let complaints: Vec<&str> = complaints.iter().filter_map(|text| text.as_str()).collect();
    ensure!(complaints.is_empty(), "not clean:\n  {}", complaints.join("\n  "));
    println!("\nBoth nodes are clean and available; of the old data nothing is left.");
    Ok(())
}

/// Waits until the BMC has switched the node off.
pub async fn off(actor: &Actor) -> Result<()> {
    wait::until(&format!("{} to be off", actor.node.name), OFF_LIMIT, async || {
        Ok((!actor.node.machine.is_on().await).then_some(()))
    })
    .await
}

/// Shows the way live, until both nodes rest.
pub async fn watch(site: &Site, names: &[&str]) -> Result<()> {
    println!("$ anneal node watch {} --until-stable", names.join(" "));
    let mut watching = site.controller.cli()?;
    watching.args(["node", "watch", "--until-stable"]).args(names);
    let mut watching = watching.spawn().context("cannot start anneal")?;
    match tokio::time::timeout(CLEAN_LIMIT, watching.wait()).await {
        // A node that failed makes it end with an error; the report says more about that.
        Ok(ended) => ended.map(drop).context("cannot wait for anneal"),
        Err(_) => bail!("the nodes did not come to rest within {CLEAN_LIMIT:?}"),
    }
}

/// Reads the disks of a node from outside and compares them with what they held.
pub fn examine_disks(node: &serde_json::Value, actor: &Actor) -> Result<Vec<DiskResult>> {
    let records = report::records(node);
    let mut disks = Vec::new();
    for disk in &actor.disks {
        let serial = disk.spec.serial.clone();
        disks.push(DiskResult {
            record: records.iter().find(|r| r.serial.as_deref() == Some(&serial)).cloned(),
            serial,
            bus: disk.spec.bus.as_str(),
            file: disk.spec.file.display().to_string(),
            found: disk.before.compare(&disk.spec.file)?,
        });
    }
    Ok(disks)
}

async fn examine(site: &Site, actor: &Actor, asked_at: f64, manage_seconds: f64) -> Result<NodeResult> {
    let spec = actor.node.machine.spec();
    let node = site.controller.node(&actor.node.name).await?;
    let disks = examine_disks(&node, actor)?;
    Ok(NodeResult {
        name: actor.node.name.clone(),
        firmware: if spec.firmware.is_uefi() { "uefi" } else { "bios" },
        memory_mib: spec.memory_mib,
        mac: spec.mac.clone(),
        asked_at,
        manage_seconds,
        node,
        agent_memory: observe::agent_memory(&spec.serial_log()),
        disks,
    })
}

/// Says how to play with what keeps running.
fn print_how_to_play(site: &Site, actors: &[Actor], namespace: &str) -> Result<()> {
    let cli = lab::binaries::binary("anneal")?;
    println!("\nEverything keeps running. To play with it, as root:\n");
    for words in ["node list", "node records bios-1", "node provide --help", "node watch"] {
        println!("  ip netns exec {namespace} {} {words}", cli.display());
    }
    println!("\ncontroller: {} (log next to it)", site.controller.config().file().display());
    for actor in actors {
        let spec = actor.node.machine.spec();
        println!("{}: BMC {}, console {}", spec.name, actor.node.bmc.url(), spec.serial_log().display());
        for disk in &actor.disks {
            println!("  {} {}", disk.spec.serial, disk.spec.file.display());
        }
    }
    println!("\nCtrl-C ends it all.");
    Ok(())
}
