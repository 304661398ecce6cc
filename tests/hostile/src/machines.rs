//! Machines that are cleaned again and again. Each boots an agent at an address of its own.

use crate::controller::Controller;
use anyhow::{Context, Result, ensure};
use bench::agent::{Agent, step};
use bench::client::{Route, send};
use bench::heart::Heart;
use bench::operator::NodeView;
use reqwest::Method;
use room::erased;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Bytes of the disk of a machine.
const DISK: u64 = 1 << 30;
/// Before a lookup or a heartbeat that brought nothing is sent again.
const AGAIN: Duration = Duration::from_secs(1);
/// For how long a node looks up, and how long its cleaning may take: agents have this much for their lookup. Without hostile clients
/// both take a second; on a machine that is busy with other work the controller's threads for agents wait behind it
/// (docs/decisions/0032).
const LIMIT: Duration = Duration::from_secs(600);

/// The state of every node as the operator saw it last, by UUID.
pub type States = watch::Receiver<BTreeMap<String, NodeView>>;

/// One machine with its node.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Where its agents listen, and come from.
    pub address: Ipv4Addr,
    /// Its MAC address.
    pub mac: String,
    /// Its node.
    pub uuid: String,
}

impl Machine {
    /// Machine `number`, enrolled and manageable at the end.
    ///
    /// # Errors
    /// When the controller refuses.
    pub async fn enrol(number: u16, controller: &Controller) -> Result<Self> {
        let [high, low] = number.to_be_bytes();
        let mac = format!("52:54:00:be:{high:02x}:{low:02x}");
        let uuid = controller.operator.enrol(&mac).await?;
        controller.operator.provision(&uuid, "manage").await?;
        Ok(Self { address: Ipv4Addr::new(127, 2, high, low), mac, uuid })
    }

    /// The report of an erase of its only disk.
    pub fn report(&self) -> Value {
        json!({ "disks": [erased("erase_devices", "/dev/sda", &self.mac.replace(':', ""), DISK)] })
    }

    /// Fetches its boot script, as its firmware does. Gives the nonce in it.
    ///
    /// # Errors
    /// When there is none for it.
    pub async fn fetch_script(&self, controller: &Controller) -> Result<String> {
        let path = format!("/boot/ipxe?mac={}", self.mac);
        let route = controller.ports.to_boot(self.address);
        let (status, script) = send(&route, Method::GET, &path, Vec::new()).await?;
        let script = String::from_utf8_lossy(&script);
        let nonce = script.split_whitespace().find_map(|word| word.strip_prefix("anneal.boot-nonce="));
        let nonce = nonce.filter(|_| status == 200);
        nonce.map(str::to_owned).with_context(|| format!("boot script: {status} {script}"))
    }

    /// Its agent in one boot, looked up, with this report of its erase. It listens as long as `tasks` lives.
    ///
    /// # Errors
    /// When it gets no token within [`LIMIT`].
    pub async fn boot(
        &self,
        controller: &Controller,
        report: Value,
        tasks: &mut JoinSet<()>,
    ) -> Result<Heart> {
        let begun = Instant::now();
        let nonce = loop {
            match self.fetch_script(controller).await {
                Ok(nonce) => break nonce,
                Err(error) => ensure!(begun.elapsed() < LIMIT, "node {}: {error:#}", self.uuid),
            }
            tokio::time::sleep(AGAIN).await;
        };
        let agent = Agent::of(self.mac.clone(), vec![step("erase_devices", 10), step("verify", 5)]);
        let agent = Arc::new(agent.reporting(report));
        let route = Route { nonce: Some(nonce), ..controller.ports.to_agents(self.address) };
        let mut heart = Heart::on(agent, route, true, tasks).await?;
        while let Err(error) = heart.look_up().await {
            ensure!(begun.elapsed() < LIMIT, "node {}: lookup: {error:#}", self.uuid);
            tokio::time::sleep(AGAIN).await;
        }
        Ok(heart)
    }
}

/// Heartbeats, now and whenever they are due, until it is dropped.
pub async fn beat(heart: Heart) {
    loop {
        let pause = if heart.beat().await.is_ok() { heart.regular } else { AGAIN };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = heart.agent.process.ended.notified() => {}
        }
    }
}

/// Cleans the machine again and again until `until`. Gives how often, and how long the longest took.
///
/// # Errors
/// When one cleaning does not end in `available` within [`LIMIT`], or a step did not run exactly once.
pub async fn clean(
    machine: Machine,
    controller: Arc<Controller>,
    mut states: States,
    until: Instant,
) -> Result<(usize, Duration)> {
    let (mut rounds, mut longest) = (0, Duration::ZERO);
    while rounds == 0 || Instant::now() < until {
        let begun = Instant::now();
        let what = || format!("node {} ({}), cleaning {}", machine.uuid, machine.mac, rounds + 1);
        seen(&mut states, &machine.uuid, "manageable").await.with_context(what)?;
        controller.operator.provision(&machine.uuid, "provide").await.with_context(what)?;
        let mut tasks = JoinSet::new();
        let awaited = |node: &NodeView| node.state == "clean wait" && node.waits_powered;
        reached(&mut states, &machine.uuid, "clean wait, powered", awaited).await.with_context(what)?;
        let heart = machine.boot(&controller, machine.report(), &mut tasks).await.with_context(what)?;
        let agent = heart.agent.clone();
        tasks.spawn(beat(heart));
        seen(&mut states, &machine.uuid, "available").await.with_context(what)?;
        let ran: Vec<_> = agent.journal().into_iter().map(|mark| mark.step).collect();
        ensure!(ran == agent.expected(), "{}: it ran {ran:?}", what());
        longest = longest.max(begun.elapsed());
        controller.operator.provision(&machine.uuid, "manage").await.with_context(what)?;
        rounds += 1;
    }
    Ok((rounds, longest))
}

async fn seen(states: &mut States, uuid: &str, state: &str) -> Result<()> {
    reached(states, uuid, state, |node| node.state == state).await
}

/// Waits until the node `is_there`.
async fn reached(
    states: &mut States,
    uuid: &str,
    what: &str,
    is_there: impl Fn(&NodeView) -> bool,
) -> Result<()> {
    let there = |states: &BTreeMap<String, NodeView>| {
        states.get(uuid).is_some_and(|node| is_there(node) || has_failed(node))
    };
    let found = match tokio::time::timeout(LIMIT, states.wait_for(there)).await {
        Ok(states) => states.context("the nodes are not looked at any more")?.get(uuid).cloned(),
        Err(_) => None,
    };
    match found {
        Some(node) if has_failed(&node) => anyhow::bail!("it is {}: {:?}", node.state, node.last_error),
        Some(_) => Ok(()),
        None => {
            let node = states.borrow().get(uuid).cloned();
            anyhow::bail!("not {what} within {} s: {node:?}", LIMIT.as_secs())
        }
    }
}

fn has_failed(node: &NodeView) -> bool {
    node.state.ends_with("failed") || node.state == "error"
}
