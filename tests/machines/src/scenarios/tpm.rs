//! A node with Secure Boot and a TPM whose boots must be proved: the inspection records the TPM, each boot proves itself, and the
//! certificate of the erase names the proof. With another TPM in its place the node gets no token.

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::controller::Controller;
use lab::disk::Bus;
use lab::wait;
use serde_json::{Value, json};

use crate::certificate::boot_proof;
use crate::node::history;
use crate::secure_boot::{LOCKED_DOWN, SignedSite, console};
use crate::stage::{LONG, NO_METADATA, NODE, SHORT, Stage, cleaned, through, verb};

pub const ABOUT: &str =
    "Secure Boot and a required TPM: inspected, cleaned, certified; another TPM gets no token";

const MEMORY_MIB: u32 = 256;

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("PROVED", Bus::Sata, 32)?;
    let mut signed =
        SignedSite::start_with(&stage, &image_dir()?, "", "require_tpm = true\n", NO_METADATA).await?;
    let node = signed.node_like(&[&disk], MEMORY_MIB, |spec| spec.tpm = true).await?;
    let controller = &signed.site.controller;
    controller.set(NODE, json!({"/inspect_interface": "agent"})).await?;
    let says = boot_reason(controller).await?;
    ensure!(says.contains("The next inspection records the node's TPM"), "validate: {says}");

    through(controller, verb("inspect"), "manageable").await?;
    let recorded = measurements(controller).await?;
    let key = recorded["tpm"]["endorsement_key"].as_str().context("no TPM was recorded")?.to_owned();
    ensure!(recorded["recorded"]["registers"].as_array().is_some_and(|all| all.len() == 4), "{recorded}");
    let says = boot_reason(controller).await?;
    ensure!(says.contains("proves each boot; without that no agent gets a token"), "validate: {says}");

    controller.provision(NODE, "provide").await?;
    cleaned(controller, "available").await?;
    disk.ensure_erased()?;
    ensure!(console(&node)?.contains(LOCKED_DOWN), "the kernel is not locked down");
    ensure!(measurements(controller).await?["changed"].is_null(), "a second boot measures something else");
    let proof = boot_proof(controller).await?;
    ensure!(proof["endorsement_key"] == key.as_str(), "the certificate names {proof}");
    ensure!(proof["quote_sha256"].as_str().is_some_and(|digest| digest.len() == 64), "{proof}");

    // Another board, or another machine that boots the node's medium.
    ensure!(!node.machine.is_on().await, "the node is on");
    std::fs::remove_dir_all(node.machine.spec().dir.join("tpm"))?;
    controller.provision(NODE, "manage").await?;
    controller.node_in(NODE, &["manageable"], SHORT).await?;
    controller.provision(NODE, "provide").await?;
    for words in ["another TPM than the node's", "the node's TPM has not proved its boot"] {
        let what = format!("the history to say {words:?}");
        wait::until(&what, LONG, async || {
            let said = history(controller, NODE).await?;
            Ok(said.iter().any(|event| event.contains(words)).then_some(()))
        })
        .await?;
    }
    controller.provision(NODE, "abort").await?;
    controller.node_in(NODE, &["clean failed"], SHORT).await?;
    Ok(())
}

async fn boot_reason(controller: &Controller) -> Result<String> {
    let validity = controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    Ok(validity["boot"]["reason"].as_str().unwrap_or_default().to_owned())
}

async fn measurements(controller: &Controller) -> Result<Value> {
    controller.get(&format!("/v1/anneal/nodes/{NODE}/measurements")).await
}
