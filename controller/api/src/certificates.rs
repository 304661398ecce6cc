//! `/v1/anneal/certificates`: what was erased, signed. Anneal's own; Ironic has nothing like it, so no microversion
//! guards it. Certificates are made by the conductor, and never changed or taken away.

use crate::call::{Call, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use axum::extract::Path;
use model::Certificate;
use serde_json::{Value, json};
use store::StoreError;
use uuid::Uuid;

/// What is served of certificates.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/certificates" 1 "anneal:certificate:get", "erasure certificates of a node" => list;
        GET "/v1/anneal/certificates/{id}" 1 "anneal:certificate:get", "one certificate" => show;
        GET "/v1/anneal/certificate_key" 1 "anneal:certificate:get", "the public key they are signed with" => key;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

/// `GET /v1/anneal/certificates?node=IDENT`: those of a node, oldest first; by its UUID also when it is gone.
pub async fn list(call: Call) -> Reply {
    call.args.only(&["node"])?;
    let Some(ident) = call.args.text("node") else {
        return Err(ApiError::invalid("Missing argument \"node\": whose certificates?"));
    };
    let uuid = match (call.app.store.node_by_ident(ident).await, Uuid::parse_str(ident)) {
        (Ok(node), _) => node.uuid,
        (Err(StoreError::NotFound { .. }), Ok(gone)) => gone,
        (Err(error), _) => return Err(error.into()),
    };
    let shown: Vec<Value> = call.app.store.certificates(uuid).await?.iter().map(view).collect();
    Ok(json(200, &json!({"certificates": shown})))
}

/// `GET /v1/anneal/certificates/{id}`: the file, as it is verified (docs/certificate.md).
pub async fn show(Path(id): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let file = call.app.store.certificate(&id).await?.file;
    let file: Value = serde_json::from_str(&file)
        .map_err(|error| StoreError::caused(format!("certificate {id} cannot be read"), error))?;
    Ok(json(200, &file))
}

/// `GET /v1/anneal/certificate_key`: what they are verified with.
pub async fn key(call: Call) -> Reply {
    call.args.only(&[])?;
    match &call.app.certificate_key {
        Some(key) => Ok(json(200, &json!({"key": key}))),
        None => Err(ApiError::client(404, "This controller certifies nothing.")),
    }
}

fn view(certificate: &Certificate) -> Value {
    json!({
        "id": certificate.id,
        "node_uuid": certificate.node,
        "number": certificate.number,
        "finding": certificate.finding,
        "command_id": certificate.command_id,
        "issued_at": iso(certificate.at),
    })
}
