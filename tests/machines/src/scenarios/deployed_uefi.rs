//! A UEFI node with our agent gets an image whose loader the firmware finds only by a boot entry, and boots it. The mirror
//! has a name, which the node resolves, and a certificate that only the authority of `[images] ca_file` signed.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::controller::Controller;
use lab::disk::Bus;
use lab::dns::NameServer;
use lab::efi_image::{self, BOOTED};
use lab::images::ImageServer;
use lab::node::Firmware;
use lab::signatures::{Content, Table};
use lab::site::{ADDRESS, Site};
use lab::tls::Authority;
use lab::wait;
use serde_json::{Value, json};

use crate::certificate::{ensure_deployed, fetched, verify};
use crate::stage::{NODE, SETTINGS, SHORT, Stage, enrol_redfish, through, verb};

pub const ABOUT: &str =
    "a UEFI node boots the image by the boot entry that the agent made; a rebuild replaces the entry";

const MIRROR: &str = "mirror.example";

/// Name, label and partition of each image.
const FIRST: [&str; 3] = ["first.qcow2", "debian", "5CA1AB1E-0000-4000-8000-00000000C0DE"];
const SECOND: [&str; 3] = ["second.qcow2", "other", "5CA1AB1E-0000-4000-8000-00000000FEED"];

pub async fn story(stage: Stage) -> Result<()> {
    let root = stage.disk("ROOT", Bus::Sata, 64)?;
    let data = stage.disk("DATA", Bus::Nvme, 64)?.labelled(Table::Gpt, Content::LvmPhysicalVolume)?;
    let before = data.copy()?;
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    for [name, label, id] in [FIRST, SECOND] {
        let raw = stage.dir.join("image.raw");
        efi_image::make(&raw, label, id, 0)?;
        efi_image::as_qcow2(&raw, &images.join(name))?;
    }

    let authority = Authority::new()?;
    std::fs::write(stage.dir.join("mirror-ca.pem"), authority.pem())?;
    let mut site = Site::start(&stage.dir, &format!("dns = [\"{ADDRESS}\"]\n{SETTINGS}")).await?;
    let disks = [&root, &data].map(|disk| disk.spec.clone());
    let node = site.node(NODE, Firmware::Uefi, disks.to_vec()).await?;
    enrol_redfish(&site, &node).await?;
    let (controller, desk) = (&site.controller, stage.dir.as_path());
    let console = node.machine.spec().serial_log();
    let names = NameServer::start(&stage.dir, ADDRESS, MIRROR, ADDRESS)?;
    let server = ImageServer::start_tls(ADDRESS, &images, MIRROR, &authority).await?;
    controller.set(NODE, json!({"/automated_clean": false})).await?;
    through(controller, verb("provide"), "available").await?;

    let entries = deployed((controller, desk), &server, "active", FIRST, &console).await?;
    ensure!(entries["removed"] == json!([]), "{entries}");
    // By the node itself.
    let asked = std::fs::read_to_string(names.log())?;
    let of_node = format!("query[A] {MIRROR} from 172.22.0.1");
    ensure!(asked.lines().any(|line| line.contains(&of_node) && !line.ends_with("172.22.0.1")), "{asked}");
    data.ensure_same(&before)?;

    let first = entries["entry"].as_str().and_then(|name| name.strip_prefix("Boot"));
    let dead = json!([{"number": first, "label": FIRST[1], "why": "no_such_partition"}]);
    let entries = deployed((controller, desk), &server, "rebuild", SECOND, &console).await?;
    ensure!(entries["removed"] == dead, "{entries}");
    data.ensure_same(&before)
}

/// Asks for an image by a verb and waits until the firmware has started it. What the agent says of its boot entry.
async fn deployed(
    (controller, desk): (&Controller, &Path),
    server: &ImageServer,
    target: &str,
    [name, label, id]: [&str; 3],
    console: &Path,
) -> Result<Value> {
    let mut info = json!({
        "image_source": server.url(name), "image_os_hash_algo": "sha256", "image_os_hash_value": server.sha256(name)?,
        "image_disk_format": "qcow2",
    });
    if target != "rebuild" {
        // A rebuild knows the disk. Without hints none of these is large enough.
        info["root_device"] = json!({"serial": "ROOT"});
    }
    controller.set(NODE, json!({"/instance_info": info})).await?;
    std::fs::write(console, "").context("the console of the boots before")?;
    let seen = through(controller, verb(target), "active").await?;
    ensure!(seen.0["power_state"] == "power on", "a deployed node is {}", seen.0["power_state"]);
    let results = seen.results("deploy.prepare_instance_boot");
    ensure!(results.len() == 1, "{}", seen.anneal()["run"]);
    let entries = results[0]["result"]["boot_entries"].clone();
    ensure!(entries["added"] == true && entries["label"] == label, "{}", results[0]);
    ensure!(entries["partitions_unknown"].is_null(), "{entries}");
    let first = entries["order"].as_array().and_then(|order| order.first()?.as_str());
    let first = first.context("the order of the boot entries")?;
    ensure!(entries["entry"] == format!("Boot{first}"), "it is not the first: {entries}");

    let written = &seen.results("deploy.write_image")[0];
    let [disk, boots] = [written, &results[0]].map(|result| result["certificate"].as_str());
    let (disk, boots) =
        disk.zip(boots).with_context(|| format!("no certificates: {}", seen.anneal()["run"]))?;
    ensure_deployed(controller, desk, disk, ("ROOT", &server.sha256(name)?)).await?;
    let (file, key) = fetched(controller, boots).await?;
    ensure!(file["payload"].as_str().is_some_and(|text| text.contains(disk)), "it does not follow: {file}");
    let judged = verify(desk, &file.to_string(), &["--key", &key]).await?;
    ensure!(judged == (0, String::new()), "the boot entries: {judged:?}");

    // As the firmware reads our entry.
    let start = format!("starting Boot{first} {}", efi_image::started(512, label, id));
    wait::for_line(console, &start, SHORT).await.context("the firmware starts the entry")?;
    wait::for_line(console, BOOTED, SHORT).await.context("the loader runs")?;
    Ok(entries)
}
