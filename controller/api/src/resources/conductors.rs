//! `/v1/conductors`, `/v1/shards` and `/v1/events`.

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
use model::{ConductorReport, Timestamp};
use serde_json::{Map, Value, json};
use store::{FieldValue, NodeField};

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
        GET "/v1/conductors" 49 "baremetal:conductor:get", "the controllers that share the store" => list;
        GET "/v1/conductors/{hostname}" 49 "baremetal:conductor:get", "one of them" => show;
        GET "/v1/shards" 82 "baremetal:shards:get", "shards, with how many nodes" => shards;
        POST "/v1/events" 54 "baremetal:events:post", "accepted and, as in Ironic, only logged" => events;
    ]
}

/// The controllers that share the store, by name.
async fn reports(call: &Call) -> Result<Vec<ConductorReport>, ApiError> {
    let now = call.now();
    let (mut all, members) = (call.app.store.conductors().await?, &call.app.members);
    // One that answers is alive, even if it could not report itself for a while, or not yet.
    if let Some(own) = all.iter_mut().find(|one| one.hostname == members.own()) {
        own.alive_until = Timestamp(i64::MAX);
        return Ok(all);
    }
    all.push(ConductorReport {
        hostname: members.own().to_owned(),
        group: None,
        drivers: call.app.drivers.drivers().iter().map(|driver| driver.name.clone()).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        agent_api: members.agent_api().cloned(),
        bmc_request_timeout_s: None,
        started_at: now,
        reported_at: now,
        alive_until: Timestamp(i64::MAX),
    });
    all.sort_by(|one, other| one.hostname.cmp(&other.hostname));
    Ok(all)
}

fn field(call: &Call, one: &ConductorReport, name: &str) -> Value {
    match name {
        "hostname" => json!(one.hostname),
        // Without one it serves the nodes of every group.
        "conductor_group" => json!(one.group.as_deref().unwrap_or_default()),
        "drivers" => json!(one.drivers),
        "alive" => json!(one.is_alive(call.now())),
        "created_at" => json!(iso(one.started_at)),
        "updated_at" => json!(iso(one.reported_at)),
        _ => Value::Null,
    }
}

fn view(call: &Call, one: &ConductorReport, wanted: Option<&[String]>) -> Value {
    let is_wanted = |name: &&str| wanted.is_none_or(|wanted| wanted.iter().any(|wanted| wanted == name));
    let shown = FIELDS.iter().filter(|name| **name != "links").filter(|name| is_wanted(name));
    let mut view: Map<String, Value> =
        shown.map(|name| ((*name).to_owned(), field(call, one, name))).collect();
    view.insert("links".to_owned(), call.links.pair(&format!("conductors/{}", one.hostname)));
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
    let mut all = reports(&call).await?;
    if page.sort_key == "id" {
        if page.descending {
            all.reverse();
        }
    } else {
        let key = |one: &ConductorReport| field(&call, one, &page.sort_key);
        all.sort_by(|one, other| page.order(&key(one), &key(other)));
    }
    if let Some(marker) = call.args.text("marker") {
        let at = all.iter().position(|one| one.hostname == marker).ok_or_else(|| unknown(marker))?;
        all.drain(..=at);
    }
    let more = all.len() > page.limit;
    all.truncate(page.limit);
    let views: Vec<Value> = all.iter().map(|one| view(&call, one, fields.as_deref())).collect();
    let mut body = json!({"conductors": views});
    if let Some(last) = all.last().filter(|_| more) {
        body["next"] = page.next(&call.links, "conductors", &call.args, &last.hostname).into();
    }
    Ok(json(200, &body))
}

/// `GET /v1/conductors/{hostname}`.
async fn show(Path(hostname): Path<String>, call: Call) -> Reply {
    ResourceSpec::since(&call, 49, TooOld::Unsupported, 404)?;
    call.args.only(&["fields"])?;
    let wanted = shown::fields(&call, check)?;
    let all = reports(&call).await?;
    let one = all.iter().find(|one| one.hostname == hostname).ok_or_else(|| unknown(&hostname))?;
    Ok(json(200, &view(&call, one, wanted.as_deref())))
}

fn unknown(hostname: &str) -> ApiError {
    ApiError::client(404, format!("Conductor {hostname} could not be found."))
}

/// `GET /v1/shards`: the largest first.
async fn shards(call: Call) -> Reply {
    ResourceSpec::since(&call, 82, TooOld::Disallowed("shards"), 404)?;
    call.args.only(&[])?;
    let mut counts: Vec<_> =
        call.app.store.count_nodes(&[NodeField::Shard], None).await?.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shard = |(values, count): (Vec<FieldValue>, usize)| {
        let name = match &values[..] {
            [FieldValue::Text(name)] => Some(name),
            _ => None,
        };
        json!({"name": name, "count": count})
    };
    let shards: Vec<_> = counts.into_iter().map(shard).collect();
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
