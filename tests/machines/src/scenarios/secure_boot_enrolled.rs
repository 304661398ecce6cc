//! A machine in the setup mode of its firmware gets its owner's keys by a clean step, through Redfish, and is cleaned with Secure Boot on.
//! With the keys of the factory it does not boot the signed ramdisk.

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::disk::Bus;
use lab::uefi_variables::SecureBoot;
use serde_json::{Value, json};

use crate::secure_boot::{LOCKED_DOWN, SignedSite, console, does_not_boot};
use crate::stage::{NO_METADATA, NODE, SHORT, Stage, cleaned, through};

pub const ABOUT: &str =
    "Secure Boot: own keys enrolled by a clean step, cleaned; back to the factory's, refused";

const MEMORY_MIB: u32 = 256;
const ENROLL: &str = "management.enroll_secure_boot_keys";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("ENROLLED", Bus::Sata, 32)?;
    let mut signed = SignedSite::start(&stage, &image_dir()?, "", NO_METADATA).await?;
    signed.give_keys()?;
    let setup = |spec: &mut lab::node::NodeSpec| spec.secure_boot = Some(SecureBoot::Setup);
    let node = signed.node_like(&[&disk], MEMORY_MIB, setup).await?;
    let controller = &signed.site.controller;
    ensure!(!node.machine.key_lists().await?.is_on(), "it has keys");

    // The step asks for a reboot, into the signed ramdisk.
    let enrolled = through(controller, clean("enroll_secure_boot_keys", false), "manageable").await?;
    let results = enrolled.results(ENROLL);
    let result = &results.first().context("the step has no result")?["result"];
    ensure!(result["added"] == json!({"db": 1, "KEK": 1, "PK": 1}), "the step says {result}");
    ensure!(result["secure_boot_enabled"] == true, "the step says {result}");
    ensure!(node.machine.key_lists().await?.is_on(), "the firmware has no keys");
    ensure!(console(&node)?.contains(LOCKED_DOWN), "the kernel is not locked down");

    controller.provision(NODE, "provide").await?;
    let after = cleaned(controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;
    let again = node.machine.key_lists().await?;
    ensure!(again.certificates("db").len() == 1, "the firmware's list has changed");

    controller.provision(NODE, "manage").await?;
    controller.node_in(NODE, &["manageable"], SHORT).await?;
    through(controller, clean("reset_secure_boot_keys_to_default", true), "manageable").await?;
    does_not_boot(controller, &node, "Access Denied").await
}

/// A cleaning with one step of the BMC.
fn clean(step: &str, disable_ramdisk: bool) -> Value {
    let steps = json!([{"interface": "management", "step": step}]);
    json!({"target": "clean", "clean_steps": steps, "disable_ramdisk": disable_ramdisk})
}
