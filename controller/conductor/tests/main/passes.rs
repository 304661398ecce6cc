//! What holds a pass together: its lease, and how much it stores at once.

use crate::world::{World, asked, step};
use conductor::Settings;
use model::{EventKind, ProvisionState, StepKind};
use serde_json::json;
use std::time::Duration;
use store::{Clock, prelude::*};

/// Three actions of a hundred seconds are longer than the lease that was taken before the first.
#[tokio::test(start_paused = true)]
async fn the_lease_outlasts_every_action() {
    let world = World::new().await;
    *world.action_time.lock().unwrap() = Duration::from_secs(100);
    let _conductor = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::Available).await;
    assert!(world.actions().len() > 6);
    assert_eq!(*world.unleased.lock().unwrap(), [] as [&str; 0]);
}

/// The end of a step and the beginning of the next are one write, the agent's acceptance the other.
#[tokio::test(start_paused = true)]
async fn a_step_costs_two_writes_of_the_node() {
    let mut versions = Vec::new();
    for steps in [2, 22] {
        let world = World::new().await;
        world.advertise(
            StepKind::Clean,
            (0..steps).map(|number| step(&format!("step_{number}"), 10 + number, true)).collect(),
        );
        // No polls, each of which is a write.
        let _conductor = world.provide(Settings { agent_poll_s: 3600, ..Settings::default() }).await;
        versions.push(world.until_state(ProvisionState::Available).await.version);
        assert_eq!(world.ran().len(), usize::try_from(steps).unwrap());
    }
    // The node at rest may have been looked at once more.
    let more = versions[1] - versions[0];
    assert!((39..=41).contains(&more), "{more} writes for 20 steps");
}

/// A node that is to be looked at sooner than was known when the conductor went to sleep is looked at in time.
#[tokio::test(start_paused = true)]
async fn a_wake_up_call_that_comes_later_is_heard() {
    let world = World::new().await;
    world.only_out_of_band(StepKind::Clean, &[]);
    let _conductor = world.conductor(Settings::default());
    let wait = asked("power.wait", json!({"args": {"seconds": 1}}));
    for _ in 0..5 {
        // Let it sleep first.
        tokio::time::sleep(Duration::from_secs(15)).await;
        let begun = world.clock.now();
        world.clean(vec![wait.clone()]).await;
        world.until("at work", |node| !node.provision_state.is_stable()).await;
        world.until_state(ProvisionState::Manageable).await;
        let took = world.clock.now().since(begun);
        assert!((1000..1500).contains(&took.as_millis()), "{took:?}");
    }
}

/// What is stored in one write is noted as if it had been stored one by one.
#[tokio::test(start_paused = true)]
async fn every_transition_is_noted_with_the_state_it_leaves() {
    let world = World::new().await;
    let _conductor = world.provide(Settings { stay_on_after_cleaning: true, ..Settings::default() }).await;
    world.until_state(ProvisionState::Available).await;
    let history = world.store.history(world.node).await.unwrap();
    let transitions: Vec<_> = history.iter().filter(|event| event.kind == EventKind::Transition).collect();
    assert!(transitions.len() >= 5, "{:#?}", world.texts().await);
    for event in transitions {
        let left = event.text.split(" -> ").next().unwrap_or_default();
        assert_eq!(event.state.map(ProvisionState::as_str), Some(left), "{}", event.text);
    }
}
