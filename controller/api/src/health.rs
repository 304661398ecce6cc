//! `GET /healthcheck`: whether this controller can do its work, for load balancers and monitoring.

use crate::call::{Call, json};
use crate::endpoint::{Endpoint, OPEN, rows};
use crate::error::Reply;
use axum::Extension;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A result counts for this long, so that no number of requests makes more writes than one in this time.
const VALID: Duration = Duration::from_secs(1);
/// A write that takes longer counts as failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last result, and when it was found.
type LastResult = Arc<Mutex<Option<(Instant, Result<(), &'static str>)>>>;

/// Endpoints of monitoring.
pub fn endpoints() -> Vec<Endpoint> {
    let last = LastResult::default();
    rows![
        GET "/v1/healthcheck" 1 OPEN, "whether the store can be written" => ready;
        GET "/v1/healthcheck/alive" 1 OPEN, "whether the process answers" => alive;
    ]
    .into_iter()
    .map(|endpoint| endpoint.own().map(|handler| handler.layer(Extension(last.clone()))))
    .collect()
}

/// `GET /healthcheck/alive`: 200.
pub async fn alive(_call: Call) -> Reply {
    Ok(json(200, &json!({"alive": true})))
}

/// `GET /healthcheck`: 200 if a write to the store reached the disk within the last second, else 503 with the reason. The
/// caller is unknown: the log has the details.
pub async fn ready(Extension(last): Extension<LastResult>, call: Call) -> Reply {
    let mut last = last.lock().await;
    let known = last.filter(|(at, _)| at.elapsed() < VALID).map(|(_, result)| result);
    let result = match known {
        Some(result) => result,
        None => {
            let result = check(&call).await;
            *last = Some((Instant::now(), result));
            result
        }
    };
    Ok(match result {
        Ok(()) => json(200, &json!({"alive": true, "ready": true})),
        Err(reason) => json(503, &json!({"alive": true, "ready": false, "reason": reason})),
    })
}

async fn check(call: &Call) -> Result<(), &'static str> {
    match tokio::time::timeout(PATIENCE, call.unscoped_app.store.check_writable()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::error!(error = %error.chain(), "health: the store cannot be written");
            Err("the store cannot be written; the log of the controller says why")
        }
        Err(_) => {
            tracing::error!("health: a write to the store takes longer than {PATIENCE:?}");
            Err("a write to the store takes too long")
        }
    }
}
