//! Fast track: the ramdisk of a cleaning keeps running, and a deployment begins in it.

use crate::deployment;
use crate::situation::{NOW, at, heard, node, recorded, snapshot};
use crate::world::World;
use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::agent::{SecondAgent, UnsignedAgent};
use model::boot::{Boot, BootStart};
use model::fast_track::KeptRamdisk;
use model::request::{apply_power, begin};
use model::run::{Cursor, Run};
use model::{Contact, Node, PowerState, PowerTarget, ProvisionState, RunKind, StepResult, Verb};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, prelude::*};
use tokio::time::sleep;

const OFF: Action = Action::SetPower(PowerTarget::Off);

fn on() -> Settings {
    Settings { fast_track: true, fast_track_idle_s: 1200, power_sync_s: 0, ..Settings::default() }
}

/// The agent of a boot whose nonce it has shown.
fn of_its_boot() -> Contact {
    Contact { boot: Some(Boot { shown: true, ..Boot::fresh() }), ..heard("b") }
}

/// A cleaning, all of whose steps have succeeded, at its end.
fn cleaned() -> Snapshot {
    let mut node = node(ProvisionState::Cleaning, Cursor::TearDown, 1);
    let run = node.run.as_mut().unwrap();
    for index in 0..2 {
        run.results.push(StepResult::success(index, format!("c{index}"), NOW, Value::Null));
    }
    snapshot(node, of_its_boot(), NOW)
}

fn kept(node: &Node) -> Option<KeptRamdisk> {
    node.run.as_ref().unwrap().ramdisk_kept
}

/// The AVAILABLE node, with its ramdisk kept since [`NOW`].
fn idle() -> Snapshot {
    let seen = cleaned();
    Snapshot { node: recorded(decide(&seen, &on())), ..seen }
}

/// The node as a user asks for its deployment.
fn to_deploy(seen: Snapshot) -> Snapshot {
    let mut node = seen.node.clone();
    begin(&mut node, Run::new(RunKind::Deploy, seen.now), ProvisionState::Deploying, seen.now);
    Snapshot { node, ..seen }
}

fn cursor(node: &Node) -> Cursor {
    node.run.as_ref().unwrap().cursor.clone()
}

/// What keeps a ramdisk from being used: a part of the text, and how it comes about.
type Obstacle = (&'static str, fn(&mut Snapshot));

/// All of them, one at a time.
fn obstacles() -> [Obstacle; 15] {
    [
        ("fast track is switched off", |seen| {
            seen.node.driver_info.insert("fast_track".into(), json!("false"));
        }),
        ("fast track is switched off", |seen| {
            seen.node.driver_info.insert("fast_track".into(), json!("perhaps"));
        }),
        ("uses no agent", |seen| {
            let mut able = (**seen.abilities.as_ref().unwrap()).clone();
            able.agent = false;
            seen.abilities = Ok(Arc::new(able));
        }),
        ("in maintenance", |seen| seen.node.maintenance = true),
        ("has not proved this boot", |seen| {
            seen.node.driver_info.insert("require_tpm".into(), json!(true));
        }),
        ("never powered off", |seen| {
            seen.node.other.insert("disable_power_off".into(), json!(true));
        }),
        ("not known to be on", |seen| seen.node.power_state = Some(PowerState::Off)),
        ("not known to be on", |seen| seen.node.power_state = None),
        ("shown the nonce", |seen| seen.contact.boot.as_mut().unwrap().shown = false),
        ("shown the nonce", |seen| seen.contact.boot = None),
        ("shown the nonce", |seen| seen.contact.token = None),
        ("shown the nonce", |seen| seen.contact.callback_url = None),
        ("shown the nonce", |seen| seen.contact.unsigned = Some(UnsignedAgent { address: None })),
        ("another agent", |seen| {
            let (boot_id, address) = (None, None);
            seen.contact.rival =
                Some(SecondAgent { at: NOW, boot_id, repeated: false, address, fetched: true });
        }),
        ("no heartbeat within 300 s", |seen| seen.now = at(300)),
    ]
}

#[test]
fn a_cleaning_leaves_only_a_ramdisk_running_that_a_deployment_can_begin_in() {
    let seen = cleaned();
    let off = Decision::Act(OFF);
    assert_eq!(decide(&seen, &Settings::default()), off, "it is off by default");
    let node = recorded(decide(&seen, &on()));
    assert_eq!(node.provision_state, ProvisionState::Available);
    assert_eq!(kept(&node), Some(KeptRamdisk::Since(NOW)));
    for (why, applies) in obstacles() {
        let mut seen = cleaned();
        applies(&mut seen);
        let next = decide(&seen, &on());
        // What is never powered off is reset, and what reports no power state is asked first.
        let ends = matches!(next, Decision::Act(Action::SetPower(_) | Action::ReadPower));
        let without_agent = why == "uses no agent";
        assert!(ends || without_agent && next == off, "{why}: {next:?}");
    }
    let mut by_the_node = cleaned();
    by_the_node.node.driver_info.insert("fast_track".into(), json!(true));
    assert_eq!(kept(&recorded(decide(&by_the_node, &Settings::default()))), Some(KeptRamdisk::Since(NOW)));

    let mut reset = cleaned();
    reset.node.run.as_mut().unwrap().boot_start = BootStart::ResetAccepted;
    assert_eq!(decide(&reset, &on()), Decision::Act(Action::SetPower(PowerTarget::Reboot)));
    let mut retired = cleaned();
    retired.node.retired = true;
    assert_eq!(decide(&retired, &on()), off);
    let mut manual = cleaned();
    manual.node.run.as_mut().unwrap().kind = RunKind::ManualClean;
    assert_eq!(decide(&manual, &on()), off);
}

#[test]
fn a_deployment_begins_with_the_agents_steps_or_with_the_ordinary_power_cycle() {
    let seen = to_deploy(idle());
    let node = recorded(decide(&seen, &on()));
    assert_eq!(cursor(&node), Cursor::LearnSteps);
    assert!(node.run.as_ref().unwrap().booted, "it has to end what it uses");

    for (why, applies) in obstacles() {
        let mut seen = idle();
        applies(&mut seen);
        let seen = to_deploy(seen);
        let Decision::Record(change) = decide(&seen, &on()) else { panic!("{why}") };
        assert_eq!(kept(&change.node), None, "{why}");
        if why == "uses no agent" {
            continue;
        }
        assert_eq!(cursor(&change.node), Cursor::PowerOff, "{why}");
        assert!(change.events.iter().any(|event| event.text.contains(why)), "{why}: {:?}", change.events);
    }
    // Whatever else begins does so with a power cycle.
    for kind in RunKind::ALL.into_iter().filter(|kind| *kind != RunKind::Deploy) {
        let mut node = idle().node;
        begin(&mut node, Run::new(kind, NOW), ProvisionState::Cleaning, NOW);
        assert_eq!(kept(&node), None, "{kind:?}");
    }
}

#[test]
fn a_users_power_request_ends_fast_track() {
    for target in [PowerTarget::On, PowerTarget::Off, PowerTarget::Reboot] {
        let seen = idle();
        let (node, _) = apply_power(&seen.node, target, NOW).unwrap();
        assert_eq!(kept(&node), None, "{target:?}");
        let node = recorded(decide(&to_deploy(Snapshot { node, ..seen }), &on()));
        assert_eq!(cursor(&node), Cursor::PowerOff, "{target:?}");
    }
}

#[test]
fn an_agent_that_does_not_report_its_steps_makes_the_node_boot() {
    let seen = to_deploy(idle());
    let seen = Snapshot { node: recorded(decide(&seen, &on())), ..seen };
    let asks = Action::AskSteps(model::StepKind::Deploy);
    assert_eq!(decide(&seen, &on()), Decision::Act(asks.clone()));
    let error = ActionError { text: "no route".into(), retryable: true, unreachable: true };
    for outcome in [Outcome::Failed(error), Outcome::Busy("at work".into())] {
        let change = apply_outcome(&seen, &asks, outcome, &on());
        assert_eq!((cursor(&change.node), kept(&change.node)), (Cursor::PowerOff, None));
        assert_eq!(change.node.provision_state, ProvisionState::Deploying);
    }
}

/// From the intent to the observed end.
fn ends(seen: &Snapshot, settings: &Settings, why: &str) {
    let Decision::Record(change) = decide(seen, settings) else { panic!("{why} does not end it") };
    assert!(change.events[0].text.contains(why), "{why}: {:?}", change.events);
    assert_eq!(kept(&change.node), Some(KeptRamdisk::PoweringOff(seen.now)), "{why}");
    let seen = Snapshot { node: change.node, ..seen.clone() };
    assert_eq!(decide(&seen, settings), Decision::Act(OFF), "{why}");
    // The intent is stored: a deployment that comes now begins with a power cycle.
    assert_eq!(kept(&to_deploy(seen.clone()).node), None);
    let change = apply_outcome(&seen, &OFF, Outcome::Power(PowerState::Off), settings);
    assert_eq!((kept(&change.node), change.node.power_state), (None, Some(PowerState::Off)));
    assert_eq!(change.node.provision_state, seen.node.provision_state);
    assert!(change.forget_agent && change.next_boot.is_none(), "a token is deleted while the node is off");
}

#[test]
fn a_node_that_is_not_deployed_is_powered_off_after_the_time() {
    let mut seen = idle();
    seen.contact.last_heartbeat_at = Some(at(1199));
    seen.now = at(1199);
    assert_eq!(decide(&seen, &on()), Decision::Sleep { wait: None, wake_at: Some(at(1200)) });
    seen.now = at(1200);
    ends(&seen, &on(), "no deployment began within 1200 s");
    let unlimited = Settings { fast_track_idle_s: 0, ..on() };
    assert!(matches!(decide(&seen, &unlimited), Decision::Sleep { .. }));
}

#[test]
fn a_ramdisk_that_cannot_be_used_any_more_is_powered_off() {
    for (why, applies) in obstacles() {
        let mut seen = idle();
        applies(&mut seen);
        if why == "in maintenance" {
            assert!(matches!(decide(&seen, &on()), Decision::Sleep { .. }), "an operator is at work");
            continue;
        }
        ends(&seen, &on(), why);
    }
    ends(&idle(), &Settings::default(), "switched off");
    let mut managed = idle();
    managed.node.enter(ProvisionState::Manageable, None, NOW);
    ends(&managed, &on(), "not available any more");
    // These leave ramdisks running without fast track, too.
    let stays = Settings { stay_on_after_cleaning: true, ..Settings::default() };
    assert!(!matches!(decide(&idle(), &stays), Decision::Record(_)));
}

#[test]
fn time_without_a_controller_is_no_silence() {
    let mut seen = idle();
    (seen.now, seen.listening_since) = (at(400), at(390));
    assert_eq!(decide(&seen, &on()), Decision::Sleep { wait: None, wake_at: Some(at(690)) });
    // But a deployment needs an agent that was heard.
    assert_eq!(cursor(&recorded(decide(&to_deploy(seen), &on()))), Cursor::PowerOff);
}

#[test]
fn powering_off_is_repeated_until_the_node_is_seen_off() {
    let mut seen = idle();
    seen.node.run.as_mut().unwrap().ramdisk_kept = Some(KeptRamdisk::PoweringOff(NOW));
    let error = ActionError { text: "busy".into(), retryable: true, unreachable: false };
    for outcome in [Outcome::Failed(error), Outcome::Power(PowerState::On), Outcome::PowerUnknown] {
        let change = apply_outcome(&seen, &OFF, outcome.clone(), &on());
        assert!(!change.forget_agent && change.node.last_error.is_none(), "{outcome:?}");
        assert_eq!(change.node.next_wake_at, Some(at(2)));
        let mut late = Snapshot { now: at(120), ..seen.clone() };
        let change = apply_outcome(&late, &OFF, outcome, &on());
        let text = change.node.last_error.clone().unwrap();
        assert!(text.contains("Failed to power off the node"), "{text}");
        assert_eq!((change.node.next_wake_at, change.events.len()), (Some(at(180)), 1));
        assert!(!change.forget_agent);
        late.node = change.node;
        let waits = Decision::Sleep { wait: None, wake_at: Some(at(180)) };
        assert_eq!(decide(&late, &on()), waits);
        late.now = at(180);
        assert_eq!(decide(&late, &on()), Decision::Act(OFF));
    }
}

#[test]
fn a_node_that_is_found_off_has_no_agent() {
    let seen = idle();
    let off = Outcome::State(PowerState::Off, None);
    let change = apply_outcome(&seen, &Action::ReadState, off, &on());
    assert!(change.forget_agent);
    assert_eq!(kept(&change.node), None);
    let still = Outcome::State(PowerState::On, None);
    let change = apply_outcome(&seen, &Action::ReadState, still, &on());
    assert!(!change.forget_agent);
    assert_eq!(kept(&change.node), Some(KeptRamdisk::Since(NOW)));
}

/// A node with the steps of `direct` that is to be cleaned.
async fn world() -> Arc<World> {
    let world = deployment::world().await;
    world.put(ProvisionState::Manageable, |_| {}).await;
    world
}

fn boots(world: &World) -> u32 {
    world.machine.lock().unwrap().boot
}

async fn token(world: &World) -> Option<String> {
    world.store.contact(world.node).await.unwrap().token
}

async fn says(world: &World, text: &str) -> bool {
    world.texts().await.iter().any(|known| known.contains(text))
}

#[tokio::test(start_paused = true)]
async fn a_cleaned_node_is_deployed_in_the_boot_of_its_cleaning() {
    let world = world().await;
    let _conductor = world.provide(on()).await;
    world.until_state(ProvisionState::Available).await;
    let before = (boots(&world), token(&world).await.unwrap(), world.is_on());
    assert!(before.2);
    sleep(Duration::from_secs(600)).await;
    world.verb(Verb::Deploy).await;
    world
        .until("writing", |node| node.deploy_step.as_ref().is_some_and(|step| step["step"] == "write_image"))
        .await;
    assert_eq!((boots(&world), token(&world).await.unwrap(), world.is_on()), before, "the boot's token");
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Active, "{:?}", node.last_error);
    assert_eq!(boots(&world), before.0 + 1, "the instance");
    assert_eq!(token(&world).await, None);
    assert_eq!(world.boots_from.lock().unwrap().as_deref(), Some("disk"));
    assert!(says(&world, "the deployment begins in the ramdisk").await);
    let asked = world.actions().into_iter().filter(|action| action == "SetBootDevice").count();
    assert_eq!(asked, 1, "for the cleaning");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_reset_meanwhile_is_deployed_with_a_power_cycle() {
    let world = world().await;
    let _conductor = world.provide(on()).await;
    world.until_state(ProvisionState::Available).await;
    let before = (boots(&world), token(&world).await.unwrap());
    world.switch(false);
    world.switch(true);
    world.verb(Verb::Deploy).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Active, "{:?}", node.last_error);
    assert_eq!(boots(&world), before.0 + 3, "the reset, the ramdisk, the instance");
    assert!(says(&world, "is not used").await);
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_is_powered_off_and_heartbeats_do_not_write_its_row() {
    let world = world().await;
    let _conductor = world.provide(on()).await;
    world.until_state(ProvisionState::Available).await;
    let begun = world.clock.now();
    sleep(Duration::from_secs(5)).await;
    let version = world.store.node(world.node).await.unwrap().version;
    sleep(Duration::from_secs(250)).await;
    assert_eq!(world.store.node(world.node).await.unwrap().version, version);
    let node = world.until("off", |node| node.power_state == Some(PowerState::Off)).await;
    let after = world.clock.now().since(begun).as_secs();
    assert!((1195..1205).contains(&after), "{after}");
    assert_eq!((node.provision_state, kept(&node)), (ProvisionState::Available, None));
    assert!(!world.is_on());
    assert_eq!(token(&world).await, None);
    let boots_before = boots(&world);
    world.verb(Verb::Deploy).await;
    assert_eq!(world.ended().await.provision_state, ProvisionState::Active);
    assert_eq!(boots(&world), boots_before + 2);
}

#[tokio::test(start_paused = true)]
async fn switching_it_off_powers_the_node_off_at_once() {
    let world = world().await;
    let _conductor = world.provide(on()).await;
    world.until_state(ProvisionState::Available).await;
    let mut node = world.store.node(world.node).await.unwrap();
    node.driver_info.insert("fast_track".into(), json!(false));
    world.store.update_node(node, Vec::new(), None).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert!(!world.is_on());
    assert_eq!(token(&world).await, None);
}
