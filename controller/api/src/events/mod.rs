//! `GET /v1/anneal/events`: what happened to all nodes, in the order in which it was stored, as pages or as a stream. An extension
//! of Anneal's, so no microversion guards it.
//!
//! ```text
//!  store.events(cursor) ─▶ filter (rights, node, type) ─▶ view ─▶ a page of JSON
//!        ▲                                                 └────▶ stream: server-sent events
//!  bell ─▶ feed: one look for all streams at whether there are new events
//! ```

pub mod feed;
mod filter;
mod stream;
pub(crate) mod view;

use crate::call::{Call, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::server_sent;
use axum::http::HeaderMap;
use filter::Filter;
use serde_json::{Value, json};
use store::EventCursor;

/// The header by which a browser goes on with a stream that broke off.
const LAST_EVENT_ID: &str = "last-event-id";

/// The endpoint of events.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/events" 1 "anneal:event:list_all", "what happened to all nodes, as pages or as a stream" => list;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

/// `GET …?after=CURSOR&limit=N&node=IDENT&type=TYPE,…`.
async fn list(headers: HeaderMap, call: Call) -> Reply {
    call.args.only(&["after", "limit", "node", "type"])?;
    let limit = limit(&call)?;
    let filter = Filter::of(&call).await?;
    let after = begin(&call, &headers).await?;
    if server_sent::is_wanted(&headers) {
        return stream::answer(call, filter, after).await;
    }
    let page = call.app.store.events(after, limit).await?;
    let shown = page.events.iter().filter(|(_, event)| filter.lets_pass(&call, event));
    let events: Vec<Value> = shown.map(|(cursor, event)| view::view(*cursor, event)).collect();
    Ok(json(200, &json!({"events": events, "next": page.next.to_string(), "more": page.more})))
}

/// Most events that are looked at for one page.
fn limit(call: &Call) -> Result<usize, ApiError> {
    let most = call.app.settings.max_limit;
    match call.args.integer("limit")? {
        None => Ok(most),
        Some(limit) => match usize::try_from(limit) {
            Ok(limit) if limit > 0 => Ok(limit.min(most)),
            _ => Err(ApiError::invalid("Limit must be positive")),
        },
    }
}

/// Where the answer begins; `None`: at the oldest event.
async fn begin(call: &Call, headers: &HeaderMap) -> Result<Option<EventCursor>, ApiError> {
    let last = headers.get(LAST_EVENT_ID).filter(|_| server_sent::is_wanted(headers));
    let text = match last {
        Some(last) => Some(last.to_str().unwrap_or_default()),
        None => call.args.text("after"),
    };
    match text {
        None | Some("") => Ok(None),
        Some("latest") => Ok(Some(call.app.store.newest_event().await?)),
        Some(text) => match EventCursor::parse(text) {
            Some(cursor) => Ok(Some(cursor)),
            None => Err(ApiError::invalid(format!("Expected a cursor for after: {text}"))),
        },
    }
}
