//! One log line for each request of an operator that can change something: who, from where, which request, what.

use axum::http::Method;
use model::RequestSender;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Most characters of what a body asks for.
const MOST: usize = 500;

/// What the body of a request asks for: noted by the handler's [`crate::call::Call`], which reads it.
#[derive(Debug, Clone, Default)]
pub struct RequestSummary(Arc<OnceLock<String>>);

impl RequestSummary {
    /// Note it.
    pub fn note(&self, body: &[u8]) {
        self.0.get_or_init(|| summary(body));
    }

    /// What was noted.
    pub fn text(&self) -> &str {
        self.0.get().map_or("", String::as_str)
    }
}

/// Whether requests of this method can change something.
pub fn can_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Log a request that was handled. The span of the request has its id.
pub fn log(
    sender: &RequestSender,
    request_id: &str,
    method: &Method,
    path: &str,
    asked: &RequestSummary,
    status: u16,
) {
    tracing::info!(
        target: "audit",
        user = sender.user.as_deref(),
        project = sender.project.as_deref(),
        address = sender.address.as_deref(),
        request_id,
        status,
        asked = ?asked.text(),
        "{method} {path}"
    );
}

/// The operations of a patch, or the fields of a body with the value of `target`: no other value, since it may be a
/// secret, and no unbounded text.
fn summary(body: &[u8]) -> String {
    let text = match serde_json::from_slice(body) {
        Ok(Value::Array(items)) => {
            let field = |item: &Value, name| item.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
            items.iter().map(|item| format!("{} {}", field(item, "op"), field(item, "path"))).collect()
        }
        Ok(Value::Object(fields)) => {
            let shown = |(name, value): (&String, &Value)| match (name.as_str(), value.as_str()) {
                ("target", Some(target)) => format!("target={target}"),
                _ => name.clone(),
            };
            fields.iter().map(shown).collect()
        }
        _ => Vec::new(),
    };
    text.join(", ").chars().take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_summary_says_what_is_asked_for_and_no_value_that_may_be_secret() {
        let of = |body: Value| summary(body.to_string().as_bytes());
        let rescue = of(json!({"target": "rescue", "rescue_password": "hunter2"}));
        assert_eq!(rescue, "rescue_password, target=rescue");
        let patch = json!([{"op": "add", "path": "/driver_info/redfish_password", "value": "hunter2"},
            {"op": "remove", "path": "/name"}, 7]);
        assert_eq!(of(patch), "add /driver_info/redfish_password, remove /name, ? ?");
        assert_eq!(of(json!({"target": {"password": "hunter2"}})), "target");
        assert_eq!(of(json!({"x".repeat(9000): 1})).len(), MOST);
        assert_eq!(summary(b"hunter2"), "");
    }
}
