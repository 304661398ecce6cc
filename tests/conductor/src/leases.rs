//! Leases that a controller which was killed left behind, and those that one loses.

use crate::situation::{catalogue_step, heard};
use crate::world::{Running, World};
use bmc::Builtin;
use conductor::agent_client::AgentClient;
use conductor::decision::Action;
use conductor::{Executor, LiveExecutor, Settings};
use model::agent::AgentKind;
use model::{Contact, PlannedStep, PowerState, PowerTarget, ProvisionState, RunKind, StepKind};
use serde_json::Map;
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, Lease, SystemClock, prelude::*};

/// Found by killing the real controller after each of its writes (`tests/kill`): a node at rest that nothing wakes
/// stayed locked for users for as long as a lease is taken for.
#[tokio::test(start_paused = true)]
async fn a_killed_controller_leaves_no_node_locked() {
    for (holder, is_given_back) in [("sim", true), ("another", false)] {
        let world = World::new().await;
        world.put(ProvisionState::CleanFail, |node| node.next_wake_at = None).await;
        let now = world.clock.now();
        let until = now.after(Duration::from_secs(300));
        world.store.take_lease(world.node, holder, now, until).await.unwrap().unwrap();

        let settings = Settings { power_sync_s: 0, ..Settings::default() };
        let (stop, task) = world.conductor(settings);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let left = world.store.lease_holder(world.node, world.clock.now()).await.unwrap();
        assert_eq!(left.is_none(), is_given_back, "held by {holder}: {left:?}");
        stop.cancel();
        task.await.unwrap();
    }
}

/// A world in which an action takes ten seconds, just when the node is to be powered off.
async fn about_to_power_off() -> (Arc<World>, Running) {
    let world = World::new().await;
    world.put(ProvisionState::Manageable, |node| node.power_state = Some(PowerState::On)).await;
    *world.action_time.lock().unwrap() = Duration::from_secs(10);
    let running = world.provide(Settings { power_sync_s: 0, ..Settings::default() }).await;
    while world.actions().last().is_none_or(|action| action != "SetPower") {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    (world, running)
}

/// Another controller has taken the lease over: the action is given up, and the node is left to that one.
#[tokio::test(start_paused = true)]
async fn an_action_ends_when_the_lease_is_lost() {
    let (world, _running) = about_to_power_off().await;
    let node = world.store.node(world.node).await.unwrap();
    let epoch = *world.epochs.lock().unwrap().last().unwrap();
    world.store.release_lease(Lease { node: world.node, epoch }).await.unwrap();
    let now = world.clock.now();
    let until = now.after(Duration::from_secs(3600));
    world.store.take_lease(world.node, "another", now, until).await.unwrap().unwrap();
    let begun = world.actions().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(*world.unleased.lock().unwrap(), [] as [&str; 0]);
    assert_eq!(world.store.node(world.node).await.unwrap(), node, "nothing is written under the lost lease");
    assert_eq!(world.actions().len(), begun, "no other action begins");
}

/// The process is stopped in the middle of an action for longer than its lease lasts. When it goes on, the time for the action
/// has come, too; it is not done any more.
#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_does_nothing_under_its_old_lease() {
    let (world, _running) = about_to_power_off().await;
    tokio::time::advance(Duration::from_secs(60)).await;
    *world.action_time.lock().unwrap() = Duration::from_millis(30);
    world.until_state(ProvisionState::Available).await;
    assert_eq!(*world.unleased.lock().unwrap(), [] as [&str; 0]);
}

/// A change that a BMC is asked for, or an agent that knows of no epochs, waits until a call of the controller before has ended.
#[tokio::test]
async fn changes_that_are_never_refused_wait_for_those_of_the_controller_before() {
    let timeout = Duration::from_secs(60);
    let clock = Arc::new(SystemClock::default());
    let agents = AgentClient::new(timeout);
    let executor = LiveExecutor::new(Arc::new(Builtin::default()), agents, clock, Settings::default());
    let (ours, theirs) = (heard("boot-1"), Contact { agent: Some(AgentKind::Ipa), ..heard("boot-1") });
    let ask = Action::AskCommand { command_id: "c".into() };
    let step = Box::new(PlannedStep { step: catalogue_step("erase_devices", 10), given: Map::new() });
    let run = |polling| Action::RunStep {
        command_id: "c".into(),
        kind: StepKind::Clean,
        step: step.clone(),
        polling,
    };
    let send = Action::SendStep { command_id: "c".into(), run: RunKind::AutomatedClean, step: step.clone() };
    for (action, of_ours, of_theirs) in [
        (Action::SetPower(PowerTarget::Off), bmc::LONGEST_REQUEST, bmc::LONGEST_REQUEST),
        (Action::SetBootDevice, bmc::LONGEST_REQUEST, bmc::LONGEST_REQUEST),
        (run(false), bmc::LONGEST_REQUEST, bmc::LONGEST_REQUEST),
        (send, Duration::ZERO, timeout),
        // They change nothing.
        (run(true), Duration::ZERO, Duration::ZERO),
        (Action::ReadPower, Duration::ZERO, Duration::ZERO),
        (ask, Duration::ZERO, Duration::ZERO),
        (Action::AskSteps(StepKind::Clean), Duration::ZERO, Duration::ZERO),
    ] {
        assert_eq!(executor.unfenced_call(&ours, &action), of_ours, "{action:?}");
        assert_eq!(executor.unfenced_call(&theirs, &action), of_theirs, "{action:?}");
    }
    assert!(bmc::LONGEST_REQUEST >= Duration::from_secs(30));
}
