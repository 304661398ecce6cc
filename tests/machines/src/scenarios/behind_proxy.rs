//! A node that reaches its mirror only through a proxy that asks for a password: the mirror is on the controller's own loopback,
//! which no route leads to. The node is given its image, and boots it.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::images::ImageServer;
use lab::proxy::ForwardProxy;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::site::ADDRESS;
use lab::wait;
use serde_json::json;
use std::net::Ipv4Addr;

use crate::stage::{NODE, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str =
    "a node whose mirror is behind a proxy with a password is deployed, and without the proxy is not";

const USER: &str = "node";
const PASSWORD: &str = "the-password-of-the-proxy";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("ROOT", Bus::Sata, 64)?;
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    let image = crate::disk::OldDisk::make(&images, "IMAGE", Bus::Sata, 64 << 20)?;
    let image = image.labelled(Table::Mbr, Content::Data)?;
    let mut site = stage.site("").await?;
    let server = ImageServer::start(Ipv4Addr::LOCALHOST, &images).await?;
    let proxy = ForwardProxy::start(&stage.dir, ADDRESS, USER, PASSWORD).await?;
    // The mirror is at an address that agents are not sent to unless it is allowed by its name.
    site.controller.kill().await?;
    let file = site.controller.config().file();
    let plain = std::fs::read_to_string(&file)?;
    let (hosts, of_mirror) = (format!("hosts = [\"{ADDRESS}\"]\n"), "hosts = [\"127.0.0.1\"]\n");
    ensure!(plain.contains(&hosts), "the settings are others: {plain}");
    let direct = plain.replace(&hosts, of_mirror);
    let proxied = format!("{of_mirror}http_proxy = {:?}\n", proxy.url(USER, PASSWORD));
    std::fs::write(&file, &direct)?;
    site.controller.restart().await?;

    let node = manageable(&mut site, &[&disk]).await?;
    let info = json!({
        "image_source": server.url("IMAGE.img"), "image_os_hash_algo": "sha256",
        "image_os_hash_value": server.sha256("IMAGE.img")?, "image_disk_format": "raw",
        "root_device": {"serial": "ROOT"},
    });
    site.controller.set(NODE, json!({"/automated_clean": false, "/instance_info": info})).await?;
    through(&site.controller, verb("provide"), "available").await?;
    let failed = through(&site.controller, verb("active"), "deploy failed").await?;
    failed.ensure_says(&["127.0.0.1"])?;

    site.controller.kill().await?;
    std::fs::write(&file, plain.replace(&hosts, &proxied))?;
    site.controller.restart().await?;
    through(&site.controller, verb("active"), "active").await?;
    let console = node.machine.spec().serial_log();
    wait::for_line(&console, OLD_SYSTEM, SHORT).await.context("the image boots")?;
    let found = image.as_file(disk.spec.file.clone()).findings()?;
    ensure!(found.unchanged == found.held_data, "the disk does not hold the image: {found:?}");
    let asked = std::fs::read_to_string(proxy.log())?;
    ensure!(asked.contains("/IMAGE.img"), "the proxy was not asked for the image: {asked}");
    for log in [console, site.controller.config().log()] {
        let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
        ensure!(!text.contains(PASSWORD), "{} has the password of the proxy", log.display());
    }
    Ok(())
}
