//! Many nodes on one way, manage → provide → deploy → delete → clean, while the controller and agents are killed.

use crate::agent;
use crate::faults::Faults;
use crate::held;
use crate::invariants::end;
use crate::machine::Machine;
use crate::run::{Outcome, begin, judge, summed_up, within};
use crate::user::User;
use crate::world::{Fuse, World};
use model::{ProvisionState, RunKind};
use room::Kind;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Nodes set out within this.
const SETS_OUT: Duration = Duration::from_secs(1800);
/// All have arrived after this.
const ARRIVES: Duration = Duration::from_secs(24 * 3600);

/// How large, and how often it is struck.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Nodes.
    pub nodes: usize,
    /// Kills of the controller.
    pub controller_kills: u32,
    /// Kills of an agent.
    pub agent_kills: u32,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// As of any world.
    pub outcome: Outcome,
    /// Nodes that went the whole way.
    pub arrived: usize,
    /// Agents that were killed.
    pub agent_kills: u32,
    /// Runs that failed on the way and were asked for again.
    pub failures: usize,
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.outcome;
        write!(
            f,
            "fleet: {} of {} nodes arrived, {} kills of the controller, {} of agents, {} failures on the way; {} \
             stored writes, {} steps, {} s of simulated time",
            self.arrived,
            outcome.nodes,
            outcome.kills,
            self.agent_kills,
            self.failures,
            outcome.writes,
            outcome.steps,
            outcome.seconds
        )?;
        match &outcome.violation {
            Some(violation) => write!(f, "\n    {}: {}", violation.rule, violation.what),
            None => Ok(()),
        }
    }
}

/// Send the nodes on their way.
pub fn run(seed: u64, size: Size, loud: bool) -> Arrival {
    within(|| async move {
        let machines = |rng: &_| (0..size.nodes).map(|at| Machine::of(rng, at, Some(Kind::Anneal))).collect();
        let world = World::new(seed, machines, loud);
        begin(&world).await;
        let journey = async {
            let mut owners = JoinSet::new();
            for machine in &world.machines {
                let start = world.rng.millis(0..u64::try_from(SETS_OUT.as_millis()).unwrap_or(1));
                owners.spawn(owner(User::of(&world, machine), start));
            }
            let mut strikes = JoinSet::new();
            strikes.spawn(kill_controllers(world.clone(), size.controller_kills));
            strikes.spawn(kill_agents(world.clone(), size.agent_kills));
            let mut failures = 0;
            let mut arrived = 0;
            while let Some(owner) = owners.join_next().await {
                failures += owner.unwrap_or_default();
                arrived += 1;
            }
            while strikes.join_next().await.is_some() {}
            (arrived, failures)
        };
        let (arrived, failures) = tokio::select! {
            biased;
            () = world.broken.cancelled() => (0, 0),
            end = timeout(ARRIVES, journey) => end.unwrap_or_default(),
        };
        settled(&world).await;
        judge(&world).await;
        let agent_kills = held(&world.ground_truth).agent_kills;
        let outcome = summed_up(&world, seed, Faults::calm(Duration::ZERO));
        Arrival { outcome, arrived, agent_kills, failures }
    })
}

/// Takes a node all the way; how often something on it failed.
async fn owner(user: User, start: Duration) -> usize {
    sleep(start).await;
    let mut deployed = false;
    let mut failures = 0;
    loop {
        sleep(Duration::from_secs(15)).await;
        let Some(node) = user.node().await.filter(end::rests) else { continue };
        use ProvisionState as P;
        let cleaned = node.run.as_ref().is_some_and(|run| run.kind == RunKind::AutomatedClean);
        let verb = match node.provision_state {
            P::Enroll => "manage",
            P::Manageable => "provide",
            P::Available if deployed && cleaned => return failures,
            P::Available => "active",
            P::Active => {
                deployed = true;
                "deleted"
            }
            P::CleanFail => "manage",
            _ => "deleted",
        };
        let asked = user.verb(verb, Value::Null).await;
        let failed = node.provision_state.as_str().ends_with("failed") || node.provision_state == P::Error;
        if failed && asked.is_ok_and(|answer| answer.is_good()) {
            failures += 1;
        }
    }
}

async fn kill_controllers(world: Arc<World>, times: u32) {
    for _ in 0..times {
        sleep(world.rng.seconds(10..60)).await;
        let fuse = Fuse { calls: world.rng.number(0..200), host: 0, after: world.rng.chance(0.5) };
        *held(&world.fuse) = Some(fuse);
        sleep(world.rng.seconds(1..10)).await;
        *held(&world.fuse) = None;
        world.kill_controller(0, "where it stands");
        sleep(world.rng.seconds(1..20)).await;
        world.start_controller(0);
    }
}

async fn kill_agents(world: Arc<World>, times: u32) {
    let mut killed = 0;
    while killed < times {
        sleep(world.rng.seconds(5..70)).await;
        let running: Vec<_> =
            world.machines.iter().filter(|machine| machine.agent().is_some()).cloned().collect();
        if !running.is_empty() {
            agent::kill(&world, world.rng.pick(&running));
            killed += 1;
            held(&world.ground_truth).agent_kills += 1;
        }
    }
}

/// Everything that arrived is available, and clean.
async fn settled(world: &Arc<World>) {
    for machine in &world.machines {
        let Some(node) = User::of(world, machine).node().await else { continue };
        let state = node.provision_state;
        if state != ProvisionState::Available || machine.state().is_dirty() {
            let (error, disks) = (node.last_error, machine.state().disks.clone());
            let what = format!("{} is {}, {error:?}, {disks:?}", machine.name, state.as_str());
            world.violated("every_node_arrives", what);
        }
    }
}
