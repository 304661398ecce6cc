//! ironic-python-agent's HTTP API, with its texts, so that an Ironic conductor sees no difference.

use crate::commands::{Mode, UnknownCommand};
use crate::executor::{Executor, SubmitError};
use agent_protocol::command::Status;
use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A command carries the whole node, 3 to 10 kB as seen, and a configuration drive three times.
const BODY_BYTES: usize = 32 * 1024 * 1024;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Longest `anneal_command_id`.
const ID_LENGTH: usize = 128;

const DESCRIBED_BY: &str = "https://docs.openstack.org/ironic-python-agent/";

type Pairs = Vec<(String, String)>;

#[derive(Clone)]
struct Context {
    executor: Arc<Executor>,
    scheme: &'static str,
}

/// Method, path, whether the token is asked for, and what is served; each also without `/v1`.
pub const ENDPOINTS: &[(&str, &str, bool, &str)] = &[
    ("GET", "/", false, "served"),
    ("GET", "/v1/", false, "served; `/v1` answers 308"),
    ("GET", "/v1/status", false, "served; `version` is that of anneal-agent"),
    ("GET", "/v1/commands/", true, "served; `/v1/commands` answers 308"),
    ("POST", "/v1/commands/", true, "served, with `wait`; bodies of at most 32 MiB"),
    ("GET", "/v1/commands/{id}", true, "served, with `wait`"),
];

/// The routes, which are those of [`ENDPOINTS`]. `scheme` is `http` or `https` and goes into links.
pub fn router(executor: Arc<Executor>, scheme: &'static str) -> Router {
    let versioned = Router::new()
        .route("/status", get(status))
        .route("/commands", any(redirect))
        .route("/commands/", get(list).post(submit))
        .route("/commands/{id}", get(show));
    Router::new()
        .route("/", get(root))
        .route("/v1", any(redirect))
        .route("/v1/", get(version))
        .nest("/v1", versioned.clone())
        .merge(versioned)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(Context { executor, scheme })
}

/// An error in IPA's form.
struct Fault {
    status: StatusCode,
    text: String,
}

impl Fault {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    fn bad_request(text: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("400 Bad Request: {text}"))
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let faultcode = if self.status.is_server_error() { "Server" } else { "Client" };
        (self.status, Json(json!({ "faultcode": faultcode, "faultstring": self.text }))).into_response()
    }
}

impl From<SubmitError> for Fault {
    fn from(error: SubmitError) -> Self {
        let status = match &error {
            SubmitError::Busy(_) | SubmitError::Reused { .. } => StatusCode::CONFLICT,
            SubmitError::OldEpoch(_) => StatusCode::PRECONDITION_FAILED,
            SubmitError::Unknown(UnknownCommand::Extension(_)) => StatusCode::NOT_FOUND,
            SubmitError::Unknown(_) => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}

fn links(base: &str, path: &str) -> Value {
    json!([
        { "href": format!("{base}{path}"), "rel": "self" },
        { "href": DESCRIBED_BY, "rel": "describedby", "type": "text/html" },
    ])
}

async fn root(State(context): State<Context>, headers: HeaderMap) -> Json<Value> {
    let v1 = json!({ "id": "v1", "links": links(&context.base(&headers), "/v1") });
    Json(json!({
        "name": "OpenStack Ironic Python Agent API",
        "description": "Ironic Python Agent is a provisioning agent for OpenStack Ironic",
        "versions": [v1],
        "default_version": v1,
    }))
}

async fn version(State(context): State<Context>, headers: HeaderMap) -> Json<Value> {
    let base = context.base(&headers);
    let pair = |name: &str| {
        json!([
            { "href": format!("{base}/v1/{name}"), "rel": "self" },
            { "href": format!("{base}/{name}"), "rel": "bookmark" },
        ])
    };
    Json(json!({
        "commands": pair("commands"),
        "status": pair("status"),
        "media_types": [
            { "base": "application/json", "type": "application/vnd.openstack.ironic-python-agent.v1+json" },
        ],
        "id": "v1",
        "links": links(&base, "/v1"),
    }))
}

async fn status(State(context): State<Context>) -> Json<Value> {
    let started_at = context.executor.state().identity().started_at;
    Json(json!({ "started_at": started_at, "version": crate::VERSION }))
}

async fn list(State(context): State<Context>, Query(query): Query<Pairs>) -> Result<Response, Fault> {
    context.authorize(&query)?;
    Ok(Json(context.executor.state().commands()).into_response())
}

async fn show(
    State(context): State<Context>,
    Path(id): Path<String>,
    Query(query): Query<Pairs>,
) -> Result<Response, Fault> {
    context.authorize(&query)?;
    let found =
        if wait(&query) { context.executor.ended(&id).await } else { context.executor.state().command(&id) };
    match found {
        Some(command) => Ok(Json(command).into_response()),
        None => Err(Fault::new(
            StatusCode::NOT_FOUND,
            format!("Not found: Command Result with id {id} not found."),
        )),
    }
}

async fn submit(
    State(context): State<Context>,
    Query(query): Query<Pairs>,
    body: Body,
) -> Result<Response, Fault> {
    context.authorize(&query)?;
    let Parsed { name, params, id, epoch } = parse(&read(body).await?)?;
    let (command, mode) = context.executor.submit(&name, params, id.as_deref(), epoch)?;
    if command.command_status == Status::Running && (mode == Mode::Sync || wait(&query)) {
        let id = command.id.clone();
        return Ok(Json(context.executor.ended(&id).await.unwrap_or(command)).into_response());
    }
    Ok(Json(command).into_response())
}

async fn read(body: Body) -> Result<Vec<u8>, Fault> {
    match tokio::time::timeout(BODY_TIME, to_bytes(body, BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        // Axum does not distinguish a body that is too long from one that broke off; in both no answer may be read.
        Ok(Err(_)) => Err(Fault::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("413 Request Entity Too Large: at most {BODY_BYTES} bytes are taken."),
        )),
        Err(_) => Err(Fault::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("408 Request Timeout: the body did not arrive within {} s.", BODY_TIME.as_secs()),
        )),
    }
}

/// A command as it was sent.
struct Parsed {
    name: String,
    params: Map<String, Value>,
    id: Option<String>,
    epoch: Option<u64>,
}

fn parse(body: &[u8]) -> Result<Parsed, Fault> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Fault::bad_request(format_args!("Failed to decode JSON object: {error}")))?;
    let (Some(name), Some(params)) =
        (body.get("name").and_then(Value::as_str), body.get("params").and_then(Value::as_object))
    else {
        return Err(Fault::bad_request("Missing or invalid name or params"));
    };
    let id = match body.get("anneal_command_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) if is_id(id) => Some(id.clone()),
        Some(other) => {
            return Err(Fault::bad_request(format_args!(
                "Invalid anneal_command_id {other}: 1 to {ID_LENGTH} letters, digits, '-', '_' and '.'"
            )));
        }
    };
    let epoch = match body.get("anneal_epoch") {
        None | Some(Value::Null) => None,
        Some(epoch) => Some(epoch.as_u64().ok_or_else(|| {
            Fault::bad_request(format_args!("Invalid anneal_epoch {epoch}: an integer from 0 on"))
        })?),
    };
    Ok(Parsed { name: name.to_owned(), params: params.clone(), id, epoch })
}

fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !id.is_empty() && id.len() <= ID_LENGTH && id.bytes().all(fits)
}

fn parameter<'a>(query: &'a Pairs, name: &str) -> Option<&'a str> {
    query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn wait(query: &Pairs) -> bool {
    parameter(query, "wait").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

async fn redirect(
    State(context): State<Context>,
    headers: HeaderMap,
    OriginalUri(uri): OriginalUri,
) -> Response {
    let mut location = format!("{}{}/", context.base(&headers), uri.path());
    if let Some(query) = uri.query() {
        location = format!("{location}?{query}");
    }
    let shown = location.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let page = format!(
        "<!doctype html>\n<html lang=en>\n<title>Redirecting...</title>\n<h1>Redirecting...</h1>\n\
         <p>You should be redirected automatically to the target URL: <a href=\"{shown}\">{shown}</a>. \
         If not, click the link.\n"
    );
    let mut response =
        (StatusCode::PERMANENT_REDIRECT, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page)
            .into_response();
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

async fn not_found(_: Uri) -> Fault {
    Fault::new(
        StatusCode::NOT_FOUND,
        "404 Not Found: The requested URL was not found on the server. If you entered the URL manually \
         please check your spelling and try again.",
    )
}

async fn method_not_allowed() -> Fault {
    Fault::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "405 Method Not Allowed: The method is not allowed for the requested URL.",
    )
}

impl Context {
    /// An agent without a token rejects every request.
    fn authorize(&self, query: &Pairs) -> Result<(), Fault> {
        let offered = parameter(query, "agent_token").unwrap_or_default();
        match self.executor.state().token() {
            Some(token) if token.matches(offered) => Ok(()),
            _ => Err(Fault::new(StatusCode::UNAUTHORIZED, "401 Unauthorized: Token invalid.")),
        }
    }

    fn base(&self, headers: &HeaderMap) -> String {
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .filter(|host| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b)))
            .unwrap_or("localhost");
        format!("{}://{host}", self.scheme)
    }
}
