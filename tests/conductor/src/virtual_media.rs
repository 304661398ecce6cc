//! The boot medium of a node that boots by virtual media: when it is inserted, when it is ejected, and that it is out again
//! wherever the controller was killed.

use crate::situation::{NOW, acts, after, at, changes, heard, node, snapshot};
use crate::world::World;
use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome, Snapshot};
use conductor::stages::decide;
use model::boot::Boot;
use model::boot_medium::{HTTP_BOOT, VIRTUAL_MEDIA};
use model::run::{Cursor, PersistentBoot};
use model::{Contact, Node, PowerState, PowerTarget, ProvisionState, RunKind, Verb, Wait};
use serde_json::json;
use std::time::Duration;
use store::prelude::*;
use tokio::time::sleep;

fn set_way(node: &mut Node, boot_interface: &str) {
    node.interfaces.insert("boot_interface".to_owned(), boot_interface.to_owned());
}

fn by_media(node: &mut Node) {
    set_way(node, VIRTUAL_MEDIA);
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
    let overdue = Snapshot { now: at(1800), ..due.clone() };
    assert!(changes(&overdue).node.last_error.unwrap().contains("Its BMC has read nothing"));

    // An inspection waits for an inventory.
    let mut inspects = due.clone();
    let run = inspects.node.run.as_mut().unwrap();
    (run.kind, run.cursor) = (RunKind::Inspect, Cursor::AwaitInventory);
    inspects.node.provision_state = ProvisionState::InspectWait;
    inspects.node.wait.as_mut().unwrap().reason = "the ramdisk to send the inventory".to_owned();
    let says = changes(&inspects).node.last_error.unwrap();
    assert!(says.contains("has read nothing of the boot medium in the 30 s since power-on"), "{says}");
    let overdue = Snapshot { now: at(1800), ..inspects };
    let says = changes(&overdue).node.last_error.unwrap();
    assert!(says.contains("Its BMC has read nothing of the boot medium"), "{says}");

    // A firmware takes longer until it has an address: it is named when the time is over.
    let mut by_http = due;
    set_way(&mut by_http.node, HTTP_BOOT);
    assert!(!matches!(decide(&by_http, &Settings::default()), Decision::Record(_)));
    let overdue = Snapshot { now: at(1800), ..by_http };
    let says = changes(&overdue).node.last_error.unwrap();
    assert!(
        says.contains("Its firmware has not fetched the boot medium: it needs an address by DHCP"),
        "{says}"
    );
}

/// What is known of the boot stands behind Ironic's words.
#[test]
fn a_time_limit_says_that_the_medium_was_read() {
    let overdue = |cursor: Cursor, way: &str| {
        let mut waits = standing(cursor);
        set_way(&mut waits.node, way);
        waits.node.medium_inserted = true;
        let reason = match waits.node.run.as_ref().unwrap().cursor {
            Cursor::AwaitAgent => "the ramdisk to boot and its agent to send a heartbeat",
            _ => "the ramdisk to send the inventory",
        };
        waits.node.wait = Some(Wait { reason: reason.to_owned(), since: NOW, deadline: Some(at(1800)) });
        let boot = waits.contact.boot.as_mut().unwrap();
        (boot.medium_read_by, boot.fetched_from) = match way {
            HTTP_BOOT => (None, Some([192, 0, 2, 8].into())),
            _ => (Some([192, 0, 2, 9].into()), None),
        };
        Snapshot { now: at(1800), ..waits }
    };
    let says = |snapshot: &Snapshot| changes(snapshot).node.last_error.unwrap();
    for (way, read) in [
        (VIRTUAL_MEDIA, "Its BMC at 192.0.2.9 has read the boot medium"),
        (HTTP_BOOT, "Its firmware at 192.0.2.8 has fetched the boot medium"),
    ] {
        let text = says(&overdue(Cursor::AwaitAgent, way));
        assert!(text.starts_with("Timeout reached while cleaning the node: no heartbeat"), "{text}");
        assert!(text.contains(read) && text.contains("With Secure Boot") && !text.contains("TPM"), "{text}");
        let mut inspects = overdue(Cursor::AwaitInventory, way);
        inspects.node.run.as_mut().unwrap().kind = RunKind::Inspect;
        inspects.node.provision_state = ProvisionState::InspectWait;
        let text = says(&inspects);
        assert!(text.starts_with("Timeout reached while inspecting the node: no inventory"), "{text}");
        assert!(text.contains(read), "{text}");
    }
    let mut proves = overdue(Cursor::AwaitAgent, VIRTUAL_MEDIA);
    proves.node.driver_info.insert("require_tpm".to_owned(), json!(true));
    assert!(says(&proves).contains("The node's TPM has to prove the boot and has not"), "{}", says(&proves));
    // An agent was accepted, and sent no heartbeat: the firmware is not to blame.
    let mut silent = overdue(Cursor::AwaitAgent, VIRTUAL_MEDIA);
    silent.contact.token = Some("t".to_owned());
    assert!(says(&silent).contains("Please check if the ramdisk"), "{}", says(&silent));
}

/// The medium is out, and the node arrives.
#[tokio::test(start_paused = true)]
async fn wherever_the_controller_is_killed_the_medium_is_out_again() {
    for way in [VIRTUAL_MEDIA, HTTP_BOOT] {
        killed_after_each_action(way).await;
    }
}

async fn killed_after_each_action(way: &str) {
    let mut inserted = 0;
    for kill_after in 1..14 {
        let world = World::new().await;
        world.put(ProvisionState::Manageable, |node| set_way(node, way)).await;
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
        assert!(
            !node.medium_inserted && !*world.medium.lock().unwrap(),
            "{way}: killed after {kill_after} actions"
        );
        assert_eq!(node.power_state, Some(PowerState::Off));
        inserted += world.actions().iter().filter(|action| *action == "InsertMedium").count();
    }
    assert!(inserted > 13, "killed in the middle of an insertion, it inserts again: {way}, {inserted}");
}
