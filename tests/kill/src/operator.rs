//! The operator: says verbs, and looks at the node before saying one again whose answer was lost.

use crate::controller::{Controller, LIMIT, LOOK};
use anyhow::{Result, bail, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Instant;

/// An operator of one node.
pub struct Operator {
    /// UUID of the node, chosen by the operator.
    pub uuid: String,
}

impl Operator {
    /// Asks until there is an answer; nothing is changed by asking twice.
    ///
    /// # Errors
    /// When the controller ends in another way than it should.
    pub async fn get(&self, from: &mut Controller, path: &str) -> Result<(StatusCode, Value)> {
        let begun = Instant::now();
        loop {
            if let Ok(answer) = from.api.send(&Method::GET, path, None).await {
                return Ok(answer);
            }
            from.revive().await?;
            ensure!(begun.elapsed() < LIMIT, "GET {path}: no answer within {LIMIT:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Repeats a request until `was_done` holds: after a lost answer that is checked first.
    async fn surely(
        &self,
        to: &mut Controller,
        method: Method,
        path: &str,
        body: Option<&Value>,
        was_done: impl AsyncFn(&Self, &mut Controller) -> Result<bool>,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            match to.api.send(&method, path, body).await {
                Ok((status, _)) if status.is_success() => return Ok(()),
                // Locked for a moment.
                Ok((StatusCode::CONFLICT, _)) => {}
                Ok((status, body)) => bail!("{method} {path}: {status} {body}"),
                // The connection broke.
                Err(_) => {
                    to.revive().await?;
                    if was_done(self, to).await? {
                        return Ok(());
                    }
                }
            }
            ensure!(begun.elapsed() < LIMIT, "{method} {path}: not taken within {LIMIT:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    fn path(&self, tail: &str) -> String {
        format!("/v1/nodes/{}{tail}", self.uuid)
    }

    /// Enrols the node with one port.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn enrol(&self, to: &mut Controller, mut node: Value, mac: &str) -> Result<()> {
        node["uuid"] = self.uuid.clone().into();
        let there = async |this: &Self, to: &mut Controller| {
            Ok(this.get(to, &this.path("")).await?.0 == StatusCode::OK)
        };
        self.surely(to, Method::POST, "/v1/nodes", Some(&node), there).await?;
        let port = json!({ "node_uuid": self.uuid, "address": mac });
        let there = async |this: &Self, to: &mut Controller| {
            let (_, ports) = this.get(to, &format!("/v1/ports?node={}", this.uuid)).await?;
            Ok(ports["ports"].as_array().is_some_and(|ports| !ports.is_empty()))
        };
        self.surely(to, Method::POST, "/v1/ports", Some(&port), there).await
    }

    /// Says a verb. Taken or not is seen by the history: every verb leaves an event in the write that takes it.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn say(&self, to: &mut Controller, target: &str, more: &Value) -> Result<()> {
        let before = self.history(to).await?.len();
        let mut body = json!({ "target": target });
        if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
            body.extend(more.clone());
        }
        let taken = async |this: &Self, to: &mut Controller| Ok(this.history(to).await?.len() > before);
        self.surely(to, Method::PUT, &self.path("/states/provision"), Some(&body), taken).await
    }

    /// Ends a maintenance that a failure began.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn end_maintenance(&self, to: &mut Controller) -> Result<()> {
        let over = async |this: &Self, to: &mut Controller| Ok(this.node(to).await?["maintenance"] == false);
        self.surely(to, Method::DELETE, &self.path("/maintenance"), None, over).await
    }

    /// The node.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn node(&self, from: &mut Controller) -> Result<Value> {
        let (status, node) = self.get(from, &self.path("")).await?;
        ensure!(status.is_success(), "the node is not shown: {status} {node}");
        Ok(node)
    }

    /// Its history, oldest first.
    ///
    /// # Errors
    /// When it is not shown.
    pub async fn history(&self, from: &mut Controller) -> Result<Vec<Value>> {
        let (status, mut body) = self.get(from, &self.path("/history?detail=true&limit=1000")).await?;
        ensure!(status.is_success(), "the history is not shown: {status} {body}");
        match body["history"].take() {
            Value::Array(events) => Ok(events),
            other => bail!("the history is {other}"),
        }
    }

    /// Waits until the node is in `state` or has failed, and no run is in progress.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub async fn rest(&self, from: &mut Controller, state: &str) -> Result<Value> {
        let rests = |node: &Value| {
            let now = node["provision_state"].as_str().unwrap_or_default();
            (now == state || now.ends_with("failed") || now == "error") && node["reservation"].is_null()
        };
        self.until(from, &format!("a node that is {state}"), rests).await
    }

    /// Waits until the node is as it should be.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub async fn until(
        &self,
        from: &mut Controller,
        what: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let begun = Instant::now();
        loop {
            let node = self.node(from).await?;
            if is_so(&node) {
                return Ok(node);
            }
            ensure!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}: {node}");
            tokio::time::sleep(LOOK).await;
        }
    }
}
