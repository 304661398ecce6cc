//! `GET /v1/nodes/{ident}/validate`.

use super::{configdrive, hello, validation};
use crate::app::{App, Settings};
use crate::call::{Call, json};
use crate::driver_queries::{BootMediumKind, INTERFACES};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use model::Node;
use model::boot::AGENT_KIND;
use model::boot::BootNonce;
use model::boot_medium::{HTTP_BOOT, HTTP_IPXE, IPXE, VIRTUAL_MEDIA};
use model::boot_proof::{self, REQUIRE_TPM};
use model::fast_track;
use model::image::{DIRECT, ImageError};
use model::root_disk;
use serde_json::{Map, Value, json};

/// `GET /v1/nodes/{ident}/validate`.
pub async fn validate(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    answer(&call, call.node(&ident).await?).await
}

/// `GET /v1/nodes/validate?node=<ident>`, or, deprecated, `?node_uuid=`.
pub async fn by_query(call: Call) -> Reply {
    call.args.only(&["node", "node_uuid"])?;
    let ident = call.args.node().ok_or_else(|| ApiError::invalid("Missing mandatory parameter: node"))?;
    answer(&call, call.node(ident).await?).await
}

/// What decides which agent the node's boot accepts: said at the boot interface.
fn with_agent(entry: Value, settings: &Settings, node: &Node) -> Value {
    if let Some(kind) = node.properties.get(AGENT_KIND)
        && kind != "anneal"
        && kind != "ironic-python-agent"
    {
        let reason =
            format!("property {AGENT_KIND} is {kind}, neither \"anneal\" nor \"ironic-python-agent\"");
        return json!({"result": false, "reason": reason});
    }
    if !settings.lookup_without_nonce || entry["result"] != true {
        return entry;
    }
    let reason = "agent.lookup_without_nonce is set: unless the boot script was fetched from this controller, any client that knows \
                  the node's MAC address can take the place of its agent";
    json!({"result": true, "reason": reason})
}

/// Whether a node that is to boot by virtual media can, and what the way of its boot shows of the agent's identity.
async fn with_way(entry: Value, call: &Call, node: &Node) -> Value {
    if entry["result"] != true || entry.get("reason").is_some() {
        return entry;
    }
    let tpm = match tpm(call, node).await {
        Ok(sentence) => sentence,
        Err(reason) => return json!({"result": false, "reason": reason}),
    };
    let reason = match validation::interface(&call.app, node, "boot") {
        Some(way @ (VIRTUAL_MEDIA | HTTP_BOOT)) => match call.app.drivers.boot_medium(node) {
            Ok(kind) => {
                let firmware = firmware(kind, call.app.settings.add_on_firmware);
                return json!({"result": true, "reason": format!("{}{firmware}", identity(way, kind, &tpm))});
            }
            Err(reason) => return json!({"result": false, "reason": reason}),
        },
        Some(IPXE | HTTP_IPXE) => {
            "identity: a nonce in a boot script that one address gets; it travels in plain text on the nodes' network"
        }
        _ => return entry,
    };
    json!({"result": true, "reason": reason})
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

/// What the node would be deployed with, judged as `active` judges it.
async fn with_image(entry: Value, call: &Call, node: &Node) -> Value {
    if entry["result"] != true {
        return entry;
    }
    if let Err(error) = judge(&call.app, node).await {
        return json!({"result": false, "reason": error.to_string()});
    }
    match disk(call, node).await {
        Some(sentence) => json!({"result": true, "reason": sentence}),
        None => entry,
    }
}

/// The disk that will be written, where that is worth a sentence; judged by what an agent saw, since BMCs call disks otherwise.
async fn disk(call: &Call, node: &Node) -> Option<String> {
    if validation::interface(&call.app, node, "deploy") != Some(DIRECT) {
        return None;
    }
    // The disks are a help: without an inventory nothing is said of them.
    let inventory = call.app.store.inventory(node.uuid).await.ok().flatten()?;
    let seen = inventory.source == "agent";
    seen.then(|| root_disk::foreseen(node, &inventory.inventory, call.app.settings.root_disk)).flatten()
}

/// A value of `driver_info.fast_track` that is neither true nor false, which counts as false.
fn with_fast_track(entry: Value, node: &Node) -> Value {
    match fast_track::is_on(&node.driver_info, false) {
        Err(reason) if entry["result"] == true => json!({"result": false, "reason": reason}),
        _ => entry,
    }
}

async fn judge(app: &App, node: &Node) -> Result<(), ImageError> {
    validation::image(app, node).await?;
    configdrive::check_writable(app, node, None).await?;
    Ok(hello::check(app, node, None)?)
}

async fn answer(call: &Call, node: Node) -> Reply {
    let reported = call.app.drivers.validate(&node.driver, &node.driver_info).await;
    let mut body = Map::new();
    for interface in INTERFACES {
        let used = validation::interface(&call.app, &node, interface);
        let entry = match (reported.get(interface), used) {
            (Some(validity), _) => {
                let mut entry = json!({"result": validity.result});
                if let Some(reason) = &validity.reason {
                    entry["reason"] = Value::String(reason.clone());
                }
                entry
            }
            (None, None) => {
                json!({"result": false, "reason": format!("driver {} is not enabled", node.driver)})
            }
            (None, Some(used)) if used.starts_with("no-") => {
                json!({"result": null, "reason": "not supported"})
            }
            (None, Some(_)) => json!({"result": true}),
        };
        let entry = match interface {
            "boot" => with_way(with_agent(entry, &call.app.settings, &node), call, &node).await,
            "deploy" => with_fast_track(with_image(entry, call, &node).await, &node),
            "rescue" if entry["result"] == true => match validation::rescue(&call.app, &node) {
                Ok(()) => entry,
                Err(reason) => json!({"result": false, "reason": reason}),
            },
            _ => entry,
        };
        body.insert(interface.to_owned(), entry);
    }
    Ok(json(200, &Value::Object(body)))
}
