//! `GET /v1/nodes/{ident}/validate`.

use super::{configdrive, hello, ramdisk_boot, validation};
use crate::app::{App, Settings};
use crate::call::{Call, json};
use crate::driver_queries::INTERFACES;
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use model::Node;
use model::boot::AGENT_KIND;
use model::boot_proof;
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

/// Whether the node can be booted, and what shows who its agent is.
async fn with_boot(entry: Value, call: &Call, node: &Node) -> Value {
    if let Some(kind) = node.properties.get(AGENT_KIND)
        && kind != "anneal"
        && kind != "ironic-python-agent"
    {
        let reason =
            format!("property {AGENT_KIND} is {kind}, neither \"anneal\" nor \"ironic-python-agent\"");
        return json!({"result": false, "reason": reason});
    }
    if entry["result"] != true {
        return entry;
    }
    let identity = match ramdisk_boot::judge(call, node).await {
        Ok(identity) => identity,
        Err(reason) => return json!({"result": false, "reason": reason}),
    };
    let sentences: Vec<String> =
        identity.into_iter().chain(without_nonce(&call.app.settings, node)).collect();
    if sentences.is_empty() {
        return entry;
    }
    json!({"result": true, "reason": sentences.join(". ")})
}

/// What the setting means for this node that accepts agents without a nonce. Where a proof of the boot is required, nothing: that
/// is never given without the nonce.
fn without_nonce(settings: &Settings, node: &Node) -> Option<String> {
    let proved = boot_proof::is_required(&node.driver_info, settings.require_tpm).unwrap_or(true);
    (settings.lookup_without_nonce && !proved).then(|| {
        "agent.lookup_without_nonce is set: unless the boot script or the boot medium was fetched from this controller, any client \
         that knows the node's MAC address can take the place of its agent"
            .to_owned()
    })
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
            "boot" => with_boot(entry, call, &node).await,
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
