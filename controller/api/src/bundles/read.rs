//! Lists of bundles, and one bundle.

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::format::{iso, text};
use axum::extract::Path;
use model::Bundle;
use serde_json::{Value, json};

/// `GET /v1/anneal/bundles[?node=IDENT]`: all, or those that a node will have at its next boot.
pub async fn list(call: Call) -> Reply {
    call.app.bundle_store()?;
    call.args.only(&["node"])?;
    let bundles = call.app.store.bundles().await?;
    let shown: Vec<Value> = match call.args.text("node") {
        None => bundles.iter().map(view).collect(),
        Some(ident) => {
            let node = call.app.store.node_by_ident(ident).await?;
            model::bundle::of_node(&bundles, &node).into_iter().map(view).collect()
        }
    };
    Ok(json(200, &json!({"bundles": shown})))
}

/// `GET /v1/anneal/bundles/{digest}`, with its manifest and every scope it has.
pub async fn show(Path(digest): Path<String>, call: Call) -> Reply {
    call.app.bundle_store()?;
    call.args.only(&[])?;
    let mut bundles = call.app.store.bundles().await?;
    bundles.retain(|bundle| bundle.digest == digest);
    let first = bundles.first().ok_or_else(|| ApiError::no_bundle(&digest))?;
    let mut shown = view(first);
    if let Some(shown) = shown.as_object_mut() {
        shown.remove("scope");
        let scopes: Vec<_> = bundles.iter().map(|bundle| bundle.scope.to_string()).collect();
        shown.insert("scopes".to_owned(), json!(scopes));
        shown.insert("manifest".to_owned(), Value::Object(first.manifest.clone()));
    }
    Ok(json(200, &shown))
}

/// A bundle as clients see it.
pub fn view(bundle: &Bundle) -> Value {
    json!({
        "name": bundle.name,
        "version": bundle.version,
        "vendor": bundle.vendor,
        "scope": bundle.scope.to_string(),
        "digest": bundle.digest,
        "size": bundle.size,
        "signed_by": text(bundle.signed_by.as_deref()),
        "created_at": iso(bundle.created_at),
    })
}
