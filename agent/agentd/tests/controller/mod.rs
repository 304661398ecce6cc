//! The smallest controller an agent can talk to, over real TLS, and its way to the agent.

use agentd::http::{ApiUrl, Client};
use agentd::server;
use agentd::tls::{self, Trust};
use axum::extract::{RawQuery, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use hyper::Method;
use pinned_tls::Pin;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The first token it gives.
pub const TOKEN: &str = "yYLAPgCuO2saMMTy9PX_uZiebhASd9v7x3IPqqMlQ_I";

/// Another one.
pub fn other_token() -> String {
    TOKEN.chars().rev().collect()
}

/// How it behaves.
#[derive(Clone, Default)]
pub struct Script {
    /// Offers the extension.
    pub offer: bool,
    /// Tokens of the lookups in turn; the last one again and again.
    pub tokens: Vec<String>,
    /// How many heartbeats it refuses with 400.
    pub refuse: usize,
}

/// The controller.
pub struct Controller {
    /// Base URL.
    pub url: String,
    /// Fingerprint of its certificate.
    pub pin: Pin,
    state: Arc<Inner>,
    heartbeats: mpsc::UnboundedReceiver<Value>,
    _stop: DropGuard,
}

struct Inner {
    script: Script,
    lookups: Mutex<Vec<String>>,
    requests: AtomicUsize,
    beats: AtomicUsize,
    sender: mpsc::UnboundedSender<Value>,
}

impl Controller {
    /// Listen on a free port of loopback.
    pub async fn start(script: Script) -> Self {
        let own = tls::own_certificate(IpAddr::V4(Ipv4Addr::LOCALHOST), "controller").expect("certificate");
        let pin = Pin::of_pem(&own.pem).expect("certificate");
        let (sender, heartbeats) = mpsc::unbounded_channel();
        let state = Arc::new(Inner {
            script,
            lookups: Mutex::default(),
            requests: AtomicUsize::new(0),
            beats: AtomicUsize::new(0),
            sender,
        });
        let router = Router::new()
            .route("/", get(async || Json(json!({ "default_version": { "id": "v1", "version": "1.115" } }))))
            .route("/v1/lookup", get(lookup))
            .route("/v1/heartbeat/{uuid}", post(heartbeat))
            .layer(middleware::from_fn_with_state(state.clone(), count))
            .with_state(state.clone());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listen");
        let url = format!("https://{}", listener.local_addr().expect("address"));
        let stop = CancellationToken::new();
        tokio::spawn(server::run(listener, Some(own.server), router, stop.clone()));
        Self { url, pin, state, heartbeats, _stop: stop.drop_guard() }
    }

    /// The next heartbeat.
    pub async fn heartbeat(&mut self) -> Value {
        self.heartbeat_where(|_| true).await
    }

    /// The next heartbeat like this.
    pub async fn heartbeat_where(&mut self, like: impl Fn(&Value) -> bool) -> Value {
        let next = async {
            loop {
                let beat = self.heartbeats.recv().await.expect("controller lives");
                if like(&beat) {
                    return beat;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), next).await.expect("a heartbeat within 30 s")
    }

    /// Queries of the lookups so far.
    pub fn lookups(&self) -> Vec<String> {
        self.state.lookups.lock().expect("lookups").clone()
    }

    /// HTTP requests so far.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }
}

async fn count(State(state): State<Arc<Inner>>, request: Request, next: Next) -> Response {
    state.requests.fetch_add(1, Ordering::SeqCst);
    next.run(request).await
}

async fn lookup(State(state): State<Arc<Inner>>, RawQuery(query): RawQuery) -> Json<Value> {
    let mut lookups = state.lookups.lock().expect("lookups");
    let tokens = &state.script.tokens;
    let token = tokens.get(lookups.len()).or(tokens.last()).map_or(TOKEN, String::as_str);
    let mut config = json!({ "heartbeat_timeout": 300, "agent_token": token, "agent_token_required": true });
    if state.script.offer {
        config["anneal"] = json!({ "extension": 1 });
    }
    lookups.push(query.unwrap_or_default());
    Json(
        json!({ "node": { "uuid": "62f4f467-864a-40c0-9b53-0820d3eb102f", "properties": {} }, "config": config }),
    )
}

async fn heartbeat(State(state): State<Arc<Inner>>, Json(beat): Json<Value>) -> StatusCode {
    let number = state.beats.fetch_add(1, Ordering::SeqCst);
    state.sender.send(beat).expect("test listens");
    if number < state.script.refuse { StatusCode::BAD_REQUEST } else { StatusCode::ACCEPTED }
}

/// The agent as the controller sees it: reached only over the certificate that its heartbeat brought.
pub struct Remote {
    client: Client,
    url: ApiUrl,
    token: String,
}

impl Remote {
    /// From a heartbeat.
    pub fn of(heartbeat: &Value) -> Self {
        let text = |key: &str| heartbeat[key].as_str().expect(key).to_owned();
        let trust = Trust::Pin(Pin::of_pem(&text("agent_verify_ca")).expect("certificate"));
        Self {
            client: Client::new(Some(&trust), false).expect("client"),
            url: text("callback_url").parse().expect("callback URL"),
            token: text("agent_token"),
        }
    }

    /// POST a command.
    pub async fn post(&self, command: &Value, wait: bool) -> (u16, Value) {
        let path = format!("/v1/commands/?wait={wait}&agent_token={}", self.token);
        self.send(Method::POST, &path, command.to_string().into_bytes()).await
    }

    /// GET a command.
    pub async fn get(&self, id: &str, wait: bool) -> (u16, Value) {
        let path = format!("/v1/commands/{id}?wait={wait}&agent_token={}", self.token);
        self.send(Method::GET, &path, Vec::new()).await
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> (u16, Value) {
        let reply = self.client.send(method, &self.url, path, None, body).await.expect("the agent answers");
        (reply.status, serde_json::from_slice(&reply.body).expect("JSON"))
    }
}
