//! `GET /metrics`: what this controller measures, in Prometheus' text format.

use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::metrics_text::MetricsText;
use axum::http::header;
use axum::response::IntoResponse;

/// The endpoint of metrics.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/metrics" 1 "anneal:metrics:get", "what this controller measures, for Prometheus" => read;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

async fn read(call: Call) -> Reply {
    let text = call.app.metrics.text();
    let text = text.ok_or_else(|| ApiError::client(404, "This controller measures nothing."))?;
    Ok(([(header::CONTENT_TYPE, MetricsText::MEDIA_TYPE)], text).into_response())
}
