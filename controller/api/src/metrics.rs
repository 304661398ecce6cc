//! `GET /metrics`: what this controller measures, in Prometheus' text format.

use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use axum::http::header;
use axum::response::IntoResponse;
use std::fmt;
use std::sync::Arc;

/// What is measured, as text when it is asked for; the default measures nothing.
#[derive(Clone, Default)]
pub struct MetricsText(Option<Source>);

/// Writes the text.
type Source = Arc<dyn Fn() -> String + Send + Sync>;

impl MetricsText {
    /// The media type of the text.
    pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// The text that `source` writes.
    pub fn of(source: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(source)))
    }
}

impl MetricsText {
    /// The text; empty where nothing is measured.
    pub fn text(&self) -> String {
        self.0.as_ref().map(|source| source()).unwrap_or_default()
    }
}

impl fmt::Debug for MetricsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MetricsText").field(&self.0.is_some()).finish()
    }
}

/// The endpoint of metrics.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/metrics" 1 "anneal:metrics:get", "what this controller measures, for Prometheus" => read;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

async fn read(call: Call) -> Reply {
    let source = call.app.metrics.0.as_ref();
    let source = source.ok_or_else(|| ApiError::client(404, "This controller measures nothing."))?;
    Ok(([(header::CONTENT_TYPE, MetricsText::MEDIA_TYPE)], source()).into_response())
}
