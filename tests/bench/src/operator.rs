//! What an operator does before and after: enrol nodes, provide them, look at them, remove them.

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Client, ClientBuilder, Method, StatusCode};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Known to both controllers.
const VERSION: &str = "1.81";
/// How often a locked node is asked again: Ironic locks a node for every heartbeat and verb.
const LOCKED: usize = 120;
/// Between two such questions.
const PAUSE: Duration = Duration::from_millis(250);

/// The API of one controller.
#[derive(Debug, Clone)]
pub struct Api {
    endpoint: String,
    version: &'static str,
    client: Client,
}

impl Api {
    /// Of the controller at `endpoint`, asked in this microversion, one connection a request; an answer is awaited for
    /// `limit`.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(endpoint: &str, version: &'static str, limit: Duration) -> Result<Self> {
        let client = client(limit).build()?;
        Ok(Self { endpoint: endpoint.to_owned(), version, client })
    }

    /// The same, asked from this address of the machine.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn from_address(
        endpoint: &str,
        version: &'static str,
        limit: Duration,
        from: IpAddr,
    ) -> Result<Self> {
        let client = client(limit).local_address(from).build()?;
        Ok(Self { endpoint: endpoint.to_owned(), version, client })
    }

    /// The same of the controller whose API is served on the Unix socket at `path`.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn at_socket(path: &Path, version: &'static str, limit: Duration) -> Result<Self> {
        let client = client(limit).unix_socket(path).build()?;
        Ok(Self { endpoint: "http://localhost".to_owned(), version, client })
    }

    /// Status and body of the answer; a body that is no JSON is `null`.
    ///
    /// # Errors
    /// When there is no whole answer.
    pub async fn send(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value)> {
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.endpoint));
        request = request.header("x-openstack-ironic-api-version", self.version);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        Ok((status, serde_json::from_slice(&answer.bytes().await?).unwrap_or_default()))
    }
}

fn client(limit: Duration) -> ClientBuilder {
    // The API is plain HTTP on loopback; the client wants a provider all the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(limit)
}

/// An operator of one controller.
#[derive(Debug, Clone)]
pub struct Operator(Api);

/// What is looked at of a node.
#[derive(Debug, Clone)]
pub struct NodeView {
    /// UUID.
    pub uuid: String,
    /// Provision state.
    pub state: String,
    /// `power on`, and no run in progress.
    pub waits_powered: bool,
    /// Why it failed.
    pub last_error: Option<String>,
}

impl Operator {
    /// Of the controller at `endpoint`.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(endpoint: &str) -> Result<Self> {
        Api::new(endpoint, VERSION, Duration::from_secs(120)).map(Self)
    }

    /// Of this API.
    pub fn of(api: Api) -> Self {
        Self(api)
    }

    /// The answer to a request, which is sent again while the node is locked.
    ///
    /// # Errors
    /// When it is refused, or the node stays locked for half a minute.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        for _ in 0..LOCKED {
            let (status, answer) = self.0.send(&method, path, body).await?;
            if status.is_success() {
                return Ok(answer);
            }
            if !matches!(status, StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE) {
                bail!("{method} {path}: {status} {answer}");
            }
            tokio::time::sleep(PAUSE).await;
        }
        bail!("{method} {path}: the node stayed locked")
    }

    /// Whether a driver of this name is served.
    pub async fn has_driver(&self, name: &str) -> bool {
        let drivers = self.call(Method::GET, "/v1/drivers", None).await.unwrap_or_default();
        drivers["drivers"].as_array().is_some_and(|list| list.iter().any(|one| one["name"] == name))
    }

    /// Enrols a `fake-hardware` node that boots an agent, with one port; gives its UUID.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn enrol(&self, mac: &str) -> Result<String> {
        self.enrol_as(&json!({ "driver": "fake-hardware", "deploy_interface": "direct" }), mac).await
    }

    /// Enrols this node with one port; gives its UUID.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn enrol_as(&self, node: &Value, mac: &str) -> Result<String> {
        let node = self.call(Method::POST, "/v1/nodes", Some(node)).await?;
        let uuid = node["uuid"].as_str().context("a new node has a UUID")?.to_owned();
        let port = json!({ "node_uuid": uuid, "address": mac });
        self.call(Method::POST, "/v1/ports", Some(&port)).await?;
        Ok(uuid)
    }

    /// Asks for a provision target.
    ///
    /// # Errors
    /// When it is refused, or the node stays locked for half a minute.
    pub async fn provision(&self, uuid: &str, target: &str) -> Result<()> {
        let path = format!("/v1/nodes/{uuid}/states/provision");
        self.call(Method::PUT, &path, Some(&json!({ "target": target }))).await.map(drop)
    }

    /// Removes a node.
    ///
    /// # Errors
    /// When it is refused, or the node stays locked for half a minute.
    pub async fn remove(&self, uuid: &str) -> Result<()> {
        self.call(Method::DELETE, &format!("/v1/nodes/{uuid}"), None).await.map(drop)
    }

    /// All nodes.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn nodes(&self) -> Result<Vec<NodeView>> {
        const PATH: &str =
            "/v1/nodes?limit=1000&fields=uuid,provision_state,power_state,reservation,last_error";
        let body = self.call(Method::GET, PATH, None).await?;
        let nodes = body["nodes"].as_array().context("a list of nodes")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let view = |node: &Value| NodeView {
            uuid: text(&node["uuid"]).unwrap_or_default(),
            state: text(&node["provision_state"]).unwrap_or_default(),
            waits_powered: node["power_state"] == "power on" && node["reservation"].is_null(),
            last_error: text(&node["last_error"]),
        };
        Ok(nodes.iter().map(view).collect())
    }

    /// Looks at all nodes every `pause` until each `is_there`.
    ///
    /// # Errors
    /// When one of them failed, or `limit` has passed.
    pub async fn until(
        &self,
        what: &str,
        limit: Duration,
        pause: Duration,
        is_there: impl Fn(&NodeView) -> bool,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            let nodes = self.nodes().await?;
            ensure_none_failed(&nodes)?;
            let missing = nodes.iter().find(|node| !is_there(node));
            let Some(missing) = missing else { return Ok(()) };
            ensure!(
                begun.elapsed() < limit,
                "{what}: not within {} s; node {} is {}",
                limit.as_secs(),
                missing.uuid,
                missing.state
            );
            tokio::time::sleep(pause).await;
        }
    }
}

/// Fails when a node has failed.
///
/// # Errors
/// See above.
pub fn ensure_none_failed(nodes: &[NodeView]) -> Result<()> {
    match nodes.iter().find(|node| node.state.ends_with("failed") || node.state == "error") {
        Some(node) => bail!("node {} is {}: {:?}", node.uuid, node.state, node.last_error),
        None => Ok(()),
    }
}
