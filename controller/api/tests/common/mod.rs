//! The API in one process, with drivers that record their requests.
#![allow(dead_code, missing_docs, reason = "each test uses a part of it")]

pub mod drivers;
pub mod parts;
pub mod test_store;

use api::auth::Sessions;
use api::{App, Auth, BundleStore, EventFeed, Settings};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use drivers::KeptDrivers;
use model::{Cursor, Node, ProvisionState, Resource, ResourceKind, Run, RunKind, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use store::{Clock, Members, ResourceWrite, Store};
use test_store::{Place, StoreKind};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use uuid::Uuid;

/// A clock that moves a millisecond with each look.
pub struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1_000, Ordering::SeqCst))
    }
}

pub struct Api {
    pub store: Arc<dyn Store>,
    pub router: Router,
    pub drivers: Arc<KeptDrivers>,
    /// Where bundles are kept.
    pub bundles: tempfile::TempDir,
    pub members: Members,
    /// What the router was made of.
    pub app: App,
    /// Of the store, and after it.
    _place: Place,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Answer {
    /// `faultstring` (or `description`) of an error, decoded twice.
    pub fn fault(&self) -> String {
        let inner = self.body["error_message"].as_str().expect("an error body");
        let inner: Value = serde_json::from_str(inner).expect("JSON in JSON");
        let text =
            if inner.get("faultstring").is_some() { &inner["faultstring"] } else { &inner["description"] };
        text.as_str().expect("a text").to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

impl Api {
    pub fn new() -> Self {
        Self::with(Settings { require_agent_tls: false, ..Settings::default() })
    }

    pub fn with(settings: Settings) -> Self {
        Self::trusting(settings, bundle::Trust::Keys { keys: Vec::new(), unsigned: true })
    }

    /// One that takes bundles of at most 2 MiB that `trust` accepts.
    pub fn trusting(settings: Settings, trust: bundle::Trust) -> Self {
        Self::made(settings, trust, Auth::NoAuth)
    }

    /// One that lets in whom `auth` lets in.
    pub fn guarded(auth: Auth) -> Self {
        let settings = Settings { require_agent_tls: false, ..Settings::default() };
        Self::made(settings, bundle::Trust::Keys { keys: Vec::new(), unsigned: true }, auth)
    }

    fn made(settings: Settings, trust: bundle::Trust, auth: Auth) -> Self {
        // Few tests are about boots that the conductor ordered.
        let settings = Settings { lookup_without_nonce: true, ..settings };
        Self::built(None, settings, trust, auth, images::ImageStore::default())
    }

    /// One with so many streams of events at most, which end with the token.
    pub fn with_streams(streams: usize) -> (Self, CancellationToken) {
        let stop = CancellationToken::new();
        let feed = EventFeed::new(streams, stop.clone());
        let (settings, trust) =
            (Settings::default(), bundle::Trust::Keys { keys: Vec::new(), unsigned: true });
        let images = images::ImageStore::default();
        (Self::following(None, settings, trust, Auth::NoAuth, images, feed), stop)
    }

    /// One that serves these images.
    pub fn serving(images: images::ImageStore) -> Self {
        let trust = bundle::Trust::Keys { keys: Vec::new(), unsigned: true };
        Self::built(None, Settings::default(), trust, Auth::NoAuth, images)
    }

    /// One with the default settings, which demand the nonce of a boot.
    pub fn demanding_nonce() -> Self {
        Self::serving(images::ImageStore::default())
    }

    /// One with this store, whatever the environment asks for, that lets in everybody.
    pub fn kept_in(kind: StoreKind, settings: Settings) -> Self {
        let trust = bundle::Trust::Keys { keys: Vec::new(), unsigned: true };
        Self::built(Some(kind), settings, trust, Auth::NoAuth, images::ImageStore::default())
    }

    /// One with exactly these settings.
    pub fn having(settings: Settings) -> Self {
        let trust = bundle::Trust::Keys { keys: Vec::new(), unsigned: true };
        Self::built(None, settings, trust, Auth::NoAuth, images::ImageStore::default())
    }

    fn built(
        kind: Option<StoreKind>,
        settings: Settings,
        trust: bundle::Trust,
        auth: Auth,
        images: images::ImageStore,
    ) -> Self {
        Self::following(kind, settings, trust, auth, images, EventFeed::default())
    }

    fn following(
        kind: Option<StoreKind>,
        settings: Settings,
        trust: bundle::Trust,
        auth: Auth,
        images: images::ImageStore,
        events: EventFeed,
    ) -> Self {
        let kind = kind.or_else(StoreKind::asked).unwrap_or(StoreKind::Memory);
        let (store, _place) = test_store::make(kind);
        let bundles = tempfile::tempdir().expect("a directory");
        let drivers = Arc::new(KeptDrivers::new());
        let members = Members::alone("probe-conductor");
        let bundle_store = BundleStore::open(bundles.path().into(), trust, 2 << 20).expect("a bundle store");
        let app = App {
            clock: Arc::new(Ticking(AtomicI64::new(1_795_229_965_688_786))),
            bundles: Some(Arc::new(bundle_store)),
            images,
            events,
            members: members.clone(),
            sessions: Sessions::signed_with(b"the key of the tests"),
            settings: Settings { public_endpoint: "http://127.0.0.1:6385".into(), ..settings },
            ..App::alone("probe-conductor", store.clone(), drivers.clone())
        };
        let router = api::guarded_router(app.clone(), auth);
        Self { store, router, drivers, bundles, members, app, _place }
    }

    /// Another controller with the same database, which has these images.
    pub fn another(&self, images: images::ImageStore) -> Router {
        let app = App { images, ..App::alone("another-conductor", self.store.clone(), self.drivers.clone()) };
        api::guarded_router(app, Auth::NoAuth)
    }

    pub async fn raw(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.expect("the router never fails");
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body in memory");
        let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status: parts.status.as_u16(), headers: parts.headers, text, body }
    }

    /// A request in version 1.`minor`.
    pub async fn at(&self, minor: u16, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("X-OpenStack-Ironic-API-Version", format!("1.{minor}"))
            .header("Content-Type", "application/json")
            .body(body)
            .expect("a request");
        self.raw(request).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.at(115, "GET", path, None).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.at(115, "PUT", path, Some(body)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.at(115, "POST", path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.at(115, "PATCH", path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.at(115, "DELETE", path, None).await
    }

    /// A node straight in the store.
    pub async fn node(&self, name: &str, state: ProvisionState) -> Node {
        self.node_with(name, state, |_| {}).await
    }

    pub async fn node_with(&self, name: &str, state: ProvisionState, shape: impl FnOnce(&mut Node)) -> Node {
        let now = Timestamp(1_795_229_965_000_000);
        let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", now);
        node.name = Some(name.to_owned());
        room::put(&mut node, state, now);
        shape(&mut node);
        self.store.create_node(node, Vec::new()).await.expect("a new node")
    }

    /// A node whose run has powered it on and waits for its agent.
    pub async fn node_awaiting_agent(&self, name: &str) -> Node {
        self.node_with(name, ProvisionState::CleanWait, await_agent).await
    }

    /// The node as the store has it.
    pub async fn store_node(&self, node: &Node) -> Node {
        self.store.node(node.uuid).await.expect("the node")
    }

    /// Write a node straight into the store.
    pub async fn update(&self, node: Node) {
        self.store.update_node(node, Vec::new(), None).await.expect("the version that was read");
    }

    /// A port straight in the store.
    pub async fn port(&self, node: &Node, address: &str) -> Resource {
        let address = address.parse().expect("a MAC address");
        let port = Resource::port(Uuid::new_v4(), node.uuid, address, node.created_at);
        self.store.write_resource(ResourceWrite::Create(port), None, vec![]).await.expect("a new port")
    }

    /// Give a port a name, straight in the store.
    pub async fn name_port(&self, port: &Resource, name: &str) -> Resource {
        let named = Resource { name: Some(name.to_owned()), ..port.clone() };
        self.store
            .write_resource(ResourceWrite::Update(named), None, vec![])
            .await
            .expect("the version that was read")
    }

    /// Everything the store keeps that a request could change.
    pub async fn everything(&self) -> Value {
        let mut all = Vec::new();
        for node in self.store.nodes().await.expect("nodes") {
            let uuid = node.uuid;
            all.push(json!({
                "node": node,
                "contact": self.store.contact(uuid).await.expect("contact"),
                "history": self.store.history(uuid).await.expect("history"),
                "inventory": self.store.inventory(uuid).await.expect("inventory"),
            }));
        }
        let mut resources = Vec::new();
        for kind in ResourceKind::ALL {
            resources.extend(self.store.resources(kind, None).await.expect("resources"));
        }
        json!({
            "resources": resources,
            "nodes": all,
            "bundles": self.store.bundles().await.expect("bundles"),
        })
    }
}

pub fn fixture(text: &str) -> Value {
    serde_json::from_str(text).expect("a fixture is JSON")
}

pub fn keys(value: &Value) -> Vec<String> {
    let mut keys: Vec<_> = value.as_object().expect("an object").keys().cloned().collect();
    keys.sort();
    keys
}

/// Gives the node a run that has powered it on and waits for its agent.
pub fn await_agent(node: &mut Node) {
    let run = Run::new(RunKind::AutomatedClean, node.created_at);
    node.run = Some(Run { cursor: Cursor::AwaitAgent, booted: true, ..run });
}
