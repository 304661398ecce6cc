//! The boot medium of a node that boots by virtual media: when it is inserted, when it is ejected, and that it is out again
//! wherever the controller was killed.

use crate::situation::{NOW, acts, after, at, changes, heard, node, snapshot};
use crate::world::World;
use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome, Snapshot};
use conductor::stages::decide;
use model::boot::Boot;
use model::run::{Cursor, PersistentBoot};
use model::{Contact, Node, PowerState, PowerTarget, ProvisionState, RunKind, Verb, Wait};
use serde_json::json;
use std::time::Duration;
use store::prelude::*;
use tokio::time::sleep;

fn by_media(node: &mut Node) {
    node.interfaces.insert("boot_interface".to_owned(), model::boot_medium::VIRTUAL_MEDIA.to_owned());
}

/// A node that boots by virtual media, whose run stands here; no agent was heard.
fn standing(cursor: Cursor) -> Snapshot {
    let mut node = node(ProvisionState::CleanWait, cursor, 0);
    by_media(&mut node);
    let contact = Contact { boot: Some(Boot::fresh()), ..Contact::default() };
    snapshot(node, contact, NOW)
}

fn failed(text: &str, retryable: bool) -> Outcome {
    Outcome::Failed(ActionError { text: text.into(), retryable, unreachable: false })
}

fn cursor(node: &Node) -> &Cursor {
    &node.run.as_ref().unwrap().cursor
}

/// Also where the persistent boot device is the network: the medium is for one boot.
#[test]
fn that_it_may_be_in_is_stored_before_it_is_inserted() {
    let read = standing(Cursor::ReadBootDevice);
    let network = PersistentBoot { device: "pxe".into(), mode: None };
    let change = after(&read, &Action::ReadBootDevice, Outcome::BootDevice(Some(network)));
    assert_eq!(cursor(&change.node), &Cursor::SetBootDevice);
    assert!(change.node.run.as_ref().unwrap().boot_before.is_some());
    let mut inserts = Snapshot { node: change.node, ..read };
    inserts.node = changes(&inserts).node;
    assert!(inserts.node.medium_inserted);
    assert_eq!(acts(&inserts), Action::InsertMedium);
    let change = after(&inserts, &Action::InsertMedium, Outcome::Done);
    assert_eq!(cursor(&change.node), &Cursor::PowerOn);
    let on = Snapshot { node: change.node, ..inserts };
    assert_eq!(acts(&on), Action::SetPower(PowerTarget::On));

    let refused =
        after(&standing(Cursor::SetBootDevice), &Action::InsertMedium, failed("no drive is free", false));
    assert_eq!(refused.node.provision_state, ProvisionState::CleanFail);
    let says = refused.node.last_error.unwrap();
    assert!(says.contains("boot from its boot medium: no drive is free"), "{says}");
}

#[test]
fn a_node_that_is_never_seen_off_is_refused_by_name() {
    let mut never = standing(Cursor::PowerOff);
    never.node.other.insert("disable_power_off".to_owned(), json!(true));
    let unknown =
        after(&standing(Cursor::PowerOff), &Action::SetPower(PowerTarget::Off), Outcome::PowerUnknown);
    for change in [changes(&never), unknown] {
        assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
        assert!(change.node.last_error.as_ref().unwrap().contains("cannot be booted from a boot medium"));
    }
}

#[test]
fn it_is_ejected_when_the_agent_was_heard() {
    let mut heard_of = standing(Cursor::AwaitAgent);
    heard_of.node.medium_inserted = true;
    heard_of.contact = Contact { boot: Some(Boot::fresh()), ..heard("b") };
    let change = changes(&heard_of);
    assert_eq!(cursor(&change.node), &Cursor::RestoreBootDevice);
    let ejects = Snapshot { node: change.node, ..heard_of };
    assert_eq!(acts(&ejects), Action::EjectMedium);
    let retried = after(&ejects, &Action::EjectMedium, failed("busy", true));
    assert!(retried.node.medium_inserted && retried.node.next_wake_at > Some(NOW));
    let change = after(&ejects, &Action::EjectMedium, Outcome::Done);
    assert!(!change.node.medium_inserted);
    assert_eq!(cursor(&change.node), &Cursor::RestoreBootDevice);
    assert!(change.events.iter().any(|event| event.text == "the boot medium is ejected"));

    let mut ends = standing(Cursor::TearDown);
    ends.node.medium_inserted = true;
    ends.node.run.as_mut().unwrap().kind = RunKind::Inspect;
    assert_eq!(acts(&ends), Action::EjectMedium, "before the node is powered off and the run ends");
}

#[test]
fn a_failed_run_leaves_it_to_the_node_at_rest() {
    let mut rests = standing(Cursor::Done);
    rests.node.provision_state = ProvisionState::CleanFail;
    rests.node.medium_inserted = true;
    assert_eq!(acts(&rests), Action::EjectMedium);
    let change = after(&rests, &Action::EjectMedium, failed("the BMC is busy", false));
    assert!(change.events[0].text.contains("the BMC is busy"), "{:?}", change.events);
    let waits = Snapshot { node: change.node, ..rests.clone() };
    assert!(matches!(decide(&waits, &Settings::default()), Decision::Sleep { wake_at: Some(_), .. }));
    let later = Snapshot { now: at(60), ..waits };
    assert_eq!(acts(&later), Action::EjectMedium);
    let again = after(&later, &Action::EjectMedium, failed("the BMC is busy", false));
    assert!(again.events.is_empty(), "said once: {:?}", again.events);
    let change = after(&later, &Action::EjectMedium, Outcome::Done);
    assert!(!change.node.medium_inserted && change.node.wait.is_none());
    let rests = Snapshot { node: change.node, ..later };
    assert!(!matches!(decide(&rests, &Settings::default()), Decision::Act(Action::EjectMedium)));
}

/// Within a minute of power-on. The node goes on waiting.
#[test]
fn a_bmc_that_reads_nothing_is_named() {
    let mut waits = standing(Cursor::AwaitAgent);
    waits.node.medium_inserted = true;
    let reason = "the ramdisk to boot and its agent to send a heartbeat".to_owned();
    waits.node.wait = Some(Wait { reason, since: NOW, deadline: Some(at(1800)) });
    waits.node.next_wake_at = Some(at(30));
    let soon = Snapshot { now: at(29), ..waits.clone() };
    assert!(matches!(decide(&soon, &Settings::default()), Decision::Sleep { .. }));
    let due = Snapshot { now: at(30), ..waits };
    let change = changes(&due);
    let says = change.node.last_error.clone().unwrap();
    assert!(says.contains("has read nothing of the boot medium in the 30 s since power-on"), "{says}");
    assert_eq!(change.node.wait, due.node.wait, "the time limit stays");
    let named = Snapshot { node: change.node, ..due.clone() };
    assert!(!matches!(decide(&named, &Settings::default()), Decision::Record(_)), "once");

    let mut read = due.clone();
    read.contact.boot.as_mut().unwrap().medium_read_by = Some([192, 0, 2, 9].into());
    assert!(!matches!(decide(&read, &Settings::default()), Decision::Record(_)));
    let overdue = Snapshot { now: at(1800), ..due };
    assert!(changes(&overdue).node.last_error.unwrap().contains("Its BMC has read nothing"));
}

/// The medium is out, and the node arrives.
#[tokio::test(start_paused = true)]
async fn wherever_the_controller_is_killed_the_medium_is_out_again() {
    let mut inserted = 0;
    for kill_after in 1..14 {
        let world = World::new().await;
        world.put(ProvisionState::Manageable, by_media).await;
        let (_, task) = world.conductor(Settings::default());
        let before = world.actions().len();
        world.verb(Verb::Provide).await;
        while world.actions().len() < before + kill_after
            && world.store.node(world.node).await.unwrap().run.is_none_or(|run| run.is_active())
        {
            sleep(Duration::from_millis(10)).await;
        }
        task.abort();
        sleep(Duration::from_secs(20)).await;
        let (_stop, _task) = world.conductor(Settings::default());
        let node = world.until_state(ProvisionState::Available).await;
        assert!(!node.medium_inserted && !*world.medium.lock().unwrap(), "killed after {kill_after} actions");
        assert_eq!(node.power_state, Some(PowerState::Off));
        inserted += world.actions().iter().filter(|action| *action == "InsertMedium").count();
    }
    assert!(inserted > 13, "killed in the middle of an insertion, it inserts again: {inserted}");
}
