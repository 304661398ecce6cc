//! `/v1/conductors` (this controller is the only one), `/v1/shards` and `/v1/events`.

use super::resource::{ResourceSpec, TooOld};
use crate::body::{only, python};
use crate::call::{Call, empty, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use crate::page::{self, Page};
use crate::schema;
use crate::shown;
use axum::extract::Path;
use mac::Mac;
use serde_json::{Map, Value, json};

const FIELDS: [&str; 7] =
    ["hostname", "conductor_group", "drivers", "alive", "created_at", "updated_at", "links"];
const SHORT: [&str; 3] = ["hostname", "conductor_group", "alive"];
const UNSORTABLE: [&str; 3] = ["alive", "drivers", "links"];

/// Events that Neutron sends to Ironic.
const EVENTS: [&str; 3] = ["network.bind_port", "network.unbind_port", "network.delete_port"];
const REQUIRED: [&str; 4] = ["event", "port_id", "mac_address", "status"];
const OPTIONAL: [&str; 3] = ["device_id", "binding:host_id", "binding:vnic_type"];

/// Endpoints of conductors, shards and events.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/conductors" 49 "baremetal:conductor:get", "this controller" => list;
        GET "/v1/conductors/{hostname}" 49 "baremetal:conductor:get", "this controller" => show;
        GET "/v1/shards" 82 "baremetal:shards:get", "shards, with how many nodes" => shards;
        POST "/v1/events" 54 "baremetal:events:post", "accepted and, as in Ironic, only logged" => events;
    ]
}

fn conductor(call: &Call, wanted: Option<&[String]>) -> Value {
    let host = &call.app.settings.conductor_host;
    let drivers: Vec<_> = call.app.drivers.drivers().iter().map(|driver| driver.name.clone()).collect();
    let mut view = Map::new();
    for (name, value) in [
        ("hostname", json!(host)),
        // It serves the nodes of every group.
        ("conductor_group", json!("")),
        ("drivers", json!(drivers)),
        ("alive", json!(true)),
        ("created_at", Value::Null),
        ("updated_at", json!(iso(call.now()))),
    ] {
        if wanted.is_none_or(|wanted| wanted.iter().any(|wanted| wanted == name)) {
            view.insert(name.to_owned(), value);
        }
    }
    view.insert("links".to_owned(), call.links.pair(&format!("conductors/{host}")));
    Value::Object(view)
}

fn check(wanted: &[String]) -> Result<(), ApiError> {
    shown::check_known(wanted, |name| FIELDS.contains(&name))
}

/// `GET /v1/conductors`.
async fn list(call: Call) -> Reply {
    ResourceSpec::since(&call, 49, TooOld::Unsupported, 404)?;
    let mut known = page::ARGS.to_vec();
    known.extend(["detail", "fields"]);
    call.args.only(&known)?;
    let fields = shown::in_list(&call, Some(49), &SHORT, check)?;
    // The marker is a host name here.
    let others = call.args.pairs().iter().filter(|(name, _)| name != "marker").cloned().collect();
    let page = Page::from_args(&crate::args::Args::new(others), call.app.settings.max_limit)?;
    if page.sort_key != "id" {
        let known = FIELDS.contains(&page.sort_key.as_str());
        if !known || UNSORTABLE.contains(&page.sort_key.as_str()) {
            return Err(page.bad_key(known));
        }
    }
    let after = call.args.text("marker").map(|host| found(&call, host)).transpose()?.is_some();
    let conductors = if after { vec![] } else { vec![conductor(&call, fields.as_deref())] };
    Ok(json(200, &json!({"conductors": conductors})))
}

/// `GET /v1/conductors/{hostname}`.
async fn show(Path(hostname): Path<String>, call: Call) -> Reply {
    ResourceSpec::since(&call, 49, TooOld::Unsupported, 404)?;
    call.args.only(&["fields"])?;
    let wanted = shown::fields(&call, check)?;
    found(&call, &hostname)?;
    Ok(json(200, &conductor(&call, wanted.as_deref())))
}

fn found(call: &Call, hostname: &str) -> Result<(), ApiError> {
    if hostname == call.app.settings.conductor_host {
        return Ok(());
    }
    Err(ApiError::client(404, format!("Conductor {hostname} could not be found.")))
}

/// `GET /v1/shards`: the largest first.
async fn shards(call: Call) -> Reply {
    ResourceSpec::since(&call, 82, TooOld::Disallowed("shards"), 404)?;
    call.args.only(&[])?;
    let mut counts: Vec<_> = call.app.store.shards(None).await?.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shards: Vec<_> =
        counts.into_iter().map(|(name, count)| json!({"name": name, "count": count})).collect();
    Ok(json(200, &json!({"shards": shards})))
}

/// `POST /v1/events`.
async fn events(call: Call) -> Reply {
    ResourceSpec::since(&call, 54, TooOld::Unsupported, 404)?;
    call.args.only(&[])?;
    let bad = |why: String| Err(ApiError::invalid(format!("Schema error for events: {why}")));
    let given = schema::object("events", call.json()?)?;
    only(&given, &["events"])?;
    let items = match given.get("events") {
        Some(Value::Array(items)) if items.is_empty() => return bad("[] should be non-empty".to_owned()),
        Some(Value::Array(items)) => items,
        Some(other) => return bad(format!("{} is not of type 'array'", python(other))),
        None => return bad("'events' is a required property".to_owned()),
    };
    for item in items {
        let Value::Object(event) = item else {
            return bad(format!("{} is not of type 'object'", python(item)));
        };
        if let Some(missing) = REQUIRED.iter().find(|name| !event.contains_key(**name)) {
            return bad(format!("'{missing}' is a required property"));
        }
        for (name, value) in event {
            let null = OPTIONAL.contains(&name.as_str()) && value.is_null();
            let sound = match (name.as_str(), value.as_str()) {
                ("event", Some(event)) => EVENTS.contains(&event),
                ("port_id", Some(id)) => uuid::Uuid::parse_str(id).is_ok(),
                ("mac_address", Some(address)) => address.trim().parse::<Mac>().is_ok(),
                ("status" | "device_id" | "binding:host_id" | "binding:vnic_type", Some(_)) => true,
                (name, None) if REQUIRED.contains(&name) || OPTIONAL.contains(&name) => null,
                _ => return bad(format!("Additional properties are not allowed ('{name}' was unexpected)")),
            };
            if !sound {
                return bad(format!("{} is not valid (field \"{name}\")", python(value)));
            }
        }
        tracing::debug!(?event, "an event from outside");
    }
    Ok(empty(204, None))
}
