//! A program on the nodes' network that speaks the agent protocol and runs on no node. It has an address of its own there.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bench::agent::{Agent, step};
use bench::client::{Route, send};
use bench::heart::Heart;
use lab::site::{ADDRESS, Site};
use reqwest::Method;
use tokio::task::JoinSet;

/// Where it listens, and comes from.
pub const HOME: Ipv4Addr = Ipv4Addr::new(172, 22, 0, 66);

/// Between two tries to be taken for the node's agent.
const PAUSE: Duration = Duration::from_millis(50);
/// Between two heartbeats.
const BEAT: Duration = Duration::from_secs(1);

/// A running impostor; dropping it ends it.
pub struct Impostor {
    agent: Arc<Agent>,
    _tasks: JoinSet<()>,
}

impl Impostor {
    /// Fetches the boot script of the machine with this MAC address and asks for its token, again and again from now on. Once
    /// it has the token, it sends heartbeats and runs its commands as `agent` does.
    ///
    /// # Errors
    /// When the network has its address already, or it cannot listen.
    pub async fn start(site: &Site, mac: &str, agent: impl FnOnce(Agent) -> Agent) -> Result<Self> {
        site.add_address(HOME)?;
        let route = Route::encrypted((ADDRESS, 6385).into(), HOME)?;
        let boot = Route { to: (ADDRESS, 8089).into(), from: HOME, tls: None, nonce: None };
        let script = format!("/boot/ipxe?mac={mac}");
        let steps = vec![step("erase_devices", 10)];
        let agent = Arc::new(agent(Agent::of(mac.to_owned(), steps)));
        let mut tasks = JoinSet::new();
        let mut heart = Heart::on(agent.clone(), route, true, &mut tasks).await?;
        tasks.spawn(async move {
            loop {
                // It takes what it gets: an answer that it did not want changes nothing for it.
                if let Ok((_, script)) = send(&boot, Method::GET, &script, Vec::new()).await
                    && let Some(nonce) = nonce_of(&String::from_utf8_lossy(&script))
                {
                    heart.show(nonce);
                }
                if heart.look_up().await.is_err() {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                while heart.beat().await.is_ok() {
                    tokio::select! {
                        () = tokio::time::sleep(BEAT) => {}
                        () = heart.agent.process.ended.notified() => {}
                    }
                }
            }
        });
        Ok(Self { agent, _tasks: tasks })
    }

    /// Whether it was ever given a token.
    pub fn has_token(&self) -> bool {
        room::held(&self.agent.process.token).is_some()
    }
}

/// The nonce in a boot script.
fn nonce_of(script: &str) -> Option<String> {
    let nonce = script.split_whitespace().find_map(|word| word.strip_prefix("anneal.boot-nonce="))?;
    Some(nonce.to_owned())
}
