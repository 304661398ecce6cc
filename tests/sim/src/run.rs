//! One seed from its beginning to its end.

use crate::clock_jumps;
use crate::controllers::Controllers;
use crate::faults::Faults;
use crate::held;
use crate::http::Request;
use crate::invariants::{end, watch_due};
use crate::machine::Machine;
use crate::rng::SimRng;
use crate::storm;
use crate::trace::Detail;
use crate::user::{TRAITS, User};
use crate::world::{Violation, World};
use model::{ProvisionState, RunKind};
use serde_json::json;
use std::cell::Cell;
use std::sync::{Arc, Once};
use std::time::Duration;
use store::prelude::*;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// After the storm everything comes to rest within this: the longest limits of the settings, one after another.
const COMES_TO_REST: Duration = Duration::from_secs(8 * 3600);
/// A node that nothing happens to is cleaned within this.
const IS_CLEANED: Duration = Duration::from_secs(8 * 3600);
/// Messages in flight when the faults end have arrived after this.
const AFTERMATH: Duration = Duration::from_secs(300);

/// The outcome of a seed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Its nodes.
    pub nodes: usize,
    /// Its faults.
    pub faults: Faults,
    /// The first rule that did not hold.
    pub violation: Option<Violation>,
    /// Hash of all stored writes, if they are hashed.
    pub hash: Option<u64>,
    /// How many they were.
    pub writes: u64,
    /// How often the controller was killed.
    pub kills: usize,
    /// How often a controller took over a lease that another had not released.
    pub takeovers: usize,
    /// Steps that really began.
    pub steps: usize,
    /// How often a conductor looked at what is due.
    pub looks: u64,
    /// Seconds of the world.
    pub seconds: u64,
}

thread_local! {
    static PANIC: Cell<Option<String>> = const { Cell::new(None) };
}

/// Run a seed: a small world, or one of `nodes`; a `loud` one prints what happens.
pub fn run(seed: u64, nodes: Option<usize>, loud: bool) -> Outcome {
    run_with(seed, Controllers::drawn(seed), nodes, loud)
}

/// Run a seed, and hash what is stored.
pub fn run_hashed(seed: u64) -> Outcome {
    story_of(seed, Controllers::drawn(seed), None, Detail::Hash)
}

/// The same as [`run`] with these controllers.
pub fn run_with(seed: u64, controllers: Controllers, nodes: Option<usize>, loud: bool) -> Outcome {
    story_of(seed, controllers, nodes, Detail::printed(loud))
}

fn story_of(seed: u64, controllers: Controllers, nodes: Option<usize>, detail: Detail) -> Outcome {
    within(|| async move {
        let machines = |rng: &SimRng| {
            let drawn = usize::try_from(rng.number(1..5)).unwrap_or(1);
            (0..nodes.unwrap_or(drawn)).map(|index| Machine::drawn(rng, index)).collect()
        };
        let world = World::with(seed, &controllers, machines, detail);
        let mut faults = Faults::drawn(&world.rng);
        faults.clock_jumps = clock_jumps::drawn(seed, faults.lasts);
        faults.controllers = controllers;
        world.trace.note(|| format!("seed {seed}: {} nodes, {faults:?}", world.machines.len()));
        tokio::select! {
            biased;
            () = world.broken.cancelled() => {}
            () = story(&world, &faults) => {}
        }
        summed_up(&world, seed, faults)
    })
}

/// Run a world in a runtime of its own, with its time paused.
pub fn within<F: Future>(world: impl FnOnce() -> F) -> F::Output {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANIC.set(Some(panic.to_string()));
            before(panic);
        }));
    });
    PANIC.set(None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(world()),
        Err(error) => panic!("no runtime: {error}"),
    }
}

/// What came of a world.
pub fn summed_up(world: &World, seed: u64, faults: Faults) -> Outcome {
    if let Some(panic) = PANIC.take() {
        world.violated("nothing_panics", panic);
    }
    let (hash, writes) = world.trace.sum();
    let ground_truth = held(&world.ground_truth);
    Outcome {
        seed,
        nodes: world.machines.len(),
        faults,
        violation: world.violation(),
        hash,
        writes,
        kills: ground_truth.kills.len(),
        takeovers: ground_truth.takeovers,
        steps: ground_truth.machines.iter().map(|machine| machine.executions.len()).sum(),
        looks: ground_truth.looks,
        seconds: Duration::from_secs_f64(world.clock.seconds()).as_secs(),
    }
}

async fn story(world: &Arc<World>, faults: &Faults) {
    begin(world).await;
    *held(&world.faults) = faults.clone();
    if faults.is_calm() {
        *held(&world.calm_since) = Some(world.now());
    }
    let mut watching = JoinSet::new();
    if world.disk.is_shared() {
        watching.spawn(watch_due(world.clone()));
    }
    {
        let mut users = JoinSet::new();
        for machine in &world.machines {
            users.spawn(User::of(world, machine).live());
        }
        storm::rage(world).await;
        users.abort_all();
    }
    storm::calm_down(world);
    rest(world).await;
    *held(&world.calm_since) = Some(world.now());
    clean(world).await;
    judge(world).await;
}

/// Enrol every node while nothing goes wrong.
pub async fn begin(world: &Arc<World>) {
    world.hosts.iter().for_each(|host| world.start_controller(host.index));
    for machine in &world.machines {
        User::of(world, machine).enrol().await;
    }
    let Some(machine) = world.machines.first() else { return };
    for name in TRAITS {
        let steps = json!([{"interface": "deploy", "step": "hold", "args": {}, "priority": 150}]);
        let steps = if name == "CUSTOM_PLAIN" {
            json!([{"interface": "power", "step": "wait", "args": {"seconds": 5}, "priority": 40}])
        } else {
            steps
        };
        let template =
            Request::new("POST", "/v1/deploy_templates").with(json!({"name": name, "steps": steps}));
        match world.send(machine, template).await {
            Ok(answer) if answer.is_good() => {}
            other => world.violated("the_world_can_be_set_up", format!("deploy template {name}: {other:?}")),
        }
    }
}

/// Wait until every node has come to rest; holds are released.
pub async fn rest(world: &Arc<World>) {
    sleep(AFTERMATH).await;
    let end = Instant::now() + COMES_TO_REST;
    while Instant::now() < end {
        let mut resting = true;
        for machine in &world.machines {
            let user = User::of(world, machine);
            let Some(node) = user.node().await else { continue };
            resting &= end::rests(&node);
            if node.provision_state.as_str().ends_with("hold") {
                let _ = user.verb("unhold", json!({})).await;
            }
        }
        if resting {
            return;
        }
        sleep(Duration::from_secs(20)).await;
    }
}

/// Whatever became of it, every node can be cleaned and given out again.
pub async fn clean(world: &Arc<World>) {
    let mut users = JoinSet::new();
    let since = world.now();
    for machine in &world.machines {
        let user = User::of(world, machine);
        users.spawn(async move {
            loop {
                sleep(Duration::from_secs(10)).await;
                let Some(node) = user.node().await.filter(end::rests) else { continue };
                // Available it may have been before: it counts only when it was cleaned now.
                let now = |run: &model::Run| {
                    run.kind == RunKind::AutomatedClean && run.started_at >= since && !run.is_active()
                };
                if node.provision_state == ProvisionState::Available && node.run.as_ref().is_some_and(now) {
                    return;
                }
                let _ = user.towards_available(&node).await;
            }
        });
    }
    let all = async { while users.join_next().await.is_some() {} };
    if tokio::time::timeout(IS_CLEANED, all).await.is_err() {
        for machine in &world.machines {
            if let Some(node) = User::of(world, machine).node().await
                && node.provision_state != ProvisionState::Available
            {
                let (state, error) = (node.provision_state.as_str(), node.last_error);
                world.violated(
                    "every_node_can_be_cleaned",
                    format!("{} is in {state}, last error {error:?}", machine.name),
                );
            }
        }
    }
}

/// The rules for the end.
pub async fn judge(world: &World) {
    for (rule, holds) in
        [("none_lost", end::none_lost(world).await), ("none_stuck", end::none_stuck(world).await)]
    {
        if let Err(what) = holds {
            world.violated(rule, what);
        }
    }
}
