//! `/v1/anneal/certificates`: signed certificates of erases and deployments. An extension of Anneal's, so no microversion guards
//! it. The conductor issues certificates; they are never changed or removed.

use crate::call::{Call, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use axum::extract::Path;
use certificate::{PublicKey, SignedKeyChange, Wanted, keys_from};
use model::Certificate;
use serde_json::{Value, json};
use store::StoreError;
use uuid::Uuid;

/// Endpoints of certificates.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/certificates" 1 "anneal:certificate:get", "certificates of the erases and deployments of a node" => list;
        GET "/v1/anneal/certificates/{id}" 1 "anneal:certificate:get", "one certificate" => show;
        GET "/v1/anneal/certificates/{id}/verification" 1 "anneal:certificate:get", "whether it is good, and what it says"
            => verification;
        GET "/v1/anneal/certificate_key" 1 "anneal:certificate:get", "the public key they are signed with" => key;
        GET "/v1/anneal/certificate_log" 1 "anneal:certificate:log", "log of the heads of all chains" => log;
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

/// `GET /v1/anneal/certificates/{id}/verification`: the judgement of a certificate by the key of this controller, with its predecessor,
/// and what it says. Auditors verify the file with `anneal certificate verify`, without trusting this controller.
pub async fn verification(Path(id): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let found = call.app.store.certificate(&id).await?;
    let keys = keys(&call).await?;
    let all = call.app.store.certificates(found.node).await?;
    let before = all.iter().find(|one| one.number.checked_add(1) == Some(found.number));
    let node = found.node.to_string();
    let wanted = Wanted {
        node: Some(&node),
        previous: before.map(|before| before.file.as_str()),
        ..Wanted::default()
    };
    let view = match certificate::verify_with_any(&found.file, &keys, &wanted) {
        Ok(verified) => json!({
            "id": id,
            "good": true,
            "refused": null,
            "text": "signed by this controller, whole, and claims no more than the evidence of the agent shows",
            "certificate": verified.certificate,
            "evidence": verified.evidence,
        }),
        Err(refused) => json!({
            "id": id,
            "good": false,
            "refused": refused.name(),
            "text": refused.to_string(),
            "certificate": null,
            "evidence": null,
        }),
    };
    Ok(json(200, &view))
}

/// The keys that this controller believes: its own, and those before it.
async fn keys(call: &Call) -> Result<Vec<PublicKey>, ApiError> {
    let own = call.app.certificate_key.as_ref().and_then(|key| key.parse::<PublicKey>().ok());
    let own = own.ok_or_else(|| ApiError::client(404, "This controller certifies nothing."))?;
    let unreadable = |error| StoreError::caused("a change of the key of certificates cannot be read", error);
    let changes = call.app.store.key_changes().await?;
    let changes: Vec<SignedKeyChange> = changes
        .iter()
        .map(|change| serde_json::from_str(change))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    Ok(keys_from(own, &changes).unwrap_or_else(|_| vec![own]))
}

/// `GET /v1/anneal/certificate_key`: what they are verified with, and the changes of that key.
pub async fn key(call: Call) -> Reply {
    call.args.only(&[])?;
    let Some(key) = &call.app.certificate_key else {
        return Err(ApiError::client(404, "This controller certifies nothing."));
    };
    let changes = call.app.store.key_changes().await?;
    let unreadable = |error| StoreError::caused("a change of the key of certificates cannot be read", error);
    let changes: Vec<Value> = changes
        .iter()
        .map(|change| serde_json::from_str(change))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    Ok(json(200, &json!({"key": key, "changes": changes})))
}

/// Most lines of the log in one answer.
const LINES: usize = 1000;

/// `GET /v1/anneal/certificate_log?from=N`: its lines from that one (from 1) on, at most [`LINES`]; none behind the last one.
pub async fn log(call: Call) -> Reply {
    call.args.only(&["from"])?;
    let from = match call.args.text("from") {
        None => 1,
        Some(text) => text
            .parse::<u64>()
            .ok()
            .filter(|from| *from > 0)
            .ok_or_else(|| ApiError::invalid(format!("Expected a number from 1 on for from: {text}")))?,
    };
    Ok(json(200, &json!({"lines": call.app.store.certificate_log(from, LINES).await?})))
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
