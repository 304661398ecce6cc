//! `GET /v1/nodes/{ident}/history`: one event for each change of the node, with its cause.

use crate::args::is_logical_name;
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use crate::page::{self, Page};
use axum::extract::Path;
use model::history::Severity;
use model::{Event, ProvisionState};
use serde_json::{Value, json};
use uuid::Uuid;

/// Fields of an event that lists can be sorted by, in addition to the time.
const SORTABLE: [&str; 10] = [
    "uuid",
    "severity",
    "event_type",
    "event",
    "conductor",
    "user",
    "project",
    "state",
    "target_provision_state",
    "duration_seconds",
];

/// Longest text of an event in a list; Ironic cuts it there too.
const SHORT: usize = 255;

/// `GET …/history`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(78)?;
    let mut known = page::ARGS.to_vec();
    known.push("detail");
    call.args.only(&known)?;
    let detail = call.args.boolean("detail")?.unwrap_or(false);
    let mut page = Page::from_args(&call.args, call.app.settings.max_limit)?;
    match page.sort_key.as_str() {
        // History is kept in the order of time.
        "created_at" => page.sort_key = "id".into(),
        "id" => {}
        key if SORTABLE.contains(&key) => {}
        _ => return Err(page.bad_key(false)),
    }
    let node = call.node(&ident).await?;
    let events = call.app.store.history(node.uuid).await?;
    if let Some(marker) = page.marker().filter(|marker| !events.iter().any(|event| event.uuid == *marker)) {
        return Err(missing(marker));
    }
    let key = |event: &Event| view(&call, node.uuid, event, true)[&page.sort_key].take();
    let (events, more) = page.cut(events, |event| event.uuid, key);
    let last = events.last().map(|event| event.uuid);
    let history: Vec<_> = events.iter().map(|event| view(&call, node.uuid, event, detail)).collect();
    let mut body = json!({"history": history});
    if let Some(last) = last.filter(|_| more) {
        body["next"] = page.next(&call.links, &format!("nodes/{ident}/history"), &call.args, last).into();
    }
    Ok(json(200, &body))
}

/// `GET …/history/{event}`.
pub async fn show(Path((ident, event)): Path<(String, String)>, call: Call) -> Reply {
    call.version.has_path(78)?;
    call.args.only(&[])?;
    let wanted = Uuid::parse_str(&event).ok();
    if wanted.is_none() && !is_logical_name(&event) {
        return Err(ApiError::invalid(format!("Expected UUID or name for event: {event}")));
    }
    let node = call.node(&ident).await?;
    // Of this node only: Ironic shows the events of any other one here as well.
    let events = call.app.store.history(node.uuid).await?;
    let found = events.iter().find(|event| Some(event.uuid) == wanted).ok_or_else(|| missing(&event))?;
    Ok(json(200, &view(&call, node.uuid, found, true)))
}

fn missing(event: impl std::fmt::Display) -> ApiError {
    ApiError::client(404, format!("Node history record {event} could not be found."))
}

fn severity(event: &Event) -> &'static str {
    match event.severity {
        Severity::Info => "INFO",
        Severity::Error => "ERROR",
    }
}

fn kind(event: &Event) -> Value {
    serde_json::to_value(event.kind).unwrap_or(Value::Null)
}

fn view(call: &Call, node: Uuid, event: &Event, detail: bool) -> Value {
    let href = call.links.v1(&format!("nodes/{node}/history/{}", event.uuid));
    let text = if detail || event.text.chars().count() <= SHORT {
        event.text.clone()
    } else {
        event.text.chars().take(SHORT - 4).chain("...".chars()).collect()
    };
    let mut view = json!({
        "uuid": event.uuid,
        "created_at": iso(event.at),
        "severity": severity(event),
        "event": text,
        "links": [{"href": href, "rel": "self"}],
    });
    if detail {
        view["event_type"] = kind(event);
        view["conductor"] = call.app.members.own().into();
        let sender = event.sender.clone().unwrap_or_default();
        view["user"] = sender.user.into();
        if call.version.has(113) {
            view["project"] = sender.project.into();
        }
        // Ironic has no field for these.
        view["anneal"] = json!({"address": sender.address, "request_id": event.request_id});
        if call.version.has(115) {
            let name =
                |state: Option<ProvisionState>| state.map_or(Value::Null, |state| state.as_str().into());
            view["state"] = name(event.state);
            view["target_provision_state"] = name(event.target_provision_state);
            view["duration_seconds"] = event.duration_s.into();
        }
    }
    view
}
