//! The real API on loopback, with a store in memory and drivers that record their requests; and the built `anneal`
//! against it.

use super::drivers;
use api::auth::Sessions;
use api::{App, Auth, OriginCheck};
use model::{Node, PowerState, ProvisionState};
use serde_json::{Value, json};
use std::sync::Arc;
use store::memory::MemoryStore;
use store::prelude::*;
use store::{Clock, SystemClock};
use uuid::Uuid;

/// A controller.
pub struct Controller {
    /// Its URL.
    pub endpoint: String,
    /// What the drivers were asked.
    pub drivers: Arc<drivers::KeptDrivers>,
    store: Arc<MemoryStore>,
    runtime: tokio::runtime::Runtime,
}

impl Controller {
    /// One without nodes.
    pub fn new() -> Self {
        Self::guarded(Auth::NoAuth)
    }

    /// The same, that lets in whom `auth` lets in.
    pub fn guarded(auth: Auth) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (store, drivers) = (Arc::new(MemoryStore::new()), Arc::new(drivers::KeptDrivers::new()));
        let sessions = Sessions::signed_with(b"the key of the tests");
        let app = App { sessions: sessions.clone(), ..App::alone("c1", store.clone(), drivers.clone()) };
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        sessions.serve_at(endpoint.clone());
        let router = api::loopback_router(app, auth, OriginCheck::default());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { endpoint, drivers, store, runtime }
    }

    /// Enrols a node of Redfish that is off, in a state; returns its UUID.
    pub fn with_node(&self, name: &str, state: ProvisionState) -> Uuid {
        let mut node = Node::enrolled(Uuid::new_v4(), "redfish", SystemClock::default().now());
        node.name = Some(name.to_owned());
        node.driver_info.insert("redfish_address".to_owned(), json!("https://bmc"));
        (node.provision_state, node.power_state) = (state, Some(PowerState::Off));
        self.runtime.block_on(self.store.create_node(node, Vec::new())).unwrap().uuid
    }

    /// A request of a browser, with a JSON body; status and answer.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        self.runtime.block_on(async {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let answer = client.post(format!("{}{path}", self.endpoint)).json(body).send().await.unwrap();
            (answer.status().as_u16(), answer.json().await.unwrap_or(Value::Null))
        })
    }

    /// Exit code, standard output and standard error of `anneal`.
    pub fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = super::common::anneal(&self.endpoint, words, "");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// What a command prints for programs.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> Value {
        let (code, out, err) = self.run(&[words, &["--json"]].concat());
        assert_eq!(code, 0, "{words:?}: {err}");
        serde_json::from_str(&out).unwrap()
    }
}
