//! The deploy interface `ramdisk`: the node is started with its user's kernel and ramdisk, without an agent.

use crate::situation::{NOW, heard, snapshot};
use crate::world::{World, asked};
use bmc::{Builtin, Drivers};
use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::request::{VerbRequest, begin};
use model::run::{Cursor, PersistentBoot, Run};
use model::{Abilities, Node, PowerState, PowerTarget, ProvisionState, RunKind, StepKind, Verb};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::prelude::*;
use uuid::Uuid;

fn able() -> Abilities {
    let names = BTreeMap::from([("deploy_interface".to_owned(), "ramdisk".to_owned())]);
    Builtin::default().abilities("redfish", &names).unwrap()
}

fn with_ramdisk(node: &mut Node) {
    node.interfaces.insert("deploy_interface".into(), "ramdisk".into());
    let info = json!({"kernel": "http://192.0.2.1/k", "ramdisk": "http://192.0.2.1/r"});
    node.instance_info = info.as_object().unwrap().clone();
}

async fn world() -> Arc<World> {
    let world = World::new().await;
    world.put(ProvisionState::Available, with_ramdisk).await;
    *world.abilities.lock().unwrap() = able();
    *world.boots_from.lock().unwrap() = Some("disk".to_owned());
    world
}

fn power(actions: &[String]) -> Vec<&str> {
    let changes = ["SetPower", "SetBootDevice", "RestoreBootDevice", "AskSteps", "SendStep", "RunStep"];
    actions.iter().map(String::as_str).filter(|action| changes.contains(action)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_node_is_powered_off_set_to_the_network_for_every_boot_and_powered_on() {
    let world = world().await;
    world.switch(true);
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Active, "{:?}", node.last_error);
    let starts = ["SetPower", "RestoreBootDevice", "SetPower"];
    assert_eq!(power(&world.actions()), starts);
    assert_eq!((world.is_on(), world.machine.lock().unwrap().boot), (true, 2));
    assert_eq!(world.boots_from.lock().unwrap().as_deref(), Some("pxe"));
    assert!(world.ran().is_empty(), "no agent, no step of a BMC");
    let run = node.run.as_ref().unwrap();
    assert!(run.succeeded(0) && run.boot_before.is_none());
    assert_eq!(world.store.contact(world.node).await.unwrap().boot, None, "it is no boot of ours");

    world.actions.lock().unwrap().clear();
    world.verb(Verb::Rebuild).await;
    assert_eq!(world.ended().await.provision_state, ProvisionState::Active);
    assert_eq!(power(&world.actions()), starts);

    // Cleaning has an agent.
    world.verb(Verb::Delete).await;
    let node = world.until_state(ProvisionState::Available).await;
    assert!(node.instance_info.is_empty());
    assert_eq!(world.ran(), ["erase_devices_metadata", "erase_devices"]);
    assert!(!world.is_on());
    assert_eq!(world.boots_from.lock().unwrap().as_deref(), Some("pxe"));
}

#[tokio::test(start_paused = true)]
async fn without_its_step_nothing_is_deployed() {
    let world = world().await;
    let _conductor = world.conductor(Settings::default());
    let off = asked("deploy.deploy", json!({"priority": 0, "args": {}}));
    let on = asked("bios.factory_reset", json!({"priority": 50, "args": {}}));
    world.ask(VerbRequest::of(Verb::Deploy).with_steps(StepKind::Deploy, vec![off, on])).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    assert!(node.last_error.unwrap().contains("nothing would be deployed"));
    assert!(power(&world.actions()).is_empty());
}

/// A deployment at its step, whose boot device is to be set.
fn at(cursor: Cursor, never_off: bool) -> Snapshot {
    let mut node = Node::enrolled(Uuid::new_v4(), "redfish", NOW);
    room::put(&mut node, ProvisionState::Available, NOW);
    with_ramdisk(&mut node);
    node.power_state = Some(PowerState::On);
    if never_off {
        node.other.insert("disable_power_off".into(), json!(true));
    }
    begin(&mut node, Run::new(RunKind::Deploy, NOW), ProvisionState::Deploying, NOW);
    let mut seen = snapshot(node, heard("old"), NOW);
    seen.abilities = Ok(Arc::new(able()));
    while seen.node.run.as_ref().unwrap().cursor != cursor {
        seen.node = match decide(&seen, &Settings::default()) {
            Decision::Record(change) => change.node,
            Decision::Act(action) => {
                let state = if action == Action::SetPower(PowerTarget::Off) {
                    PowerState::Off
                } else {
                    PowerState::On
                };
                let outcome = match action {
                    Action::RestoreBootDevice(_) => Outcome::Done,
                    _ => Outcome::Power(state),
                };
                apply_outcome(&seen, &action, outcome, &Settings::default()).node
            }
            other => panic!("{other:?}"),
        };
    }
    seen
}

#[test]
fn a_node_that_is_never_powered_off_is_reset_into_its_ramdisk() {
    let settings = Settings::default();
    let seen = at(Cursor::RestoreBootDevice, true);
    let network = PersistentBoot { device: "pxe".into(), mode: None };
    assert_eq!(decide(&seen, &settings), Decision::Act(Action::RestoreBootDevice(network)));
    let seen = at(Cursor::PowerOn, true);
    let reset = Action::SetPower(PowerTarget::Reboot);
    assert_eq!(decide(&seen, &settings), Decision::Act(reset.clone()));
    let error = ActionError { text: "busy".into(), retryable: true, unreachable: false };
    let failed = apply_outcome(&seen, &reset, Outcome::Failed(error), &settings).node;
    assert_eq!(failed.run.unwrap().cursor, Cursor::PowerOn, "what is set for every boot is not used up");
    for outcome in [Outcome::Power(PowerState::On), Outcome::PowerUnknown] {
        let change = apply_outcome(&seen, &reset, outcome, &settings);
        assert!(change.node.run.as_ref().unwrap().succeeded(0) && change.forget_agent);
        assert!(change.next_boot.is_none());
    }
}

#[test]
fn the_agent_of_before_is_forgotten_while_the_node_is_off() {
    let settings = Settings::default();
    let seen = at(Cursor::PowerOff, false);
    let off = Action::SetPower(PowerTarget::Off);
    assert_eq!(decide(&seen, &settings), Decision::Act(off.clone()));
    let change = apply_outcome(&seen, &off, Outcome::Power(PowerState::Off), &settings);
    assert!(change.forget_agent && change.next_boot.is_none(), "no agent of ours is awaited");
    let still = apply_outcome(&seen, &off, Outcome::Power(PowerState::On), &settings);
    assert_eq!(still.node.run.unwrap().cursor, Cursor::PowerOff);
}
