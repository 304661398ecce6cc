//! A real ironic-python-agent boots by virtual media under our controller, which gives it its parameters on the medium as an Ironic
//! does, and runs a clean step. Its ramdisk is larger than El Torito counts.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::controller::QUICK_KERNEL;
use lab::disk::Bus;
use lab::node::Firmware;
use lab::redfish::media::MediaQuirks;
use lab::signatures::{Content, Table};
use lab::site::Site;
use lab::wait;
use serde_json::json;

use crate::ipa_ramdisk;
use crate::stage::{NODE, SHORT, Stage, enrol_redfish};

pub const UEFI: &str =
    "a real ironic-python-agent boots by virtual media under our controller, and cleans (UEFI)";
pub const BIOS: &str = "the same by BIOS";

/// Its Python takes its time in an emulator.
const PATIENCE: Duration = Duration::from_secs(390);
const SETTINGS: &str = "\
[agent]
heartbeat_timeout_s = 60
[conductor]
agent_poll_s = 1
retry_pause_s = 1
agent_silence_s = 300
boot_timeout_s = 380
";
/// What El Torito can count: 512 bytes, 16 bits.
const COUNTED: u64 = 512 * 0xffff;

pub async fn by_uefi(stage: Stage) -> Result<()> {
    story(stage, Firmware::Uefi).await
}

pub async fn by_bios(stage: Stage) -> Result<()> {
    story(stage, Firmware::Bios).await
}

async fn story(stage: Stage, firmware: Firmware) -> Result<()> {
    let image = ipa_ramdisk::image(&stage.dir)?;
    let initramfs = std::fs::metadata(image.join("initramfs"))?.len();
    ensure!(initramfs > COUNTED, "its ramdisk has {initramfs} bytes: nothing is proven about large ones");
    let ours = std::fs::metadata(image_dir()?.join("initramfs"))?.len();
    ensure!(ours < COUNTED, "our ramdisk is as large");
    // By its own kernel arguments: the certificate of the controller is its own.
    let boot = format!("kernel_append = \"{QUICK_KERNEL} net.ifnames=0 ipa-insecure=1 ipa-debug=1\"\n");
    let mut site = Site::start_with(&stage.dir, Some(image), &format!("{boot}{SETTINGS}")).await?;
    let disk = stage.disk("THEIRS", Bus::Sata, 64)?.labelled(Table::Gpt, Content::Data)?;
    let specs = vec![disk.spec.clone()];
    let node =
        site.node_like(NODE, firmware, specs, |spec| spec.memory_mib = 2048, MediaQuirks::default()).await?;
    enrol_redfish(&site, &node).await?;
    let theirs =
        json!({"/boot_interface": "redfish-virtual-media", "/properties/agent_kind": "ironic-python-agent"});
    site.controller.set(NODE, theirs).await?;

    let steps = json!([{"interface": "deploy", "step": "erase_devices_metadata"}]);
    site.controller.provision_with(NODE, json!({"target": "clean", "clean_steps": steps})).await?;
    let console = node.machine.spec().serial_log();
    wait::for_line(&console, "IRONIC-PYTHON-AGENT STARTS", PATIENCE).await.context("its ramdisk boots")?;
    let line = wait::for_line(&console, "COMMAND LINE ", SHORT).await?;
    ensure!(line.contains("boot_method=vmedia") && !line.contains("ipa-api-url"), "{line}");
    let after = site.controller.node_in(NODE, &["manageable", "clean failed"], PATIENCE).await;
    let after = after.with_context(|| wait::tail(&console, 3000))?;
    ensure!(after["provision_state"] == "manageable", "{}", after["last_error"]);
    disk.ensure_unbootable()?;
    let left = node.bmc.inserted_media();
    ensure!(left.is_empty(), "media are left in: {left:?}");
    Ok(())
}
