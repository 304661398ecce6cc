//! Many simulated agents: served, looked up, and beating.

use crate::agent::Agent;
use crate::client::send;
use crate::server;
use agent_protocol::heartbeat::Heartbeat;
use agent_protocol::lookup::{LookupAnswer, MASKED};
use anyhow::{Context, Result, ensure};
use contract::certificate;
use hyper::Method;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// ironic-python-agent sends a forced heartbeat no sooner than this after the one before
/// (`min_heartbeat_interval`). A plain agent beats this often: were it to beat only when a command ended, one that
/// Ironic skips because the node is locked would be made good by the next regular one, minutes later.
const PLAIN_GAP: Duration = Duration::from_secs(5);
/// Share of the controller's `heartbeat_timeout` between regular beats: the middle of the real agent's.
const SHARE: f64 = 0.45;
/// Lookups that a controller may refuse before it is given up: Ironic locks nodes.
const LOOKUPS: usize = 60;

/// What the agents counted.
#[derive(Debug, Default)]
pub struct Beats {
    /// Heartbeats that were sent.
    pub sent: AtomicU64,
    /// Those that were not answered with 202.
    pub refused: AtomicU64,
}

/// Agents of one controller.
#[derive(Debug)]
pub struct Fleet {
    /// The agents.
    pub agents: Vec<Arc<Agent>>,
    /// What they counted.
    pub beats: Arc<Beats>,
    hearts: Vec<Heart>,
    // Stopped when dropped.
    tasks: JoinSet<()>,
}

/// What an agent needs for its heartbeats.
#[derive(Debug, Clone)]
struct Heart {
    agent: Arc<Agent>,
    controller: SocketAddr,
    letter: Heartbeat,
    path: String,
    /// Between two beats when no command ends.
    regular: Duration,
    extension: bool,
}

impl Fleet {
    /// `count` agents of `steps` steps each, listening on loopback with TLS if `tls`; not yet looked up.
    ///
    /// # Errors
    /// When there is no port or certificate for one.
    pub async fn new(controller: SocketAddr, count: usize, steps: usize, tls: bool) -> Result<Self> {
        let (mut agents, mut hearts, mut tasks) = (Vec::new(), Vec::new(), JoinSet::new());
        for number in 0..count {
            let agent = Arc::new(Agent::new(number, steps));
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = listener.local_addr()?;
            let (acceptor, pem) = if tls {
                certificate::own().map(|(config, pem)| (Some(config.into()), Some(pem)))?
            } else {
                (None, None)
            };
            let scheme = if tls { "https" } else { "http" };
            tasks.spawn(server::run(listener, acceptor, agent.clone()));
            let letter = Heartbeat {
                callback_url: format!("{scheme}://{address}"),
                agent_token: None,
                agent_version: Some("13.0.0".to_owned()),
                agent_verify_ca: pem,
                anneal: None,
            };
            let (path, regular) = (String::new(), PLAIN_GAP);
            hearts.push(Heart { agent: agent.clone(), controller, letter, path, regular, extension: false });
            agents.push(agent);
        }
        Ok(Self { agents, beats: Arc::default(), hearts, tasks })
    }

    /// Every agent looks itself up, one after the other.
    ///
    /// # Errors
    /// When a lookup does not return the agent's node and token.
    pub async fn look_up(&mut self) -> Result<()> {
        for heart in &mut self.hearts {
            heart.look_up().await.with_context(|| format!("lookup of {}", heart.agent.mac))?;
        }
        Ok(())
    }

    /// From now on all beat, the first time at once; gives when that was.
    pub fn beat(&mut self) -> Instant {
        let begun = Instant::now();
        for heart in &self.hearts {
            self.tasks.spawn(heart.clone().run(self.beats.clone()));
        }
        begun
    }

    /// Waits until every agent has run all its steps.
    pub async fn finished(&self) {
        for agent in &self.agents {
            agent.finished.cancelled().await;
        }
    }
}

impl Heart {
    async fn look_up(&mut self) -> Result<()> {
        // The key `anneal` says that the boot may be named; Ironic takes no argument that it does not know.
        let (_, root) = send(self.controller, Method::GET, "/", Vec::new()).await?;
        let offers = serde_json::from_slice::<Value>(&root)?.get("anneal").is_some();
        let mut path = format!("/v1/lookup?addresses={}", self.agent.mac);
        if offers {
            path.push_str(&format!("&anneal_boot_id={}", self.agent.boot_id()));
        }
        let (mut status, mut body) = send(self.controller, Method::GET, &path, Vec::new()).await?;
        for _ in 0..LOOKUPS {
            if status == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            (status, body) = send(self.controller, Method::GET, &path, Vec::new()).await?;
        }
        ensure!(status == 200, "{status} {}", String::from_utf8_lossy(&body));
        let answer: LookupAnswer = serde_json::from_slice(&body)?;
        let token = answer.config.agent_token.context("a token")?;
        ensure!(token != MASKED, "the token was given to another agent");
        self.extension = answer.config.anneal.is_some();
        if self.extension {
            self.regular = Duration::from_secs_f64(answer.config.heartbeat_timeout * SHARE);
        }
        self.path = format!("/v1/heartbeat/{}", answer.node.uuid);
        self.letter.agent_token = Some(token.clone());
        self.agent.take_token(token);
        Ok(())
    }

    async fn run(self, beats: Arc<Beats>) {
        loop {
            let sent = Instant::now();
            beats.sent.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = self.once().await {
                beats.refused.fetch_add(1, Ordering::Relaxed);
                if self.extension {
                    eprintln!("heartbeat of {}: {error:#}", self.agent.mac);
                }
            }
            let due = tokio::time::sleep_until((sent + self.regular).into());
            tokio::select! {
                () = due => {}
                () = self.agent.ended.notified(), if self.extension => {}
            }
        }
    }

    async fn once(&self) -> Result<()> {
        let letter =
            Heartbeat { anneal: self.extension.then(|| self.agent.heartbeat_state()), ..self.letter.clone() };
        let body = serde_json::to_vec(&letter)?;
        let (status, body) = send(self.controller, Method::POST, &self.path, body).await?;
        ensure!(status == 202, "{status} {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}
