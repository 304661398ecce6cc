//! An agent's way to its controller: it serves commands, looks itself up, and sends heartbeats.

use crate::agent::Agent;
use crate::client::{Route, send};
use crate::server;
use agent_protocol::heartbeat::Heartbeat;
use agent_protocol::lookup::{LookupAnswer, MASKED};
use anyhow::{Context, Result, ensure};
use contract::certificate;
use hyper::Method;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// ironic-python-agent sends a forced heartbeat no sooner than this after the one before
/// (`min_heartbeat_interval`). A plain agent beats this often: were it to beat only when a command ended, one that
/// Ironic skips because the node is locked would be made good by the next regular one, minutes later.
const PLAIN_GAP: Duration = Duration::from_secs(5);
/// Share of the controller's `heartbeat_timeout` between regular beats: the middle of the real agent's.
const SHARE: f64 = 0.45;

/// What an agent needs for its heartbeats.
#[derive(Clone)]
pub struct Heart {
    /// The agent.
    pub agent: Arc<Agent>,
    route: Route,
    template: Heartbeat,
    path: String,
    /// Between two beats when no command ends.
    pub regular: Duration,
    /// The controller takes Anneal's part of a heartbeat.
    pub extension: bool,
}

impl Heart {
    /// `agent` listening on loopback as one of `tasks`, with TLS if `tls`; not yet looked up.
    ///
    /// # Errors
    /// When there is no port or certificate for it.
    pub async fn new(
        agent: Arc<Agent>,
        controller: SocketAddr,
        tls: bool,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self> {
        Self::on(agent, Route::plain(controller), tls, tasks).await
    }

    /// The same of an agent that listens at the address from which it asks its controller.
    ///
    /// # Errors
    /// When there is no port or certificate for it.
    pub async fn on(agent: Arc<Agent>, route: Route, tls: bool, tasks: &mut JoinSet<()>) -> Result<Self> {
        let listener = TcpListener::bind((route.from, 0)).await?;
        let address = listener.local_addr()?;
        let (config, pem) = tls.then(certificate::own).transpose()?.unzip();
        let scheme = if tls { "https" } else { "http" };
        tasks.spawn(server::run(listener, config.map(Into::into), agent.clone()));
        let template = Heartbeat {
            callback_url: format!("{scheme}://{address}"),
            agent_token: None,
            agent_version: Some("13.0.0".to_owned()),
            agent_verify_ca: pem,
            anneal: None,
        };
        Ok(Self { agent, route, template, path: String::new(), regular: PLAIN_GAP, extension: false })
    }

    /// Every request shows this nonce of a boot from now on.
    pub fn show(&mut self, nonce: String) {
        self.route.nonce = Some(nonce);
    }

    /// The agent looks itself up.
    ///
    /// # Errors
    /// When it does not get its node and token.
    pub async fn look_up(&mut self) -> Result<()> {
        // The key `anneal` says that the boot may be named; Ironic takes no argument that it does not know.
        let (_, root) = send(&self.route, Method::GET, "/", Vec::new()).await?;
        let offers = serde_json::from_slice::<Value>(&root)?.get("anneal").is_some();
        let mut path = format!("/v1/lookup?addresses={}", self.agent.mac);
        let is_ours = self.agent.process.kind == room::Kind::Anneal;
        if offers && is_ours {
            path.push_str(&format!("&anneal_boot_id={}", self.agent.process.boot_id));
        }
        let (status, body) = send(&self.route, Method::GET, &path, Vec::new()).await?;
        ensure!(status == 200, "{status} {}", String::from_utf8_lossy(&body));
        let answer: LookupAnswer = serde_json::from_slice(&body)?;
        let token = answer.config.agent_token.context("a token")?;
        ensure!(token != MASKED, "the token was given to another agent, or in an answer that was lost");
        self.extension = answer.config.anneal.is_some() && is_ours;
        if self.extension {
            self.regular = Duration::from_secs_f64(answer.config.heartbeat_timeout * SHARE);
        }
        self.path = format!("/v1/heartbeat/{}", answer.node.uuid);
        self.template.agent_token = Some(token.clone());
        *room::held(&self.agent.process.token) = Some(token);
        Ok(())
    }

    /// One heartbeat.
    ///
    /// # Errors
    /// When it is not accepted.
    pub async fn beat(&self) -> Result<()> {
        let anneal = self.extension.then(|| self.agent.process.state());
        let body = serde_json::to_vec(&Heartbeat { anneal, ..self.template.clone() })?;
        let (status, body) = send(&self.route, Method::POST, &self.path, body).await?;
        ensure!(status == 202, "{status} {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}
