//! The text of the metrics, which another crate writes.

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

    /// The text; `None` where nothing is measured.
    pub fn text(&self) -> Option<String> {
        self.0.as_ref().map(|source| source())
    }
}

impl fmt::Debug for MetricsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MetricsText").field(&self.0.is_some()).finish()
    }
}
