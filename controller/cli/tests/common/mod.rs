//! A small server on loopback that answers as Ironic does, and the built `anneal` against it.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

/// Every verb of the provision state machine, in both spellings where there are two.
pub const VERBS: [&str; 17] = [
    "manage",
    "manageable",
    "provide",
    "clean",
    "abort",
    "inspect",
    "deploy",
    "active",
    "rebuild",
    "undeploy",
    "deleted",
    "rescue",
    "unrescue",
    "adopt",
    "service",
    "unhold",
    "override",
];

/// One request as the server saw it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method and path.
    pub line: String,
    /// The microversion asked for.
    pub version: String,
    /// The body; null when there was none.
    pub body: Value,
}

/// What is answered.
pub struct Answer {
    status: u16,
    body: Value,
    retry_after: Option<&'static str>,
}

impl From<(u16, Value)> for Answer {
    fn from((status, body): (u16, Value)) -> Self {
        Self { status, body, retry_after: None }
    }
}

impl Answer {
    /// 202 with `Retry-Request-After`.
    pub fn not_yet(body: Value, retry_after: &'static str) -> Self {
        Self { status: 202, body, retry_after: Some(retry_after) }
    }
}

/// What the server answers to the n-th request (from 0).
type Script = dyn Fn(usize, &Seen) -> Answer + Send + Sync;

/// A server on a free port of loopback, until it is dropped.
pub struct Server {
    /// Its URL.
    pub endpoint: String,
    /// What it was asked.
    pub seen: Arc<Mutex<Vec<Seen>>>,
    // Dropped with the server: stops its task.
    _runtime: tokio::runtime::Runtime,
}

#[derive(Clone)]
struct Shared {
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

async fn answer(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let version = headers["x-openstack-ironic-api-version"].to_str().unwrap().to_owned();
    // What is uploaded is no JSON.
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let seen = Seen { line: format!("{method} {uri}"), version, body };
    let index = {
        let mut all = shared.seen.lock().unwrap();
        all.push(seen.clone());
        all.len() - 1
    };
    let Answer { status, body, retry_after } = (shared.script)(index, &seen);
    let status = StatusCode::from_u16(status).unwrap();
    let max = [("x-openstack-ironic-api-maximum-version", "1.81")];
    let retry = retry_after.map(|seconds| [("retry-request-after", seconds)]);
    let body = if body.is_null() { ().into_response() } else { axum::Json(body).into_response() };
    match retry {
        Some(retry) => (status, max, retry, body).into_response(),
        None => (status, max, body).into_response(),
    }
}

/// Routes that answer by a script, and what they were asked.
pub fn router<A: Into<Answer>>(
    script: impl Fn(usize, &Seen) -> A + Send + Sync + 'static,
) -> (Router, Arc<Mutex<Vec<Seen>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = Arc::new(move |index: usize, seen: &Seen| script(index, seen).into());
    let shared = Shared { script, seen: seen.clone() };
    (Router::new().fallback(answer).with_state(shared), seen)
}

/// A plain HTTP server that answers by a script.
pub fn serve<A: Into<Answer>>(script: impl Fn(usize, &Seen) -> A + Send + Sync + 'static) -> Server {
    let (router, seen) = router(script);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(async move { axum::serve::serve(listener, router).await });
    Server { endpoint, seen, _runtime: runtime }
}

/// Runs the built `anneal` with `input` as its standard input.
pub fn anneal(endpoint: &str, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_anneal"))
        .args(arguments)
        .env_clear()
        .env("ANNEAL_ENDPOINT", endpoint)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments does not read what it is given.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

impl Server {
    /// One that is served on `runtime` already.
    pub fn of(endpoint: String, seen: Arc<Mutex<Vec<Seen>>>, runtime: tokio::runtime::Runtime) -> Self {
        Self { endpoint, seen, _runtime: runtime }
    }

    /// Exit code, standard output and standard error of `anneal`.
    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        self.run_with(arguments, "")
    }

    /// The same with something on standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> (i32, String, String) {
        let output = anneal(&self.endpoint, arguments, input);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    /// What was asked.
    pub fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|seen| seen.line.clone()).collect()
    }

    /// The body of a request.
    pub fn body(&self, index: usize) -> Value {
        self.seen.lock().unwrap()[index].body.clone()
    }
}

/// An error as Ironic words it: JSON inside a string.
pub fn fault(text: &str) -> Value {
    json!({"error_message": json!({"faultcode": "Client", "faultstring": text, "debuginfo": null}).to_string()})
}

/// A node in a provision state, as small as it may be.
pub fn node(state: &str, target: Option<&str>) -> Value {
    json!({"uuid": "u1", "name": "n1", "provision_state": state, "target_provision_state": target,
           "power_state": "power off", "target_power_state": null, "last_error": null, "maintenance": false,
           "clean_step": {}, "driver_internal_info": {}})
}
