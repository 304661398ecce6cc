//! A node that loses power while it boots: it boots again, at most `max_interruptions` times in a row.

use crate::hello::{self, awaits};
use crate::situation::{NOW, at, heard, node, recorded, snapshot};
use crate::world::{World, step};
use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome};
use conductor::stages::{apply_outcome, decide};
use model::abilities::Inspect;
use model::run::Cursor;
use model::{Contact, Node, PowerState, ProvisionState, StepKind, Verb, Wait};
use std::sync::Arc;
use std::time::Duration;
use store::prelude::*;
use tokio::time::sleep;

/// From the first sign that a node is off to its next boot: a look every 30 s, and another one 5 s later.
const SOON: f64 = 60.0;

fn is_at(cursor: &Cursor) -> impl Fn(&Node) -> bool {
    move |node| node.run.as_ref().is_some_and(|run| run.cursor == *cursor)
}

fn has_run(node: &Node) -> bool {
    node.run.as_ref().is_some_and(model::Run::is_active)
}

async fn world_with_steps() -> Arc<World> {
    let world = World::new().await;
    world.advertise(StepKind::Clean, vec![step("erase_devices", 10, true)]);
    world
}

#[tokio::test(start_paused = true)]
async fn a_node_that_loses_power_while_its_ramdisk_boots_boots_again() {
    let world = world_with_steps().await;
    let _conductor = world.provide(Settings::default()).await;
    world.until("the ramdisk boots", is_at(&Cursor::AwaitAgent)).await;
    let cut = world.clock.seconds();
    world.switch(false);
    world.until("it is powered on again", |_| world.is_on()).await;
    let took = world.clock.seconds() - cut;
    assert!(took < SOON, "{took} s");
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Available, "{:?}", node.last_error);
    let texts = world.texts().await;
    let said = "the node lost power while it booted; the node boots again";
    assert_eq!(texts.iter().filter(|text| text.ends_with(said)).count(), 1, "{texts:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_loses_power_in_every_boot_fails_its_run() {
    let world = world_with_steps().await;
    let settings = Settings::default();
    let most = settings.max_interruptions;
    let _conductor = world.provide(settings).await;
    let mut cuts = 0;
    loop {
        let node = world.until("it boots or has failed", |node| world.is_on() || !has_run(node)).await;
        if !has_run(&node) {
            break;
        }
        world.switch(false);
        cuts += 1;
        world.until("the cut is seen", |node| !world.is_on() || !has_run(node)).await;
    }
    let node = world.ended().await;
    assert_eq!((node.provision_state, cuts), (ProvisionState::CleanFail, most + 1));
    let error = node.last_error.unwrap();
    assert!(error.contains("lost power while it booted (interruption 3)"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_loses_power_before_its_inventory_comes_boots_again() {
    let world = world_with_steps().await;
    world.abilities.lock().unwrap().inspect = Inspect::Agent;
    world.put(ProvisionState::Manageable, |_| {}).await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Inspect).await;
    world.until("the ramdisk boots", is_at(&Cursor::AwaitInventory)).await;
    world.switch(false);
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Manageable, "{:?}", node.last_error);
    let texts = world.texts().await;
    assert!(texts.iter().any(|text| text.contains("lost power while it booted")), "{texts:#?}");
}

/// Firmware that switches the node off and on while it starts is not interrupted.
#[test]
fn a_node_is_without_power_when_two_looks_say_so() {
    let settings = Settings::default();
    let mut node = node(ProvisionState::CleanWait, Cursor::AwaitAgent, 0);
    let look = |node: &Node, seconds: u64| {
        decide(&snapshot(node.clone(), Contact::default(), at(seconds)), &settings)
    };
    let Decision::Sleep { wait, wake_at } = look(&node, 0) else { panic!("it is not waited for") };
    assert_eq!(wake_at, Some(at(30)));
    (node.wait, node.next_wake_at) = (wait, wake_at);
    assert!(matches!(look(&node, 29), Decision::Sleep { wake_at: Some(wake_at), .. } if wake_at == at(30)));
    assert_eq!(look(&node, 30), Decision::Act(Action::ReadPower));

    let seen = |node: &Node, seconds: u64, outcome: Outcome| {
        apply_outcome(
            &snapshot(node.clone(), Contact::default(), at(seconds)),
            &Action::ReadPower,
            outcome,
            &settings,
        )
        .node
    };
    let off = || Outcome::Power(PowerState::Off);
    let once = seen(&node, 30, off());
    assert_eq!((&once.run.as_ref().unwrap().cursor, once.next_wake_at), (&Cursor::AwaitAgent, Some(at(35))));
    assert_eq!(once.wait, node.wait, "the time for the boot goes on");
    assert_eq!(look(&once, 35), Decision::Act(Action::ReadPower));
    let unknown = ActionError { text: "no answer".into(), retryable: true, unreachable: true };
    for nothing in [Outcome::Power(PowerState::On), Outcome::PowerUnknown, Outcome::Failed(unknown)] {
        let on = seen(&once, 35, nothing);
        assert_eq!((on.next_wake_at, &on.wait), (Some(at(65)), &node.wait));
        assert_eq!(seen(&on, 65, off()).run.unwrap().cursor, Cursor::AwaitAgent, "it counts anew");
    }
    let twice = seen(&once, 35, off());
    assert_eq!((twice.run.unwrap().cursor, twice.power_state), (Cursor::PowerOff, Some(PowerState::Off)));
}

/// Where the BMC reports no power state there is nothing to see; and past the deadline nothing is looked at any more.
#[test]
fn a_boot_is_waited_for_until_its_deadline() {
    let settings = Settings::default();
    let mut node = node(ProvisionState::CleanWait, Cursor::AwaitAgent, 0);
    let deadline = Some(at(settings.boot_timeout_s));
    let reason = "the ramdisk to boot and its agent to send a heartbeat".to_owned();
    node.wait = Some(Wait { reason, since: NOW, deadline });
    node.next_wake_at = Some(at(settings.boot_timeout_s - 1));
    let look = |node: &Node, seconds: u64| {
        decide(&snapshot(node.clone(), Contact::default(), at(seconds)), &settings)
    };
    let failed = recorded(look(&node, settings.boot_timeout_s));
    assert_eq!(failed.provision_state, ProvisionState::CleanFail);
    let mut late = node.clone();
    late.next_wake_at = Some(at(settings.boot_timeout_s + 10));
    assert!(matches!(look(&late, 100), Decision::Sleep { wake_at, .. } if wake_at == deadline));
    node.power_state = None;
    assert!(
        matches!(look(&node, settings.boot_timeout_s - 1), Decision::Sleep { wake_at, .. } if wake_at == deadline)
    );
}

#[test]
fn an_agent_that_cannot_be_asked_for_its_steps_may_have_lost_power() {
    let settings = Settings::default();
    let mut node = node(ProvisionState::CleanWait, Cursor::LearnSteps, 0);
    node.run.as_mut().unwrap().attempts = settings.max_attempts - 1;
    node.next_wake_at = Some(NOW);
    let asked = Action::AskSteps(StepKind::Clean);
    let of = |node: &Node| snapshot(node.clone(), heard("boot-1"), NOW);
    assert_eq!(decide(&of(&node), &settings), Decision::Act(asked.clone()));
    let fails =
        |unreachable| Outcome::Failed(ActionError { text: "no answer".into(), retryable: true, unreachable });
    let refused = apply_outcome(&of(&node), &asked, fails(false), &settings).node;
    assert_eq!(refused.provision_state, ProvisionState::CleanFail, "it has answered");
    let silent = apply_outcome(&of(&node), &asked, fails(true), &settings).node;
    assert_eq!(decide(&of(&silent), &settings), Decision::Act(Action::ReadPower));
    let seen = |outcome| apply_outcome(&of(&silent), &Action::ReadPower, outcome, &settings).node;
    let off = seen(Outcome::Power(PowerState::Off));
    assert_eq!((off.run.unwrap().cursor, off.power_state), (Cursor::PowerOff, Some(PowerState::Off)));
    for other in [Outcome::Power(PowerState::On), Outcome::PowerUnknown, fails(true)] {
        let failed = seen(other);
        assert_eq!(failed.provision_state, ProvisionState::CleanFail);
        let error = failed.last_error.unwrap();
        assert!(error.ends_with("could not be asked for its steps: no answer"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_loses_power_before_its_hello_is_powered_on_again() {
    let world = hello::world().await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    let before = world.until("the hello is awaited", |node| awaits(node) && node.wait.is_some()).await;
    world.switch(false);
    let cut = world.clock.seconds();
    // The BMC is deaf at first.
    *world.bmc_stuck.lock().unwrap() = true;
    sleep(Duration::from_secs(60)).await;
    assert!(awaits(&world.store.node(world.node).await.unwrap()) && !world.is_on());
    *world.bmc_stuck.lock().unwrap() = false;
    world.until("it is powered on again", |_| world.is_on()).await;
    let took = world.clock.seconds() - cut;
    assert!(took < 60.0 + SOON, "{took} s");
    let now = world.until("that is stored", |node| node.power_state == Some(PowerState::On)).await;
    assert!(awaits(&now));
    assert_eq!(now.wait, before.wait, "the time for the hello goes on");
    let texts = world.texts().await;
    assert!(texts.iter().any(|text| text.ends_with("it is powered on again")), "{texts:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_goes_off_again_and_again_fails_its_deployment() {
    let world = hello::world().await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    world.until("the hello is awaited", awaits).await;
    for _ in 0..=Settings::default().max_interruptions + 1 {
        let node = world.until("it is on or has failed", |node| world.is_on() || !awaits(node)).await;
        if !awaits(&node) {
            break;
        }
        world.switch(false);
    }
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    let error = node.last_error.unwrap();
    assert!(error.contains("went off before its instance said hello (interruption 3)"), "{error}");
}
