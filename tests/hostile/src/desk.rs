//! An operator at work, and how long each answer takes.

use crate::controller::Controller;
use crate::machines::States;
use anyhow::{Result, ensure};
use bench::operator::NodeView;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(50);
/// Between two looks at all nodes.
const GLANCE: Duration = Duration::from_millis(500);

/// How long answers took.
#[derive(Debug, Default)]
pub struct Waits(Mutex<Vec<Duration>>);

impl Waits {
    /// The answers so far.
    pub fn all(&self) -> Vec<Duration> {
        room::held(&self.0).clone()
    }

    /// Forgets them.
    pub fn forget(&self) {
        room::held(&self.0).clear();
    }

    async fn timed<T>(&self, request: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let answer = request.await;
        room::held(&self.0).push(begun.elapsed());
        answer
    }
}

/// Looks at all nodes until it is dropped.
///
/// # Errors
/// When they cannot be listed.
pub fn watch(controller: Arc<Controller>, waits: Arc<Waits>) -> (States, impl Future<Output = Result<()>>) {
    let (sender, states) = watch::channel(BTreeMap::new());
    let looking = async move {
        loop {
            let nodes: Vec<NodeView> = waits.timed(controller.operator.nodes()).await?;
            sender.send_replace(nodes.into_iter().map(|node| (node.uuid.clone(), node)).collect());
            tokio::time::sleep(GLANCE).await;
        }
    };
    (states, looking)
}

/// Asks for one thing after the other until it is dropped: lists, nodes, histories, a new node, a change, a deletion.
///
/// # Errors
/// When an answer is not the one that such a request gets.
pub async fn work(controller: Arc<Controller>, uuid: String, waits: Arc<Waits>) -> Result<()> {
    let ask = async |method: Method, path: String, body: Option<Value>, status: u16| -> Result<Value> {
        let answer = waits.timed(controller.api.send(&method, &path, body.as_ref())).await?;
        ensure!(answer.0 == status, "{method} {path}: {} {}", answer.0, answer.1);
        tokio::time::sleep(PAUSE).await;
        Ok(answer.1)
    };
    for turn in 0_u64.. {
        ask(Method::GET, "/v1/nodes?limit=100".to_owned(), None, 200).await?;
        ask(Method::GET, format!("/v1/nodes/{uuid}"), None, 200).await?;
        ask(Method::GET, format!("/v1/nodes/{uuid}/history"), None, 200).await?;
        ask(Method::GET, "/healthcheck".to_owned(), None, 200).await?;
        let name = format!("desk-{turn}");
        let node = json!({ "name": name, "driver": "fake-hardware" });
        ask(Method::POST, "/v1/nodes".to_owned(), Some(node), 201).await?;
        let patch = json!([{ "op": "add", "path": "/extra/turn", "value": turn }]);
        ask(Method::PATCH, format!("/v1/nodes/{name}"), Some(patch), 200).await?;
        ask(Method::DELETE, format!("/v1/nodes/{name}"), None, 204).await?;
    }
    Ok(())
}
