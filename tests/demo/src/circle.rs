//! From clean to used and back: both nodes get an operating system, run it, and are erased again.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::images::ImageServer;
use lab::scan::Snapshot;
use lab::site::{ADDRESS, Site};
use lab::wait;

use crate::report::DiskResult;
use crate::story::{self, Actor};

/// The name of the image on the web server.
const IMAGE: &str = "debian.raw.zst";
/// A Debian needs a minute until cloud-init is through; the rest is for a loaded machine.
const BOOT_LIMIT: Duration = Duration::from_secs(600);
/// How the controller is asked to wait for the instance.
const HELLO: &str = "--wait-for-hello=600";
/// What the instance's user data prints on its console, before its name.
const RUNS: &str = "THE INSTANCE RUNS:";

/// Deploys `image` to both nodes, waits until their instances run, and takes them out of use.
pub async fn run(site: &Site, actors: &mut [Actor], image: &Path, scratch: &Path) -> Result<()> {
    let images = scratch.join("images");
    std::fs::create_dir(&images)?;
    std::fs::copy(image, images.join(IMAGE)).with_context(|| image.display().to_string())?;
    let server = ImageServer::start(ADDRESS, &images).await?;
    let names: Vec<String> = actors.iter().map(|actor| actor.node.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();

    println!("\nAn operating system for both, with a configuration for its first boot:");
    let begun = Instant::now();
    for actor in actors.iter() {
        deploy(site, actor, &server, scratch).await?;
    }
    story::watch(site, &names).await?;
    for actor in actors.iter_mut() {
        in_state(site, actor, "active").await?;
        called_back(site, actor).await?;
        ran(actor).await?;
        for disk in &mut actor.disks {
            disk.before = Snapshot::take(&disk.spec.file)?;
        }
    }
    println!(
        "Both run their operating system, {:.0} s after it was asked for.",
        begun.elapsed().as_secs_f64()
    );

    println!("\nOut of use again:");
    for name in &names {
        println!("$ anneal node undeploy {name}");
        site.controller.anneal(&["node", "undeploy", name]).await?;
    }
    story::watch(site, &names).await?;
    let mut complaints = Vec::new();
    for actor in actors.iter() {
        let node = in_state(site, actor, "available").await?;
        story::off(actor).await?;
        let disks = story::examine_disks(&node, actor)?;
        complaints.extend(disks.iter().flat_map(DiskResult::complaints));
        for disk in disks {
            let (name, found) = (&actor.node.name, &disk.found);
            println!(
                "  {name}: {} held data in {} sectors, of which {} are left; {} bytes are not zero",
                disk.serial, found.held_data, found.unchanged, found.nonzero_bytes
            );
        }
    }
    ensure!(complaints.is_empty(), "not erased:\n  {}", complaints.join("\n  "));
    println!("\nCleaned, deployed, booted, used, erased: both nodes are available for the next one.");
    Ok(())
}

async fn deploy(site: &Site, actor: &Actor, server: &ImageServer, scratch: &Path) -> Result<()> {
    let name = &actor.node.name;
    let root = format!(r#"root_device={{"serial": "{}"}}"#, actor.disks[0].spec.serial);
    let user_data = scratch.join("user-data");
    let text = format!("#cloud-config\nruncmd: [\"echo {RUNS} $(hostname) > /dev/ttyS0\"]\n");
    std::fs::write(&user_data, text)?;
    let user_data = user_data.to_str().context("the path of the user data")?;
    let (url, digest) = (server.url(IMAGE), server.sha256(IMAGE)?);
    println!("$ anneal node set {name} --property '{root}'");
    site.controller.anneal(&["node", "set", name, "--property", &root]).await?;
    println!(
        "$ anneal node deploy {name} --image {url} --checksum {digest} --user-data FILE --hostname {name} {HELLO}"
    );
    let image = ["--image", &url, "--checksum", &digest, "--image-format", "raw"];
    let first_boot = ["--user-data", user_data, "--hostname", name, HELLO];
    let words = [&["node", "deploy", name], &image[..], &first_boot[..]].concat();
    site.controller.anneal(&words).await?;
    Ok(())
}

/// The deployment was done when the instance had called the controller, and not before.
async fn called_back(site: &Site, actor: &Actor) -> Result<()> {
    let name = &actor.node.name;
    let history = site.controller.get(&format!("/v1/nodes/{name}/history?detail=true")).await?;
    let events: Vec<&str> = history["history"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|event| event["event"].as_str())
        .collect();
    let place = |text: &str| events.iter().rposition(|event| event.contains(text));
    let (hello, active) = (place("the instance has said hello"), place("-> active"));
    ensure!(hello.is_some() && hello < active, "{name} is active without a hello: {events:#?}");
    println!("  {name}: its instance has called back");
    Ok(())
}

/// Waits until the instance has read its user data: it prints its name.
async fn ran(actor: &Actor) -> Result<()> {
    let line = format!("{RUNS} {}", actor.node.name);
    let console = actor.node.machine.spec().serial_log();
    wait::for_line(&console, &line, BOOT_LIMIT).await.with_context(|| console.display().to_string())?;
    println!("  {}", line.trim());
    Ok(())
}

async fn in_state(site: &Site, actor: &Actor, state: &str) -> Result<serde_json::Value> {
    let node = site.controller.node(&actor.node.name).await?;
    let (name, now) = (&actor.node.name, &node["provision_state"]);
    ensure!(now == state, "{name} is {now} instead of {state}: {}", node["last_error"]);
    Ok(node)
}
