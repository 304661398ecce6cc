//! `/v1/anneal/nodes/{ident}/erase_plan`: what an erase step would do to each disk of the node, told by its agent,
//! which writes nothing for it. Anneal's own; Ironic has nothing like it, so no microversion guards it.

use crate::body;
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use model::{Contact, Node, Timestamp};
use serde_json::{Map, Value};

/// The step that is planned when none is named.
const STEP: &str = "erase_devices";

/// `GET …[?step=erase_devices]`: with the step's defaults.
pub async fn defaults(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&["step"])?;
    let step = call.args.text("step").unwrap_or(STEP).to_owned();
    answer(&ident, &call, &step, Map::new()).await
}

/// `POST …` with `step` and `args`.
pub async fn with_arguments(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&["step", "args"])?;
    let step = body::text(&given, "step")?.unwrap_or(STEP);
    let args = match given.get("args") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(other) => {
            return Err(ApiError::invalid(format!("Expected an object for args: {}", body::python(other))));
        }
    };
    answer(&ident, &call, step, args).await
}

async fn answer(ident: &str, call: &Call, step: &str, args: Map<String, Value>) -> Reply {
    let node = call.node(ident).await?;
    let contact = call.app.store.contact(node.uuid).await?;
    if let Some(why) = nobody_to_ask(&node, &contact, call.now(), call.app.settings.heartbeat_timeout_s) {
        return Err(ApiError::conflict(why));
    }
    let step = serde_json::json!({"interface": "deploy", "step": step, "args": args});
    Ok(json(200, &call.app.drivers.erase_plan(&node, &contact, &step).await?))
}

/// Why the node has no agent that could plan, and what to do to have one.
fn nobody_to_ask(node: &Node, contact: &Contact, now: Timestamp, timeout_s: f64) -> Option<String> {
    let what = match (&contact.callback_url, contact.anneal(), contact.last_heartbeat_at) {
        (None, ..) | (.., None) => "no agent runs on it".to_owned(),
        (_, None, _) => "its agent is not Anneal's, and knows no plans".to_owned(),
        (.., Some(heard)) if now.since(heard).as_secs_f64() > timeout_s => {
            format!("its agent was last heard {} s ago", now.since(heard).as_secs())
        }
        _ => return None,
    };
    Some(format!(
        "The erase of node {} (state \"{}\") cannot be planned: {what}. To see the plan first, clean it by hand \
         with the steps deploy.hold and deploy.erase_devices, ask in \"clean hold\", then say \"unhold\" to erase \
         or \"abort\".",
        node.uuid,
        node.provision_state.as_str()
    ))
}
