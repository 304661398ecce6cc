//! Several controllers that share a store.

use crate::deployment;
use crate::situation::{NOW, heard, ipa, issued};
use crate::world::{Running, World};
use conductor::Settings;
use conductor::stages::may_be_unfenced;
use model::run::Cursor;
use model::{Contact, Node, PowerState, ProvisionState, Run, RunKind, Verb};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::memory::MemoryStore;
use store::{Clock, prelude::*};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

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

/// Until this holds, at most an hour of virtual time.
async fn within_limit(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..36_000 {
        if holds().await {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not hold within an hour");
}

/// A BMC refuses nothing, and what it was asked for by the controller that died may come late. So the other one has the node soon, and
/// waits with what it changes itself.
#[tokio::test(start_paused = true)]
async fn a_change_waits_for_a_call_of_the_controller_that_died() {
    let world = World::with(MemoryStore::shared()).await;
    world.put(ProvisionState::Manageable, |node| node.power_state = Some(PowerState::On)).await;
    *world.action_time.lock().unwrap() = Duration::from_secs(10);
    let settings = Settings { power_sync_s: 0, ..Settings::default() };
    let all = ["c1", "c2"].map(|name| (name, world.conductor_named(name, settings.clone())));
    sleep(Duration::from_secs(5)).await;
    world.verb(Verb::Provide).await;
    within_limit(async || world.actions().last().is_some_and(|action| action == "SetPower")).await;
    let (dead, done) = (world.actors.lock().unwrap().last().unwrap().clone(), world.actions().len());
    let (begun, other) = (Instant::now(), if dead == "c1" { "c2" } else { "c1" });
    all.iter().find(|(name, _)| *name == dead).unwrap().1.1.abort();

    let holder = || async { world.store.lease_holder(world.node, world.clock.now()).await.unwrap() };
    within_limit(async || holder().await.as_deref() == Some(other)).await;
    assert!(begun.elapsed() <= TAKE_OVER, "{:?}", begun.elapsed());
    let acts = async || {
        let has_acted = world.actions().len() > done;
        assert!(has_acted || holder().await.as_deref() == Some(other), "it keeps the lease while it waits");
        has_acted
    };
    within_limit(acts).await;
    assert_eq!(world.actions()[done], "SetPower");
    assert!(begun.elapsed() >= bmc::LONGEST_REQUEST + Duration::from_secs(9), "{:?}", begun.elapsed());
    arrives_with_each_step_run_once(&world).await;
}

/// A manageable node whose controller died while it read its state, when the other one holds the lease; that one, and both.
async fn at_rest_after_a_death(
    settings: Settings,
) -> (Arc<World>, &'static str, [(&'static str, Running); 2]) {
    let world = World::with(MemoryStore::shared()).await;
    at_rest_after_a_death_in(world, settings).await
}

/// The same in this world.
async fn at_rest_after_a_death_in(
    world: Arc<World>,
    settings: Settings,
) -> (Arc<World>, &'static str, [(&'static str, Running); 2]) {
    *world.action_time.lock().unwrap() = Duration::from_secs(10);
    let all = ["c1", "c2"].map(|name| (name, world.conductor_named(name, settings.clone())));
    sleep(Duration::from_secs(5)).await;
    let now = world.clock.now();
    world.put(ProvisionState::Manageable, |node| node.next_wake_at = Some(now)).await;
    within_limit(async || world.actions().last().is_some_and(|action| action == "ReadState")).await;
    let dead = world.actors.lock().unwrap().last().unwrap().clone();
    let other = if dead == "c1" { "c2" } else { "c1" };
    all.iter().find(|(name, _)| *name == dead).unwrap().1.1.abort();
    *world.action_time.lock().unwrap() = Duration::ZERO;
    within_limit(async || holder(&world).await.as_deref() == Some(other)).await;
    (world, other, all)
}

async fn holder(world: &World) -> Option<String> {
    world.store.lease_holder(world.node, world.clock.now()).await.unwrap()
}

/// Found by the simulation: a node whose controller had died in a call came to rest at the other one, which released the lease. So the next
/// change, which a user asked for, was made before that call had to be over.
#[tokio::test(start_paused = true)]
async fn a_node_at_rest_stays_leased_until_a_call_of_the_controller_that_died_has_ended() {
    let (world, _, _running) = at_rest_after_a_death(Settings::default()).await;
    let begun = Instant::now();
    within_limit(async || holder(&world).await.is_none()).await;
    let took = begun.elapsed();
    // No agent has been heard: no call of one can be under way.
    let expected = bmc::LONGEST_REQUEST..bmc::LONGEST_REQUEST + Duration::from_secs(2);
    assert!(expected.contains(&took), "{took:?}");
}

/// The longer one counts: this controller has read what the other one had reported.
#[tokio::test(start_paused = true)]
async fn the_wait_is_as_long_as_a_request_of_either_controller_may_take() {
    // Which of them drives a node, and so dies here, is another one for each node.
    let mut seen = BTreeSet::new();
    for timeouts in [[10, 10], [10, 30]].into_iter().cycle().take(100) {
        let world = World::with(MemoryStore::shared()).await;
        *world.request_timeouts.lock().unwrap() =
            ["c1", "c2"].map(str::to_owned).into_iter().zip(timeouts).collect();
        let (world, successor, _running) = at_rest_after_a_death_in(world, Settings::default()).await;
        let begun = Instant::now();
        within_limit(async || holder(&world).await.is_none()).await;
        let (took, longest) = (begun.elapsed(), Duration::from_secs(timeouts[0].max(timeouts[1])));
        assert!((longest..longest + Duration::from_secs(2)).contains(&took), "{timeouts:?}: {took:?}");
        seen.insert((timeouts, successor));
        if seen.len() == 4 {
            return;
        }
    }
    panic!("seen only: {seen:?}");
}

/// As one of an earlier version, or one that has left.
#[tokio::test(start_paused = true)]
async fn without_a_report_of_the_controller_before_the_wait_is_the_longest() {
    let world = World::with(MemoryStore::shared()).await;
    *world.request_timeouts.lock().unwrap() = ["c1", "c2"].map(|name| (name.to_owned(), 10)).into();
    *world.action_time.lock().unwrap() = Duration::from_secs(10);
    let all = ["c1", "c2"].map(|name| (name, world.conductor_named(name, Settings::default())));
    sleep(Duration::from_secs(5)).await;
    let now = world.clock.now();
    world.put(ProvisionState::Manageable, |node| node.next_wake_at = Some(now)).await;
    within_limit(async || world.actions().last().is_some_and(|action| action == "ReadState")).await;
    let dead = world.actors.lock().unwrap().last().unwrap().clone();
    all.iter().find(|(name, _)| *name == dead).unwrap().1.1.abort();
    world.store.remove_conductor(&dead).await.unwrap();
    *world.action_time.lock().unwrap() = Duration::ZERO;
    within_limit(async || holder(&world).await.is_some_and(|holder| holder != dead)).await;
    let begun = Instant::now();
    within_limit(async || holder(&world).await.is_none()).await;
    let took = begun.elapsed();
    let expected = bmc::LONGEST_REQUEST..bmc::LONGEST_REQUEST + Duration::from_secs(2);
    assert!(expected.contains(&took), "{took:?}");
}

/// Found by `soak --part fleet`: while the lease was kept, nothing was done, not even what needed no call.
#[tokio::test(start_paused = true)]
async fn a_node_whose_lease_is_kept_is_driven_when_it_is_due_and_when_its_bell_rings() {
    let settings = Settings { power_sync_s: 8, ..Settings::default() };
    let (world, other, _running) = at_rest_after_a_death(settings).await;
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    let until_it_reads = async |done: usize| within_limit(async || world.actions().len() > done).await;
    until_it_reads(world.actions().len()).await;
    let due_after = begun.elapsed();
    assert!(due_after <= Duration::from_secs(8), "{due_after:?}");
    let (now, begun) = (world.clock.now(), Instant::now());
    let done = world.actions().len();
    world.put(ProvisionState::Manageable, |node| node.next_wake_at = Some(now)).await;
    until_it_reads(done).await;
    assert!(begun.elapsed() <= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(holder(&world).await.as_deref(), Some(other), "the lease is still kept");
    assert_eq!(world.actions().last().unwrap(), "ReadState");
    assert_eq!(*world.unleased.lock().unwrap(), [] as [&str; 0]);
}

/// A controller that took the node next would not know of the call.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_kept_stays_so_when_a_pass_panics_and_when_the_node_is_given_up() {
    let settings = Settings::default();
    let (world, other, _running) = at_rest_after_a_death(settings.clone()).await;
    let (now, begun) = (world.clock.now(), Instant::now());
    *world.panics.lock().unwrap() = settings.max_attempts;
    world.put(ProvisionState::Manageable, |node| node.next_wake_at = Some(now)).await;
    let mut last = settings.max_attempts;
    while !world.store.node(world.node).await.unwrap().maintenance {
        assert_eq!(holder(&world).await.as_deref(), Some(other), "{last} panics are left");
        last = *world.panics.lock().unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(*world.panics.lock().unwrap(), 0);
    assert!(begun.elapsed() < bmc::LONGEST_REQUEST, "the test looks while the lease is kept");
    within_limit(async || holder(&world).await.is_none()).await;
    let took = begun.elapsed();
    let expected = bmc::LONGEST_REQUEST..bmc::LONGEST_REQUEST + Duration::from_secs(10);
    assert!(expected.contains(&took), "{took:?}");
}

/// Where a run stands, and whether its controller may have died in a call that is not refused under a lost lease.
/// As after a pause that was longer than the lease: another controller has the node.
#[tokio::test(start_paused = true)]
async fn nothing_is_done_under_a_kept_lease_that_is_lost() {
    let (world, other, _running) = at_rest_after_a_death(Settings::default()).await;
    let now = world.clock.now();
    let taken = world.store.take_lease(world.node, other, now, now.after(TAKE_OVER)).await.unwrap();
    world.store.release_lease(taken.expect("its own holder takes it anew")).await.unwrap();
    let of_third = world.store.take_lease(world.node, "c3", now, now.after(2 * TAKE_OVER)).await.unwrap();
    // It finds out when it renews the lease.
    sleep(Duration::from_secs(4)).await;
    let done = world.actions().len();
    world.put(ProvisionState::Manageable, |node| node.next_wake_at = Some(now)).await;
    sleep(TAKE_OVER).await;
    assert_eq!(world.actions().len(), done, "{:?}", world.actions());
    world.store.release_lease(of_third.expect("it was released")).await.unwrap();
    within_limit(async || world.actions().len() > done).await;
    assert_eq!(*world.unleased.lock().unwrap(), [] as [&str; 0]);
}

#[test]
fn the_row_says_where_no_bmc_was_called() {
    let enrolled = Node::enrolled(Uuid::nil(), "redfish", NOW);
    let may = |cursor: Cursor, contact: Contact| {
        let run = Run { cursor, ..Run::new(RunKind::AutomatedClean, NOW) };
        let node = Node { provision_state: ProvisionState::CleanWait, run: Some(run), ..enrolled.clone() };
        may_be_unfenced(&node, &contact)
    };
    assert!(!may(issued("b", true), heard("b")));
    assert!(may(issued("b", true), ipa()), "it takes a step under any lease");
    assert!(may(issued("b", true), Contact::default()), "the agent is unknown");
    for cursor in [Cursor::AwaitAgent, Cursor::LearnSteps, Cursor::NextStep, Cursor::Hold] {
        assert!(!may(cursor.clone(), Contact::default()), "{cursor:?}");
    }
    for cursor in
        [Cursor::PowerOff, Cursor::PowerOn, Cursor::RestoreBootDevice, Cursor::Reboot, Cursor::TearDown]
    {
        assert!(may(cursor.clone(), heard("b")), "{cursor:?}");
    }
    assert!(may_be_unfenced(&enrolled, &heard("b")), "the power of a node at rest may be changed");
}

/// The row says that the agent had a step, so the controller that died had no call to the BMC under way: nothing is waited for.
#[tokio::test(start_paused = true)]
async fn nothing_waits_where_the_controller_died_in_a_question_to_the_agent() {
    let world = World::with(MemoryStore::shared()).await;
    *world.action_time.lock().unwrap() = Duration::from_secs(2);
    let all = ["c1", "c2"].map(|name| (name, world.conductor_named(name, Settings::default())));
    sleep(Duration::from_secs(5)).await;
    world.verb(Verb::Provide).await;
    while world.actions().iter().filter(|action| *action == "SendStep").count() < 2 {
        sleep(Duration::from_millis(100)).await;
    }
    // The last step is about to end, and the next question will find it so.
    sleep(Duration::from_secs(27)).await;
    let asked = world.actions().len();
    while world.actions().len() == asked {
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(world.actions()[asked], "AskCommand");
    let dead = world.actors.lock().unwrap().last().unwrap().clone();
    let holder = world.store.lease_holder(world.node, world.clock.now()).await.unwrap();
    assert_eq!(holder.as_ref(), Some(&dead), "it dies under a lease");
    all.iter().find(|(name, _)| *name == dead).unwrap().1.1.abort();
    *world.action_time.lock().unwrap() = Duration::ZERO;
    let begun = Instant::now();
    arrives_with_each_step_run_once(&world).await;
    assert!(begun.elapsed() <= TAKE_OVER + Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// Nothing rings when a lease expires, and the node is not due.
#[tokio::test(start_paused = true)]
async fn a_node_whose_bell_rang_while_it_was_held_is_driven_when_the_lease_expires() {
    let world = World::with(MemoryStore::shared()).await;
    let _running = world.conductor_named("c1", Settings::default());
    sleep(Duration::from_secs(3)).await;
    let now = world.clock.now();
    let until = now.after(Duration::from_secs(12));
    world.store.take_lease(world.node, "dead", now, until).await.unwrap().unwrap();
    world.put(ProvisionState::Verifying, |node| node.next_wake_at = None).await;
    let begun = Instant::now();
    world.until("verified", |node| node.provision_state != ProvisionState::Verifying).await;
    assert!(begun.elapsed() <= TAKE_OVER, "{:?}", begun.elapsed());
}

/// Another controller could take the node over at once, and would not know that this one may have died in a call.
#[tokio::test(start_paused = true)]
async fn a_controller_that_starts_again_leaves_its_old_leases() {
    let world = World::with(MemoryStore::shared()).await;
    world.put(ProvisionState::CleanFail, |node| node.next_wake_at = None).await;
    let now = world.clock.now();
    world.store.take_lease(world.node, "c1", now, now.after(Duration::from_secs(12))).await.unwrap().unwrap();
    let _running = world.conductor_named("c1", Settings { power_sync_s: 0, ..Settings::default() });
    let holder = || async { world.store.lease_holder(world.node, world.clock.now()).await.unwrap() };
    sleep(Duration::from_secs(5)).await;
    assert_eq!(holder().await.as_deref(), Some("c1"));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(holder().await, None);
}
