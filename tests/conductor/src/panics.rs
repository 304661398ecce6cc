//! A defect of this program that shows as a panic while one node is driven: the other nodes and the process are not
//! affected, and the node is not lost.

use crate::world::{Running, World};
use conductor::Settings;
use model::{Node, ProvisionState, Timestamp, Verb};
use room::SimClock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::{Clock, prelude::*};
use tokio::time::sleep;

/// The text of the panics of the world.
const PANIC: &str = "a defect of the driver";

async fn lease(world: &Arc<World>) -> Option<String> {
    world.store.lease_holder(world.node, world.clock.now()).await.unwrap()
}

/// Wait until so many more actions were begun.
async fn actions(world: &Arc<World>, more: usize) {
    let wanted = world.actions().len() + more;
    while world.actions().len() < wanted {
        sleep(Duration::from_millis(10)).await;
    }
}

/// The conductor drives the node again, and ends when it is stopped.
async fn drives_again(world: &Arc<World>, (stop, task): Running) {
    world.verb(Verb::Provide).await;
    world.until_state(ProvisionState::Available).await;
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_panicked_is_tried_again_after_a_pause() {
    let world = World::new().await;
    let settings = Settings::default();
    *world.panics.lock().unwrap() = settings.max_attempts - 1;
    let (stop, task) = world.provide(settings.clone()).await;
    actions(&world, 1).await;
    let begun = world.clock.now();
    // The node is not locked while the conductor waits.
    let (begun_actions, pause) = (world.actions().len(), settings.retry_pause());
    assert!(pause > Duration::from_secs(1), "{pause:?}");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(lease(&world).await, None);
    assert_eq!(world.actions().len(), begun_actions, "the pass was tried again without a pause");
    actions(&world, 3).await;
    let took = world.clock.now().since(begun);
    assert!(took >= 3 * pause, "{took:?}");
    world.until_state(ProvisionState::Available).await;
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_fails_with_the_text_of_the_panic_after_max_attempts() {
    let world = World::new().await;
    let settings = Settings { power_sync_s: 0, ..Settings::default() };
    *world.panics.lock().unwrap() = u32::MAX;
    let conductor = world.provide(settings.clone()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.as_deref().unwrap_or_default().contains(PANIC), "{:?}", node.last_error);
    assert!(node.maintenance && node.fault.as_deref() == Some("clean failure"), "{node:#?}");
    assert_eq!(world.actions().len(), usize::try_from(settings.max_attempts).unwrap());
    assert!(world.texts().await.last().unwrap().contains(PANIC));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(lease(&world).await, None);

    // The node is driven again as soon as a user wants it.
    *world.panics.lock().unwrap() = 0;
    world.verb(Verb::Manage).await;
    drives_again(&world, conductor).await;
}

/// Storing the failure asks nothing of the driver.
#[tokio::test(start_paused = true)]
async fn a_run_also_fails_when_the_node_cannot_be_loaded_without_a_panic() {
    let world = World::new().await;
    world.loading_panics.store(true, Ordering::Relaxed);
    let conductor = world.provide(Settings { power_sync_s: 0, ..Settings::default() }).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.as_deref().unwrap_or_default().contains(PANIC), "{:?}", node.last_error);
    world.loading_panics.store(false, Ordering::Relaxed);
    world.verb(Verb::Manage).await;
    drives_again(&world, conductor).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_at_rest_goes_into_maintenance_instead() {
    let world = World::new().await;
    let settings = Settings { power_sync_s: 60, ..Settings::default() };
    *world.panics.lock().unwrap() = u32::MAX;
    let conductor = world.conductor(settings.clone());
    let in_maintenance = |node: &Node| node.maintenance;
    world.put(ProvisionState::Manageable, |node| node.next_wake_at = node.provision_updated_at).await;
    let node = world.until("in maintenance", in_maintenance).await;
    assert_eq!(node.provision_state, ProvisionState::Manageable);
    for text in [&node.last_error, &node.maintenance_reason] {
        assert!(text.as_deref().unwrap_or_default().contains(PANIC), "{text:?}");
    }
    // It is looked at again as often as any node at rest, and nothing more is written.
    sleep(Duration::from_secs(3600)).await;
    let (tries, looks) = (world.actions().len(), 3600 / 60 + 2);
    assert!(tries <= looks * usize::try_from(settings.max_attempts).unwrap(), "{tries} tries in an hour");
    let left = world.store.node(world.node).await.unwrap();
    assert_eq!(world.texts().await.len(), 1, "{left:#?} {:#?}", world.texts().await);

    *world.panics.lock().unwrap() = 0;
    drives_again(&world, conductor).await;
}

/// A clock that can break for everything but the loop of the conductor: then not even the failure can be stored.
struct ClockOfPasses {
    clock: Arc<SimClock>,
    broken: AtomicBool,
    conductor: OnceLock<tokio::task::Id>,
}

impl Clock for ClockOfPasses {
    fn now(&self) -> Timestamp {
        let in_pass = tokio::task::try_id() != self.conductor.get().copied();
        assert!(!in_pass || !self.broken.load(Ordering::Relaxed), "a defect of the clock");
        self.clock.now()
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_cannot_be_stored_is_tried_at_the_pace_of_the_pause_until_it_can() {
    let world = World::new().await;
    let settings = Settings { power_sync_s: 0, ..Settings::default() };
    let (clock, broken) = (world.clock.clone(), AtomicBool::new(false));
    let clock = Arc::new(ClockOfPasses { clock, broken, conductor: OnceLock::new() });
    let (stop, task) = world.conductor_at(clock.clone(), settings.clone());
    clock.conductor.set(task.id()).unwrap();
    sleep(Duration::from_secs(1)).await;
    clock.broken.store(true, Ordering::Relaxed);
    world.verb(Verb::Provide).await;
    // A pass that spun would not let the paused time go on.
    sleep(Duration::from_secs(600)).await;
    assert_eq!(lease(&world).await, None);
    assert_eq!(world.store.node(world.node).await.unwrap().provision_state, ProvisionState::Cleaning);
    clock.broken.store(false, Ordering::Relaxed);
    let fixed = world.clock.now();
    actions(&world, 1).await;
    assert!(world.clock.now().since(fixed) <= 2 * settings.retry_pause());
    world.until_state(ProvisionState::Available).await;

    // A conductor that is stopped does not wait for the next try.
    clock.broken.store(true, Ordering::Relaxed);
    world.verb(Verb::Manage).await;
    sleep(Duration::from_millis(100)).await;
    stop.cancel();
    tokio::time::timeout(Duration::from_millis(100), task).await.expect("it stops at once").unwrap();
}
