//! Many simulated agents: served, looked up, and beating.

use crate::agent::Agent;
use crate::heart::Heart;
use anyhow::{Context, Result};
use room::Kind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

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
pub struct Fleet {
    /// The agents.
    pub agents: Vec<Arc<Agent>>,
    /// What they counted.
    pub beats: Arc<Beats>,
    hearts: Vec<Heart>,
    // Stopped when dropped.
    tasks: JoinSet<()>,
}

impl Fleet {
    /// `count` agents of this kind and of `steps` steps each, listening on loopback with TLS if `tls`; not yet looked up.
    ///
    /// # Errors
    /// When there is no port or certificate for one.
    pub async fn new(
        controller: SocketAddr,
        kind: Kind,
        count: usize,
        steps: usize,
        tls: bool,
    ) -> Result<Self> {
        let agent = |number| match kind {
            Kind::Anneal => Agent::new(number, steps),
            Kind::Ipa => Agent::new(number, steps).unsigned(),
        };
        let agents: Vec<_> = (0..count).map(|number| Arc::new(agent(number))).collect();
        let (mut hearts, mut tasks) = (Vec::new(), JoinSet::new());
        for agent in &agents {
            hearts.push(Heart::new(agent.clone(), controller, tls, &mut tasks).await?);
        }
        Ok(Self { agents, beats: Arc::default(), hearts, tasks })
    }

    /// Every agent looks itself up, one after the other.
    ///
    /// # Errors
    /// When a lookup does not return the agent's node and token.
    pub async fn look_up(&mut self) -> Result<()> {
        for heart in &mut self.hearts {
            let mut found = heart.look_up().await;
            for _ in 0..LOOKUPS {
                if found.is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
                found = heart.look_up().await;
            }
            found.with_context(|| format!("lookup of {}", heart.agent.mac))?;
        }
        Ok(())
    }

    /// From now on all beat, the first time at once; gives when that was.
    pub fn beat(&mut self) -> Instant {
        let begun = Instant::now();
        for heart in &self.hearts {
            self.tasks.spawn(beat(heart.clone(), self.beats.clone()));
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

async fn beat(heart: Heart, beats: Arc<Beats>) {
    loop {
        let sent = Instant::now();
        beats.sent.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = heart.beat().await {
            beats.refused.fetch_add(1, Ordering::Relaxed);
            if heart.extension {
                eprintln!("heartbeat of {}: {error:#}", heart.agent.mac);
            }
        }
        tokio::select! {
            () = tokio::time::sleep_until((sent + heart.regular).into()) => {}
            () = heart.agent.process.ended.notified(), if heart.extension => {}
        }
    }
}
