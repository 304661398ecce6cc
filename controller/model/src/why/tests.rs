use super::*;
use crate::agent::{Contact, UnsignedAgent};
use crate::disks::KnownDisk;
use crate::kind::RunKind;
use crate::node::{Node, Wait};
use crate::power::PowerTarget;
use crate::provision::{ProvisionState, Verb};
use crate::request::{Policy, VerbRequest, apply_power, apply_verb};
use crate::run::{Cursor, Run};
use crate::time::Timestamp;
use serde_json::{Map, json};
use uuid::Uuid;

const NOW: Timestamp = Timestamp(100);

fn node(state: ProvisionState) -> Node {
    let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(1));
    node.name = Some("n1".to_owned());
    node.provision_state = state;
    node.provision_updated_at = Some(Timestamp(5));
    node
}

fn why(node: &Node) -> Why {
    asked(node, &Contact::default(), Some("c1"))
}

fn asked(node: &Node, contact: &Contact, conductor: Option<&str>) -> Why {
    let policy = Policy { automated_clean: true };
    Why::of(&Facts { node, contact, conductor, locked_by: None, policy })
}

fn lines(why: &Why) -> Vec<String> {
    why.help.commands.iter().map(|advice| advice.command.line("n1")).collect()
}

/// Every combination of the flags that forbid a verb, in every state.
fn flagged() -> impl Iterator<Item = Node> {
    ProvisionState::ALL.into_iter().flat_map(|state| {
        (0..16).map(move |bits: u8| {
            let on = |bit: u8| bits & (1 << bit) != 0;
            let mut node = node(state);
            (node.retired, node.protected, node.maintenance) = (on(0), on(1), on(2));
            node.fault = on(3).then(|| "clean failure".to_owned());
            let run = Run::new(RunKind::AutomatedClean, Timestamp(2));
            let at_rest = node.provision_state.phase().is_at_rest();
            let cursor = if at_rest { Cursor::Done } else { Cursor::AwaitAgent };
            node.run = Some(Run { cursor, ..run });
            node
        })
    })
}

/// The advice is as good as what the API does with it.
#[test]
fn every_command_that_is_advised_is_accepted_in_every_state_and_under_every_flag() {
    for node in flagged() {
        let answer = why(&node);
        for advice in &answer.help.commands {
            let refused = match &advice.command {
                Command::Verb(verb) => {
                    let request = VerbRequest { rescue_hash: Some("h".to_owned()), ..VerbRequest::of(*verb) };
                    apply_verb(&node, request, Policy { automated_clean: true }, NOW).err()
                }
                Command::Power(target) => apply_power(&node, *target, NOW).err(),
                Command::UnsetMaintenance => {
                    assert!(node.maintenance);
                    None
                }
                Command::UnsetRetired => {
                    assert!(node.retired);
                    None
                }
                Command::UnsetProtected => {
                    assert!(node.protected);
                    None
                }
                Command::SetAgentKind(_) | Command::RetireDisk(_) | Command::AcceptMeasurements => {
                    panic!("{advice:?}: nothing says so")
                }
            };
            assert_eq!(refused, None, "{advice:?} in {:?}", node.provision_state);
        }
    }
}

/// A user who has to act has a command; where the controller acts, the answer says that none is needed.
#[test]
fn a_node_that_waits_for_a_user_has_a_command_and_another_needs_none() {
    for node in flagged() {
        let (answer, state) = (why(&node), node.provision_state);
        match answer.next.by {
            By::User => assert!(!answer.help.commands.is_empty(), "{state:?}: {answer:?}"),
            By::Controller => {
                assert!(answer.help.text.starts_with("no command is needed"), "{state:?}: {answer:?}");
            }
        }
        assert_eq!(answer.awaits.since, Some(Timestamp(5)), "{state:?}");
    }
}

#[test]
fn a_flag_that_forbids_a_verb_is_named_in_its_place() {
    let retired = Node {
        retired: true,
        retired_reason: Some("end of warranty".to_owned()),
        ..node(ProvisionState::Manageable)
    };
    let answer = why(&retired);
    assert_eq!(lines(&answer), ["anneal node unset n1 --retired", "anneal node inspect n1"]);
    assert!(answer.help.commands[0].does.ends_with("it is retired (end of warranty)"));
    let protected = Node { protected: true, ..node(ProvisionState::Error) };
    assert_eq!(lines(&why(&protected)), ["anneal node unset n1 --protected"]);
    let maintenance = Node { maintenance: true, ..node(ProvisionState::DeployFail) };
    assert_eq!(lines(&why(&maintenance)), ["anneal node maintenance unset n1", "anneal node undeploy n1"]);
    let failed = Node {
        maintenance: true,
        fault: Some("clean failure".to_owned()),
        ..node(ProvisionState::CleanFail)
    };
    assert_eq!(lines(&why(&failed)), ["anneal node provide n1", "anneal node manage n1"]);
}

#[test]
fn what_the_answer_names_as_the_cause_comes_first() {
    let mut failed = node(ProvisionState::CleanFail);
    let disk = |serial: &str| KnownDisk { serial: Some(serial.to_owned()), wwn: None, model: None };
    failed.disks.known = vec![disk("S1"), disk("S2"), disk("S3")];
    let text = "disk S2 is missing, disk S3 is missing: the report of step x does not list it";
    failed.last_error = Some(text.to_owned());
    failed.properties.insert("expected_disks".to_owned(), json!(["S3"]));
    let retire = "anneal node disks retire n1 S2 --reason 'it was taken out of the node'";
    assert_eq!(lines(&why(&failed)), [retire, "anneal node provide n1", "anneal node manage n1"]);

    let mut active = node(ProvisionState::Active);
    for (target, word) in
        [(PowerTarget::On, "on"), (PowerTarget::Reboot, "reboot"), (PowerTarget::SoftOff, "soft-off")]
    {
        for text in [
            format!("Failed to change power state to '{}': the BMC is stuck", target.as_str()),
            format!("{} was accepted by the BMC but the node is still power on after 5 s", target.as_str()),
        ] {
            active.last_error = Some(text);
            assert_eq!(lines(&why(&active))[0], format!("anneal node power {word} n1"));
        }
    }

    let contact = Contact { unsigned: Some(UnsignedAgent { address: None }), ..Contact::default() };
    let answer = asked(&node(ProvisionState::InspectFail), &contact, Some("c1"));
    assert_eq!(lines(&answer)[0], "anneal node set n1 --property agent_kind=ironic-python-agent");
    let mut declared = node(ProvisionState::InspectFail);
    declared.properties.insert("agent_kind".to_owned(), json!("ironic-python-agent"));
    assert_eq!(lines(&asked(&declared, &contact, Some("c1")))[0], "anneal node inspect n1", "once is enough");
}

#[test]
fn without_a_controller_no_command_helps_what_is_under_way() {
    let mut grouped = node(ProvisionState::Verifying);
    grouped.other = Map::from_iter([("conductor_group".to_owned(), json!("rack1"))]);
    grouped.next_wake_at = Some(Timestamp(9));
    let answer = asked(&grouped, &Contact::default(), None);
    assert_eq!((answer.awaits.what, answer.next.at), (Awaited::Controller, None));
    assert!(answer.awaits.text.contains("\"rack1\"") && answer.help.commands.is_empty(), "{answer:?}");
    assert!(answer.help.text.starts_with("no command for the node helps: start a controller"));
    // At rest a command can be given: it is done when there is one.
    let answer =
        asked(&Node { provision_state: ProvisionState::Manageable, ..grouped }, &Contact::default(), None);
    assert_eq!(answer.awaits.what, Awaited::User);
    assert!(!answer.help.commands.is_empty());
}

#[test]
fn the_stored_wait_deadline_and_attempts_are_the_answer() {
    let wait = Wait {
        reason: "the BMC to report power off".to_owned(),
        since: Timestamp(7),
        deadline: Some(Timestamp(9)),
    };
    let run = Run { cursor: Cursor::PowerOff, attempts: 2, ..Run::new(RunKind::Deploy, Timestamp(6)) };
    let mut deploying = node(ProvisionState::Deploying);
    deploying.run = Some(run);
    deploying.wait = Some(wait);
    deploying.next_wake_at = Some(Timestamp(8));
    deploying.last_error = Some("the BMC refuses".to_owned());
    let answer = why(&deploying);
    let Awaits { what, text, since, until } = answer.awaits;
    assert_eq!((what, text.as_str()), (Awaited::Bmc, "the BMC to report power off"));
    assert_eq!((since, until, answer.next.at), (Some(Timestamp(7)), Some(Timestamp(9)), Some(Timestamp(8))));
    assert!(
        answer.next.text.ends_with("power the node off, again: the last 2 attempts failed"),
        "{}",
        answer.next.text
    );
    let error = answer.tried.iter().find(|tried| tried.text == "the last error: the BMC refuses");
    assert_eq!(error.map(|tried| tried.at), Some(None), "the time of an attempt is not stored");
    let locked = Facts {
        node: &deploying,
        contact: &Contact::default(),
        conductor: Some("c1"),
        locked_by: Some("c1"),
        policy: Policy { automated_clean: true },
    };
    assert!(Why::of(&locked).next.text.ends_with("(controller c1 is at it now)"));
}

#[test]
fn an_abort_that_was_asked_for_is_not_advised_again() {
    let mut waits = node(ProvisionState::CleanWait);
    waits.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(6)) });
    assert_eq!(lines(&why(&waits)), ["anneal node abort n1"]);
    if let Some(run) = &mut waits.run {
        run.abort = true;
    }
    let answer = why(&waits);
    assert!(answer.help.commands.is_empty() && answer.help.text.contains("has aborted"), "{answer:?}");
}

/// `anneal` knows a verb by the word that is printed here: `cli/tests/why.rs` gives them all.
#[test]
fn verbs_have_the_words_of_the_command_line() {
    assert_eq!(Command::Verb(Verb::Delete).line("n1"), "anneal node undeploy n1");
    assert_eq!(Command::Verb(Verb::Provide).line("n1"), "anneal node provide n1");
}

/// A boot that measured something else waits for its operator, and says so until its run has ended; then as advice.
#[test]
fn changed_measurements_are_a_users() {
    use crate::boot_proof::{EndorsementKey, Measurements, TpmRecord};
    let mut waits = node(ProvisionState::CleanWait);
    waits.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(10)) });
    let key = EndorsementKey { public: String::new(), name: "000b".to_owned(), certificate: None };
    let mut record = TpmRecord::new(key, Measurements::default(), Timestamp(1));
    record.note_change(
        Measurements { programs: vec!["aa".to_owned()], ..Measurements::default() },
        Timestamp(20),
    );
    waits.tpm = Some(Box::new(record));
    let answer = why(&waits);
    assert_eq!((answer.awaits.what, answer.awaits.since), (Awaited::User, Some(Timestamp(20))));
    assert_eq!(lines(&answer)[0], "anneal node measurements accept n1");
    // Its agent has got a token: no proof is required.
    let contact = Contact { token: Some("t".to_owned()), ..Contact::default() };
    assert_eq!(asked(&waits, &contact, Some("c1")).awaits.what, Awaited::Ramdisk);
    // A run that began later has measured nothing yet.
    waits.run.as_mut().unwrap().started_at = Timestamp(30);
    assert_eq!(why(&waits).awaits.what, Awaited::Ramdisk);
    let mut failed = Node { provision_state: ProvisionState::CleanFail, ..waits };
    failed.run.as_mut().unwrap().cursor = Cursor::Done;
    assert!(lines(&why(&failed)).contains(&"anneal node measurements accept n1".to_owned()));
}
