//! Whether the ramdisk can be booted on a node, as far as can be known without its BMC: what `validate` says of the boot
//! interface, and what a verb needs whose run boots the ramdisk.

use super::validation;
use crate::call::Call;
use crate::driver_queries::BootMediumKind;
use crate::error::ApiError;
use model::boot::BootNonce;
use model::boot_medium::{HTTP_BOOT, HTTP_IPXE, IPXE, VIRTUAL_MEDIA};
use model::boot_proof::{self, REQUIRE_TPM};
use model::{Node, Run, RunKind, ramdisk_boot};

/// 400 if the verb that changed `before` to `node` has begun a run that boots the ramdisk, and that cannot be booted: the node
/// would be powered off first, and the run would fail then. `deleted` is not refused: a tenant gives the node up, and the cleaning
/// that follows fails by itself.
pub async fn check(call: &Call, before: &Node, node: &Node) -> Result<(), ApiError> {
    let begun = node.run.as_ref().filter(|run| before.run.as_ref().is_none_or(|old| old.id != run.id));
    let Some(run) = begun else { return Ok(()) };
    if !boots(call, node, run).await? {
        return Ok(());
    }
    let what = match run.kind {
        RunKind::Deploy | RunKind::Rebuild => "deploy or power",
        RunKind::Rescue => "rescue",
        _ => "boot",
    };
    let refused =
        |why| ApiError::invalid(format!("Failed to validate {what} info for node {}: {why}", node.uuid));
    judge(call, node).await.map(drop).map_err(refused)
}

/// Whether this run boots the ramdisk. One that begins in a ramdisk that was kept may have to boot it again all the same, when
/// the agent does not answer: then it fails as it does without this question.
async fn boots(call: &Call, node: &Node, run: &Run) -> Result<bool, ApiError> {
    // The conductor names a driver that cannot be used.
    let Ok(able) = call.app.drivers.abilities(node) else { return Ok(false) };
    if run.ramdisk_kept.is_some() {
        return Ok(false);
    }
    let mut known = Vec::new();
    if let Some(kind) = run.kind.steps() {
        let learnt = call.app.store.catalogue(node.uuid, kind).await?.map(|catalogue| catalogue.steps);
        known.extend_from_slice(able.out_of_band(kind));
        known.extend(call.app.drivers.configured(kind, learnt.unwrap_or_default()));
    }
    Ok(ramdisk_boot::is_in_run(run, &able, &known))
}

/// What the way of the node's boot shows of the agent's identity; `None` where that is not worth a sentence.
///
/// # Errors
/// Why the ramdisk cannot be booted on it.
pub async fn judge(call: &Call, node: &Node) -> Result<Option<String>, String> {
    let tpm = tpm(call, node).await?;
    Ok(match validation::interface(&call.app, node, "boot") {
        Some(way @ (VIRTUAL_MEDIA | HTTP_BOOT)) => {
            let kind = call.app.drivers.boot_medium(node)?;
            let firmware = firmware(kind, call.app.settings.add_on_firmware);
            Some(format!("{}{firmware}", identity(way, kind, &tpm)))
        }
        Some(IPXE | HTTP_IPXE) => Some(
            "identity: a nonce in a boot script that one address gets; it travels in plain text on the nodes' network"
                .to_owned(),
        ),
        _ => None,
    })
}

/// What the node's TPM shows besides.
///
/// # Errors
/// A proof is required that this node cannot give.
async fn tpm(call: &Call, node: &Node) -> Result<String, String> {
    let required = boot_proof::is_required(&node.driver_info, call.app.settings.require_tpm)?;
    let by_medium = matches!(validation::interface(&call.app, node, "boot"), Some(VIRTUAL_MEDIA | HTTP_BOOT));
    let predicted = match by_medium {
        // What such a boot measures depends on its nonce, and is known once there is one.
        true if call.app.drivers.boot_medium(node) == Ok(BootMediumKind::Shim) => Ok(()),
        true => call.app.drivers.predicted_boot(node, &BootNonce::fresh()).await.map(drop),
        false => Err(format!("that is done for the boot interfaces {VIRTUAL_MEDIA} and {HTTP_BOOT} alone")),
    };
    if let Some(why) = predicted.err().filter(|_| required) {
        return Err(format!(
            "{REQUIRE_TPM} is set, and nothing is known of what a boot should measure: {why}"
        ));
    }
    let sentence = match (required, node.tpm.as_deref()) {
        (true, Some(record)) if record.changed.is_some() => {
            "The TPM proves each boot, and the last one measured something else than what is recorded: anneal node measurements show"
        }
        (true, Some(_)) => "The node's TPM proves each boot; without that no agent gets a token",
        (true, None) => "The next inspection records the node's TPM, which from then on proves each boot",
        (false, Some(_)) => {
            "The node's TPM proves each boot, but an agent without that proof gets a token, too (require_tpm is not set)"
        }
        (false, None) => "Without a TPM that proves it (require_tpm), this proves nothing to the controller",
    };
    Ok(sentence.to_owned())
}

/// What a boot medium shows of the agent's identity.
fn identity(way: &str, kind: BootMediumKind, tpm: &str) -> String {
    let nonce = if way == HTTP_BOOT {
        "identity: a nonce in a boot medium that one address gets; it travels in plain text on the nodes' network"
    } else {
        "identity: a nonce on a boot medium that only the node's BMC can read; the nodes' network never carries it before the agent \
         shows it by TLS"
    };
    match kind {
        BootMediumKind::Unsigned => nonce.to_owned(),
        BootMediumKind::Signed => format!(
            "{nonce}. The ramdisk is signed and obeys this controller; a firmware with Secure Boot on starts no changed one. {tpm}"
        ),
        BootMediumKind::Shim => format!(
            "{nonce}. A firmware with Secure Boot on starts signed loaders and a signed kernel alone (Debian's shim, systemd-boot and kernel); \
             initramfs and kernel command line are not signed. {tpm}"
        ),
    }
}

/// What of the add-on firmware a boot medium does not carry.
fn firmware(kind: BootMediumKind, configured: bool) -> &'static str {
    if kind == BootMediumKind::Signed && configured {
        ". Add-on firmware (boot.firmware_dir) is not sent: a signed ramdisk has what was signed with it"
    } else {
        ""
    }
}
