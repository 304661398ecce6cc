//! A recorded Redfish tree as a BMC: reads come from the recording, and changes are made to it in memory, with no more than the
//! recording itself allows.
//!
//! ```text
//!   directory of index.json files ── Tree::load ──▶ Tree ◀── GET ── client
//!     (DMTF's Redfish-Mockup-Creator)                ▲ ◀── PATCH ── patch.rs: properties, values, types, ETags
//!                                                    └ ◀── POST ─── actions.rs: reset, media
//! ```
//!
//! What is written to a settings object is put in force by the next boot of its system, as the specification has it (DSP0266,
//! "Settings resource"), and every boot is noted with what it was made from.

mod actions;
mod bios;
mod patch;
mod tree;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

pub use bios::Change;
pub use tree::{Boot, Tree};

/// Longest body of a request.
const LONGEST_BODY: usize = 1 << 20;

/// A running service of one tree. Dropping it stops it.
#[derive(Debug)]
pub struct RecordedBmc {
    address: SocketAddr,
    tree: Arc<Mutex<Tree>>,
    _server: AbortOnDropHandle<()>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    status: StatusCode,
    /// Of the base message registry (DSP0268).
    key: &'static str,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, key: &'static str, message: impl Into<String>) -> Self {
        Self { status, key, message: message.into() }
    }

    fn bad(key: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, key, message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let id = format!("Base.1.8.{}", self.key);
        let info = json!([{"MessageId": id, "Message": self.message, "MessageSeverity": "Warning"}]);
        let body = json!({"error": {"code": id, "message": self.message, "@Message.ExtendedInfo": info}});
        (self.status, Json(body)).into_response()
    }
}

impl RecordedBmc {
    /// Serves a tree on a free port of loopback.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(tree: Tree) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no free port")?;
        let address = listener.local_addr()?;
        let tree = Arc::new(Mutex::new(tree));
        let app = Router::new().fallback(answer).with_state(Arc::clone(&tree));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!(%error, "recorded BMC stopped");
            }
        });
        Ok(Self { address, tree, _server: AbortOnDropHandle::new(server) })
    }

    /// `http://ADDRESS:PORT`, Ironic's `redfish_address`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The tree as it is now.
    pub fn tree(&self) -> MutexGuard<'_, Tree> {
        locked(&self.tree)
    }
}

fn locked(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(State(tree): State<Arc<Mutex<Tree>>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, LONGEST_BODY).await else {
        return Refusal::bad("MalformedJSON", "the body is too long").into_response();
    };
    let mut tree = locked(&tree);
    match head.method {
        Method::GET => show(&tree, &head.uri),
        Method::PATCH => changed(&mut tree, &head.uri, &head.headers, &body).into_response(),
        Method::POST => posted(&mut tree, &head.uri, &body),
        // Sessions are closed by it.
        Method::DELETE => StatusCode::NO_CONTENT.into_response(),
        _ => Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "OperationNotAllowed", "no such method")
            .into_response(),
    }
}

fn missing(uri: &Uri) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "ResourceMissingAtURI", format!("there is no {}", uri.path()))
}

fn show(tree: &Tree, uri: &Uri) -> Response {
    if let Some((status, body)) = tree.other_answer(uri.path()) {
        return (status, body.to_owned()).into_response();
    }
    match tree.get(uri.path()) {
        Some(resource) => shown(resource),
        None => missing(uri).into_response(),
    }
}

fn shown(resource: &Value) -> Response {
    let mut response = Json(resource).into_response();
    let tag = resource["@odata.etag"].as_str().and_then(|tag| HeaderValue::from_str(tag).ok());
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

fn changed(tree: &mut Tree, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Result<Response, Refusal> {
    let body = object(body)?;
    if tree.get(uri.path()).is_none() {
        return Err(missing(uri));
    }
    let tag = headers.get(header::IF_MATCH).and_then(|tag| tag.to_str().ok());
    patch::apply(tree, uri.path(), tag, &body)?;
    Ok(tree.get(uri.path()).map_or_else(|| missing(uri).into_response(), shown))
}

fn posted(tree: &mut Tree, uri: &Uri, body: &Bytes) -> Response {
    if tree.is_sessions(uri.path()) {
        let location = format!("{}/1", uri.path());
        let session = json!({"@odata.id": location, "Id": "1", "Name": "Session"});
        let headers = [("x-auth-token", "recorded".to_owned()), ("location", location)];
        return (StatusCode::CREATED, headers, Json(session)).into_response();
    }
    let acted = object(body).and_then(|body| actions::act(tree, uri.path(), &body));
    match acted {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

fn object(body: &Bytes) -> Result<serde_json::Map<String, Value>, Refusal> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Refusal::bad("MalformedJSON", "the body is no JSON object")),
    }
}
