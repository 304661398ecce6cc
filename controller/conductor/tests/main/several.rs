//! Several controllers that share a store.

use crate::deployment;
use crate::world::{Running, World};
use conductor::Settings;
use model::{ProvisionState, Verb};
use std::sync::Arc;
use std::time::Duration;
use store::memory::MemoryStore;
use store::prelude::*;
use tokio::time::{Instant, sleep};

/// How long the others may take to begin where one has died.
const TAKE_OVER: Duration = Duration::from_secs(15);

/// Two controllers in the middle of the first step of a cleaning; the one that drives the node, and the other.
async fn in_the_middle_of_a_step() -> (Arc<World>, (String, Running), (String, Running)) {
    in_the_middle_of(World::with(MemoryStore::shared()).await, Verb::Provide).await
}

/// The same of any verb.
async fn in_the_middle_of(
    world: Arc<World>,
    verb: Verb,
) -> (Arc<World>, (String, Running), (String, Running)) {
    let mut all: Vec<(String, Running)> = Vec::new();
    for name in ["c1", "c2"] {
        all.push((name.to_owned(), world.conductor_named(name, Settings::default())));
    }
    // Both have read of each other.
    while world.store.conductors().await.unwrap().len() < 2 {
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(3)).await;
    let before = world.actors.lock().unwrap().len();
    world.verb(verb).await;
    while world.ran().is_empty() {
        sleep(Duration::from_millis(100)).await;
    }
    let actors = world.actors.lock().unwrap()[before..].to_vec();
    assert!(actors.iter().all(|actor| *actor == actors[0]), "one of them drives the node: {actors:?}");
    if actors[0] != all[0].0 {
        all.reverse();
    }
    let other = all.pop().unwrap();
    (world, all.pop().unwrap(), other)
}

/// How long it takes until the other one does something.
async fn until_it_acts(world: &World, name: &str) -> Duration {
    let begun = Instant::now();
    while world.actors.lock().unwrap().last().is_none_or(|actor| actor != name) {
        sleep(Duration::from_millis(100)).await;
    }
    begun.elapsed()
}

async fn arrives_with_each_step_run_once(world: &World) {
    world.until_state(ProvisionState::Available).await;
    assert_eq!(world.ran(), ["erase_devices_metadata", "erase_devices"]);
    assert_eq!(*world.unleased.lock().unwrap(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_nodes_of_a_controller_that_dies_are_taken_over() {
    let (world, (_, (_, task)), (other, _running)) = in_the_middle_of_a_step().await;
    task.abort();
    let took = until_it_acts(&world, &other).await;
    assert!(took <= TAKE_OVER, "{took:?}");
    arrives_with_each_step_run_once(&world).await;
}

/// specs/deploy-steps.txt: "the deployment can continue on any conductor that supports the node".
#[tokio::test(start_paused = true)]
async fn a_deployment_goes_on_at_another_controller() {
    let world = deployment::world_with(MemoryStore::shared()).await;
    let (world, (_, (_, task)), (other, _running)) = in_the_middle_of(world, Verb::Deploy).await;
    task.abort();
    let took = until_it_acts(&world, &other).await;
    assert!(took <= TAKE_OVER, "{took:?}");
    let node = world.until_state(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
    let by_the_agent =
        |name: &&String| ["write_image", "tune", "install_bootloader"].contains(&name.as_str());
    let ran = world.ran();
    let ran: Vec<&String> = ran.iter().filter(by_the_agent).collect();
    assert_eq!(ran, ["write_image", "tune", "install_bootloader"], "each once");
    assert_eq!(world.boots_from.lock().unwrap().as_deref(), Some("disk"));
    assert_eq!(*world.unleased.lock().unwrap(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_stops_leaves_its_nodes_to_the_others() {
    let (world, (_, (stop, task)), (other, _running)) = in_the_middle_of_a_step().await;
    stop.cancel();
    task.await.unwrap();
    let known = world.store.conductors().await.unwrap();
    assert_eq!(
        known.iter().map(|one| &one.hostname).collect::<Vec<_>>(),
        [&other],
        "its report is gone at once"
    );
    // The next question to the agent is due after five seconds.
    let took = until_it_acts(&world, &other).await;
    assert!(took <= Duration::from_secs(6), "{took:?}");
    arrives_with_each_step_run_once(&world).await;
}

/// No other controller drives its nodes, and no other name than its own may stay: it may have had another one before.
#[tokio::test(start_paused = true)]
async fn a_controller_with_a_store_of_its_own_drives_all_nodes() {
    let world = World::new().await;
    let alone = world.conductor_named("before", Settings::default());
    sleep(Duration::from_secs(1)).await;
    alone.0.cancel();
    alone.1.await.unwrap();
    let _renamed = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::Available).await;
    let known = world.store.conductors().await.unwrap();
    assert_eq!(known.iter().map(|one| one.hostname.as_str()).collect::<Vec<_>>(), ["sim"]);
}

/// A controller drives the nodes of its conductor group, and no controller drives those of a group whose controllers are gone.
#[tokio::test(start_paused = true)]
async fn a_node_waits_for_a_controller_of_its_group() {
    let world = World::with(MemoryStore::shared()).await;
    world
        .put(ProvisionState::Manageable, |node| {
            drop(node.other.insert("conductor_group".into(), "rack1".into()))
        })
        .await;
    let of = |group: &str| Settings { conductor_group: group.to_owned(), ..Settings::default() };
    let _other = world.conductor_named("c2", of("rack2"));
    sleep(Duration::from_secs(3)).await;
    world.verb(Verb::Provide).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.actors.lock().unwrap().len(), 0);
    let _own = world.conductor_named("c1", of("Rack1"));
    world.until_state(ProvisionState::Available).await;
    assert!(world.actors.lock().unwrap().iter().all(|actor| actor == "c1"));
}
