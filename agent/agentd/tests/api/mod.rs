//! The agent's API, asked inside this process.

use agentd::api;
use agentd::executor::Executor;
use agentd::token::Token;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

/// The token that [`router`] gives the agent.
pub const TOKEN: &str = "tok-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// The API of an agent that has its token.
pub fn router(agent: Arc<Executor>) -> Router {
    agent.state().set_token(Token::new(TOKEN).expect("token"));
    api::router(agent, "http")
}

/// Status, body and redirect of the answer; a body that is no JSON is a string.
pub async fn ask(
    router: &Router,
    method: &str,
    uri: &str,
    body: impl Into<Body>,
) -> (u16, Value, Option<String>) {
    let request = Request::builder().method(method).uri(uri).header(header::HOST, "127.0.0.1:9990");
    let request = request.body(body.into()).expect("request");
    let response = router.clone().oneshot(request).await.expect("infallible");
    let status = response.status().as_u16();
    let location = response.headers().get(header::LOCATION);
    let location = location.map(|value| value.to_str().expect("text").to_owned());
    let body = to_bytes(response.into_body(), usize::MAX).await.expect("body");
    let text = String::from_utf8(body.to_vec()).expect("utf-8");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)), location)
}
