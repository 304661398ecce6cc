//! The smallest controller an agent can talk to, over real TLS.

use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use agentd::server;
use agentd::tls;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use pinned_tls::Pin;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The node that it knows.
pub const UUID: &str = "62f4f467-864a-40c0-9b53-0820d3eb102f";
/// The first token it gives.
pub const TOKEN: &str = "yYLAPgCuO2saMMTy9PX_uZiebhASd9v7x3IPqqMlQ_I";

/// How it behaves.
#[derive(Clone, Default)]
pub struct Script {
    /// Offers the extension.
    pub offer: bool,
    /// Tokens of the lookups in turn; the last one again and again.
    pub tokens: Vec<String>,
    /// How many heartbeats it refuses with 400.
    pub refuse: usize,
    /// What it answers to inspections in turn; 202 when there is nothing left.
    pub inspections: Vec<u16>,
    /// Bundles: what the lookup says, and what is then sent, in turn for each time that it is asked for.
    pub bundles: Vec<(Value, Vec<Vec<u8>>)>,
    /// What it answers to the lookups of a machine that no node is known for, in turn; the last one again and again.
    pub verdicts: Vec<Value>,
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
    lookups: watch::Sender<Vec<String>>,
    inspected: Mutex<Vec<Value>>,
    fetched: Mutex<BTreeMap<String, usize>>,
    requests: Mutex<Vec<String>>,
    beats: AtomicUsize,
    sender: mpsc::UnboundedSender<Value>,
}

impl Controller {
    /// Listen on a free port of loopback.
    pub async fn start(script: Script) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), script).await
    }

    /// Listen on a free port of this address.
    pub async fn start_at(address: IpAddr, script: Script) -> Self {
        let own = tls::own_certificate(address, "controller").expect("certificate");
        let pin = Pin::of_pem(&own.pem).expect("certificate");
        let (sender, heartbeats) = mpsc::unbounded_channel();
        let state = Arc::new(Inner {
            script,
            lookups: watch::Sender::default(),
            inspected: Mutex::default(),
            fetched: Mutex::default(),
            requests: Mutex::default(),
            beats: AtomicUsize::new(0),
            sender,
        });
        let router = Router::new()
            .route("/", get(async || Json(json!({ "default_version": { "id": "v1", "version": "1.115" } }))))
            .route("/v1/lookup", get(lookup))
            .route("/v1/heartbeat/{uuid}", post(heartbeat))
            .route("/v1/continue_inspection", post(inspection))
            .route("/v1/anneal/bundles/{digest}/file", get(bundle))
            .layer(middleware::from_fn_with_state(state.clone(), count))
            .with_state(state.clone());
        let listener = TcpListener::bind((address, 0)).await.expect("listen");
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
        self.state.lookups.borrow().clone()
    }

    /// Wait for the first lookup.
    pub async fn looked_up(&self) {
        let mut lookups = self.state.lookups.subscribe();
        let first = lookups.wait_for(|lookups| !lookups.is_empty());
        tokio::time::timeout(Duration::from_secs(30), first)
            .await
            .expect("a lookup within 30 s")
            .expect("it lives");
    }

    /// Bodies of the inspections so far.
    pub fn inspected(&self) -> Vec<Value> {
        self.state.inspected.lock().expect("inspected").clone()
    }

    /// HTTP requests so far, `GET /v1/lookup`.
    pub fn requests(&self) -> Vec<String> {
        self.state.requests.lock().expect("requests").clone()
    }
}

async fn count(State(state): State<Arc<Inner>>, request: Request, next: Next) -> Response {
    let line = format!("{} {}", request.method(), request.uri().path());
    state.requests.lock().expect("requests").push(line);
    next.run(request).await
}

async fn lookup(State(state): State<Arc<Inner>>, RawQuery(query): RawQuery) -> Json<Value> {
    let mut before = 0;
    state.lookups.send_modify(|lookups| {
        before = lookups.len();
        lookups.push(query.unwrap_or_default());
    });
    let verdicts = &state.script.verdicts;
    if let Some(verdict) = verdicts.get(before).or(verdicts.last()) {
        return Json(json!({ "anneal_discovery": verdict }));
    }
    let tokens = &state.script.tokens;
    let token = tokens.get(before).or(tokens.last()).map_or(TOKEN, String::as_str);
    let mut config = json!({ "heartbeat_timeout": 300, "agent_token": token, "agent_token_required": true });
    if state.script.offer {
        config["anneal"] = json!({ "extension": 1 });
    }
    if !state.script.bundles.is_empty() {
        config["anneal_bundles"] = state.script.bundles.iter().map(|(offer, _)| offer.clone()).collect();
    }
    Json(json!({ "node": { "uuid": UUID, "properties": {} }, "config": config }))
}

async fn bundle(State(state): State<Arc<Inner>>, Path(digest): Path<String>, headers: HeaderMap) -> Response {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    let known = state.script.bundles.iter().find(|(offer, _)| offer["digest"] == digest);
    let mut fetched = state.fetched.lock().expect("fetched");
    let number = fetched.entry(digest).or_default();
    *number += 1;
    match known.and_then(|(_, answers)| answers.get(*number - 1).or(answers.last())) {
        _ if !is(NODE_HEADER, UUID) || !is(TOKEN_HEADER, TOKEN) => StatusCode::FORBIDDEN.into_response(),
        Some(bytes) => bytes.clone().into_response(),
        None => (StatusCode::NOT_FOUND, "no such bundle").into_response(),
    }
}

async fn inspection(State(state): State<Arc<Inner>>, Json(body): Json<Value>) -> (StatusCode, Json<Value>) {
    let mut inspected = state.inspected.lock().expect("inspected");
    let status = state.script.inspections.get(inspected.len()).copied().unwrap_or(202);
    inspected.push(body);
    (StatusCode::from_u16(status).expect("status"), Json(json!({ "uuid": UUID })))
}

async fn heartbeat(State(state): State<Arc<Inner>>, Json(beat): Json<Value>) -> StatusCode {
    let number = state.beats.fetch_add(1, Ordering::SeqCst);
    state.sender.send(beat).expect("test listens");
    if number < state.script.refuse { StatusCode::BAD_REQUEST } else { StatusCode::ACCEPTED }
}
