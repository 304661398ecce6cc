//! `vendor_passthru` of nodes and drivers: methods that a vendor interface adds. Ours adds none, so every method is
//! one that has no handler.

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use serde_json::json;

/// Why these rows are as they are.
pub const NOOP: &str = "no vendor interface here has methods of its own";

/// `GET /v1/nodes/{ident}/vendor_passthru/methods`.
pub async fn node_methods(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    call.node(&ident).await?;
    Ok(json(200, &json!({})))
}

/// Any method of `/v1/nodes/{ident}/vendor_passthru?method=`.
pub async fn node(Path(ident): Path<String>, call: Call) -> Reply {
    call.node(&ident).await?;
    Err(no_handler(&call))
}

/// `GET /v1/drivers/{name}/vendor_passthru/methods`.
pub async fn driver_methods(Path(name): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    call.app.driver(&name)?;
    Ok(json(200, &json!({})))
}

/// Any method of `/v1/drivers/{name}/vendor_passthru?method=`.
pub async fn driver(Path(name): Path<String>, call: Call) -> Reply {
    call.app.driver(&name)?;
    Err(no_handler(&call))
}

fn no_handler(call: &Call) -> ApiError {
    match call.args.text("method") {
        None => ApiError::invalid("Missing mandatory parameter: method"),
        Some("") => ApiError::invalid("Method not specified"),
        Some(method) => ApiError::invalid(format!("No handler for method {method}")),
    }
}
