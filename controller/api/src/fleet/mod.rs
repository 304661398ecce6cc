//! `/v1/anneal/fleet`: all nodes at a glance, and those that need someone. An extension of Anneal's, so no microversion guards
//! it. It costs reads of indexes, and the few nodes that it names.

mod counts;
mod problems;

use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::node_feed::Reading;
use crate::nodes::list;
use crate::server_sent::{self, Subject};
use async_trait::async_trait;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Endpoints of the fleet.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/fleet" 1 "baremetal:node:list_all", "counts of nodes, and those that need someone" => show;
        GET "/v1/anneal/nodes" 1 "baremetal:node:list_all", "nodes, a page of them, found by a text" => list::search;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

/// `GET …`: as JSON, or as a stream.
async fn show(headers: HeaderMap, call: Call) -> Reply {
    call.args.only(&[])?;
    let listen = |call: &Call| call.app.nodes.listen(&call.unscoped_app.store, None);
    server_sent::show(&headers, call, Fleet, &listen).await
}

/// The fleet, as far as the caller sees it.
struct Fleet;

#[async_trait]
impl Subject for Fleet {
    const EVENT: &'static str = "fleet";
    const GAP: Duration = Duration::from_secs(2);

    async fn read(&self, call: &Call) -> Result<Option<Value>, ApiError> {
        read(call).await.map(Some)
    }

    async fn read_for_stream(&self, call: &Call, since: Instant) -> Result<Option<Reading>, ApiError> {
        call.app.nodes.fleet(call.identity.grant.as_ref(), since, read(call)).await.map(Some)
    }
}

async fn read(call: &Call) -> Result<Value, ApiError> {
    let counts = counts::read(call).await?;
    let needs = problems::read(call, &counts).await?;
    Ok(json!({
        "nodes": counts.nodes,
        "maintenance": counts.maintenance,
        "retired": counts.retired,
        "counts": counts.view,
        "others": counts.others,
        "needs": needs,
    }))
}
