//! What `docs/replace-ipa.md` says, done: a real Ironic powers a server by Redfish, boots our kernel and ramdisk by iPXE,
//! and cleans it. Nothing in this scenario is our controller.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::machine::Machine;
use lab::net::Bridge;
use lab::node::{Firmware, NodeSpec};
use lab::redfish::{BmcConfig, RedfishBmc};
use lab::signatures::{Content, Table};
use lab::site::{ADDRESS, BMC_PASSWORD, BMC_USER};
use lab::timeline::Timeline;
use lab::{binaries, wait};

use crate::judges::ironic::Ironic;
use crate::stage::{LONG, Stage};

pub const ABOUT: &str = "a real Ironic with our kernel and ramdisk, as docs/replace-ipa.md says: redfish, iPXE, erased, available";

const MAC: &str = "52:54:00:a4:ea:01";

/// The page's `driver_info`, with the lab's values.
const PAGE: &str = include_str!("../../../../docs/replace-ipa.md");

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("OLD", Bus::Sata, 64)?.labelled(Table::Gpt, Content::LvmPhysicalVolume)?;
    let bridge = Bridge::create("br0", &format!("{ADDRESS}/24"))?;
    bridge.tap("tap1")?;
    let mut spec = NodeSpec::new("n1", Firmware::Bios, MAC, "tap1", stage.dir.join("n1"))?;
    spec.disks = vec![disk.spec.clone()];
    let console = spec.serial_log();
    let machine = Machine::new(spec, Timeline::default());
    let (username, password) = (BMC_USER.to_owned(), BMC_PASSWORD.to_owned());
    let config = BmcConfig { address: (ADDRESS, 8001).into(), username, password, tls: true };
    let bmc = RedfishBmc::start(machine.clone(), config).await?;
    let ironic = Ironic::start(&stage.dir, "br0", ADDRESS)?;

    let image = binaries::image_dir()?.canonicalize()?;
    let mut words = vec!["node", "create", "--driver", "redfish", "--name", "n1", "--mac", MAC];
    let lines = driver_info(&image.display().to_string(), &bmc.url())?;
    lines.iter().for_each(|line| words.extend(["--driver-info", line]));
    words.extend(["--interface", "boot=ipxe", "--interface", "deploy=direct"]);
    // As long as the runtime's other worker carries the BMC.
    tokio::task::block_in_place(|| -> Result<()> {
        ironic.ask(&words)?;
        ironic.ask(&["node", "manage", "n1", "--wait", "60"])?;
        ironic.ask(&["node", "provide", "n1"]).map(drop)
    })?;
    wait::until("the cleaning to end", LONG, async || {
        let node = tokio::task::block_in_place(|| ironic.ask(&["node", "show", "n1"]))?;
        let state = node["provision_state"].as_str().unwrap_or_default();
        ensure!(state != "clean failed", "{}", node["last_error"]);
        Ok((state == "available").then_some(()))
    })
    .await
    .with_context(|| wait::tail(&console, 3000))?;
    ensure!(!machine.is_on().await, "an available node is off");
    disk.ensure_erased()
}

/// The lines `--driver-info KEY=VALUE` of the page for iPXE, with the values that are here.
fn driver_info(image: &str, bmc: &str) -> Result<Vec<String>> {
    let lines: Vec<String> = PAGE
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--driver-info "))
        .map(|line| line.trim_end_matches('\\').trim().trim_matches('\''))
        .map(|line| {
            line.replace("file:///usr/share/anneal", &format!("file://{image}"))
                .replace("https://10.1.0.7", bmc)
                .replace("=admin", &format!("={BMC_USER}"))
                .replace("=PASSWORD", &format!("={BMC_PASSWORD}"))
                .replace("SYSTEM", RedfishBmc::system_id())
        })
        .collect();
    ensure!(lines.len() >= 7, "the page has other lines of driver_info: {lines:?}");
    Ok(lines)
}
