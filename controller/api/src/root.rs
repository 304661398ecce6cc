//! `GET /` and `GET /v1/`: the resources and versions that are served.

use crate::call::{Call, json};
use crate::endpoint::{Endpoint, OPEN, rows};
use crate::error::Reply;
use crate::microversion::{MAX, MIN, Version};
use serde_json::{Value, json};

fn version(call: &Call) -> Value {
    json!({
        "id": "v1",
        "links": [{"href": call.links.v1(""), "rel": "self"}],
        "status": "CURRENT",
        "min_version": Version(MIN).to_string(),
        "version": Version(MAX).to_string(),
    })
}

/// Endpoints of the version documents.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/" 1 OPEN, "versions" => root;
        GET "/v1" 1 OPEN, "resources of version 1" => v1;
    ]
}

/// `GET /`. The key `anneal` says that an agent may send its boot id in the lookup, and whether it may prove its boot.
pub async fn root(call: Call) -> Reply {
    let version = version(&call);
    let mut anneal = json!({"extension": agent_protocol::EXTENSION});
    if call.app.settings.boot_proofs {
        anneal["boot_proof"] = json!(agent_protocol::boot_proof::VERSION);
    }
    Ok(json(
        200,
        &json!({
            "name": "OpenStack Ironic API",
            "description": "Ironic is an OpenStack project which enables the provision and management of \
                            baremetal machines.",
            "default_version": version,
            "versions": [version],
            "anneal": anneal,
        }),
    ))
}

/// `GET /v1/`.
pub async fn v1(call: Call) -> Reply {
    let mut body = json!({
        "id": "v1",
        "links": [
            {"href": call.links.v1(""), "rel": "self"},
            {
                "href": "https://docs.openstack.org//ironic/latest/contributor/webapi.html",
                "rel": "describedby",
                "type": "text/html",
            },
        ],
        "media_types": {"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"},
        "version": version(&call),
    });
    for (name, since) in [
        ("chassis", 1),
        ("nodes", 1),
        ("ports", 1),
        ("drivers", 1),
        ("portgroups", 23),
        ("volume", 32),
        ("lookup", 22),
        ("heartbeat", 22),
        ("conductors", 49),
        ("allocations", 52),
        ("events", 54),
        ("deploy_templates", 55),
        ("shards", 82),
        ("runbooks", 92),
        ("inspection_rules", 96),
        ("continue_inspection", 84),
    ] {
        if call.version.has(since) {
            body[name] = call.links.pair(&format!("{name}/"));
        }
    }
    Ok(json(200, &body))
}
