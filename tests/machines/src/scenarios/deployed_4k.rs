//! A UEFI node whose disk has sectors of 4096 bytes: an image for others is refused and leaves nothing that boots; one for its
//! sectors boots, and its configuration drive is a FAT file system with the user data.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::controller::Controller;
use lab::disk::Bus;
use lab::efi_image::{self, BOOTED};
use lab::images::ImageServer;
use lab::loopback::LoopDevice;
use lab::node::Firmware;
use lab::packing::Packing;
use lab::site::ADDRESS;
use lab::wait;
use serde_json::json;

use crate::stage::{NODE, SHORT, Stage, enrol_redfish, through, verb};

pub const ABOUT: &str = "a disk with sectors of 4096 bytes: an image for 512 is refused, one for 4096 boots, with a configuration drive";

const SECTOR: u32 = 4096;
const LABEL: &str = "debian";
const ID: &str = "5CA1AB1E-0000-4000-8000-00000000C0DE";
const USER_DATA: &str = "#cloud-config\nruncmd: [\"echo read from a disk with large sectors\"]\n";

pub async fn story(stage: Stage) -> Result<()> {
    let mut root = stage.disk("ROOT", Bus::Nvme, 128)?;
    root.spec = root.spec.with_sectors(SECTOR);
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    let raw = stage.dir.join("image.raw");
    efi_image::make(&raw, LABEL, ID, 0)?;
    Packing::Zstd.pack(&raw, &images.join("512.zst"))?;
    efi_image::make_4k(&raw, LABEL, ID)?;
    Packing::Zstd.pack(&raw, &images.join("4096.zst"))?;

    let mut site = stage.site("").await?;
    let node = site.node(NODE, Firmware::Uefi, vec![root.spec.clone()]).await?;
    enrol_redfish(&site, &node).await?;
    let controller = &site.controller;
    let console = node.machine.spec().serial_log();
    let server = ImageServer::start(ADDRESS, &images).await?;
    controller.set(NODE, json!({"/automated_clean": false})).await?;
    through(controller, verb("provide"), "available").await?;

    choose(controller, &server, "512.zst").await?;
    let failed = through(controller, verb("active"), "deploy failed").await?;
    failed.ensure_says(&["deploy.write_image", "sectors of 512 bytes", "sectors of 4096"])?;
    root.ensure_unbootable()?;

    choose(controller, &server, "4096.zst").await?;
    let drive = json!({
        "meta_data": {"hostname": "large-sectors"}, "user_data": USER_DATA,
        "network_data": {"links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": "52:54:00:12:34:56"}],
            "networks": [{"id": "n0", "link": "eth0", "type": "ipv4_dhcp"}], "services": []},
    });
    let request = json!({"target": "active", "configdrive": drive});
    let seen = through(controller, request, "active").await?;
    let first = &seen.results("deploy.prepare_instance_boot")[0]["result"]["boot_entries"]["entry"];
    let first = first.as_str().with_context(|| format!("no entry: {}", seen.anneal()["run"]))?;
    let start = format!("starting {first} {}", efi_image::started(SECTOR, LABEL, ID));
    wait::for_line(&console, &start, SHORT).await.context("the firmware starts the entry")?;
    wait::for_line(&console, BOOTED, SHORT).await.context("the loader runs")?;
    node.machine.power_off().await?;
    ensure_drive(&root.spec.file)
}

async fn choose(controller: &Controller, server: &ImageServer, name: &str) -> Result<()> {
    let info = json!({
        "image_source": server.url(name), "image_os_hash_algo": "sha256", "image_os_hash_value": server.sha256(name)?,
        "image_disk_format": "raw", "root_device": {"serial": "ROOT"},
    });
    controller.set(NODE, json!({"/instance_info": info})).await
}

/// The partition by `sgdisk`, its file system by `blkid`, its files by mtools.
fn ensure_drive(disk: &Path) -> Result<()> {
    let device = LoopDevice::attach(disk, SECTOR)?;
    let device = device.path().to_str().context("the path of a device")?;
    let table = output("sgdisk", &["-v", "-p", device])?;
    ensure!(table.contains("No problems found"), "{table}");
    // Number, first sector, last sector, size, unit, type, name.
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let line = words.iter().find(|words| words.last() == Some(&"config-2"));
    let start = line.and_then(|words| words.get(1)?.parse::<u64>().ok());
    let start = start.with_context(|| format!("no partition config-2: {table}"))? * u64::from(SECTOR);
    let image = disk.to_str().context("the path of a disk")?;
    let found = output("blkid", &["--probe", "--output", "export", "--offset", &start.to_string(), image])?;
    for line in ["TYPE=vfat", "LABEL=CONFIG-2", "BLOCK_SIZE=4096"] {
        ensure!(found.lines().any(|said| said == line), "{line} is missing: {found}");
    }
    let part = format!("{image}@@{start}");
    let user_data = output("mtype", &["-i", &part, "::openstack/latest/user_data"])?;
    ensure!(user_data == USER_DATA, "user data: {user_data:?}");
    let meta_data = output("mtype", &["-i", &part, "::openstack/latest/meta_data.json"])?;
    ensure!(meta_data.contains(r#""hostname":"large-sectors""#), "metadata: {meta_data}");
    let network = output("mtype", &["-i", &part, "::openstack/latest/network_data.json"])?;
    ensure!(network.contains(r#""type":"ipv4_dhcp""#), "network data: {network}");
    Ok(())
}

fn output(program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).output().with_context(|| program.to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {words:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}
