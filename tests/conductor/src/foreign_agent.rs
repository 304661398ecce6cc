//! What is said to an agent that chooses its own command ids, as ironic-python-agent does.

use crate::situation::{NOW, Scripted, at, heard, ipa, node, snapshot};
use agent_protocol::command::{CommandStatus, Status};
use conductor::Settings;
use conductor::agent_client::AgentClient;
use conductor::decision::{Action, Decision, Outcome};
use conductor::stages::{apply_outcome, decide};
use model::agent::{SecondAgent, UnsignedAgent};
use model::boot::Boot;
use model::run::Cursor;
use model::{Contact, Node, PowerState, PowerTarget, ProvisionState, RunKind, Timestamp};
use room::command;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 66));

fn status(id: &str, name: &str, status: Status) -> CommandStatus {
    CommandStatus { command_name: name.into(), ..command(id, status) }
}

/// A node whose step was written down at this time.
fn issued(at: Timestamp, accepted: bool, idempotent: bool) -> Node {
    let command_id = "c".into();
    let cursor = Cursor::Issued { command_id, at, boot_id: None, process_id: None, accepted };
    let mut node = node(ProvisionState::CleanWait, cursor, 0);
    node.run.as_mut().unwrap().plan.as_mut().unwrap()[0].step.idempotent = idempotent;
    node
}

/// Another agent, which asked from 192.0.2.66.
fn second(asked_at: u64, boot_id: Option<&str>) -> SecondAgent {
    let (at, boot_id) = (at(asked_at), boot_id.map(str::to_owned));
    SecondAgent { at, boot_id, repeated: false, address: Some(STRANGER), fetched: false }
}

/// The id of the command that the step is taken to be, and whether it was sent.
async fn sent(list: &[CommandStatus]) -> (String, bool) {
    let agent = Scripted::with(list, &status("fresh", "execute_clean_step", Status::Running));
    let node = issued(NOW, false, true);
    let step = node.run.as_ref().unwrap().current().unwrap().clone();
    let client = AgentClient::over(agent.clone());
    let outcome = client.send_step(&node, &ipa(), "ours", RunKind::AutomatedClean, &step).await;
    let Outcome::Command(status) = outcome else { panic!("{outcome:?}") };
    (status.id, agent.sent().len() == 1)
}

/// Found by `cargo xtask soak --seed 50` of its time: the erase of before was taken for the one that had to follow.
#[tokio::test]
async fn a_success_of_a_plan_that_was_given_up_is_not_taken_for_the_step() {
    let (step, steps) = ("execute_clean_step", "get_clean_steps");
    let before = status("before", step, Status::Succeeded);
    let refused = status("refused", step, Status::VersionMismatch);
    let asked = status("asked", steps, Status::Succeeded);
    assert_eq!(sent(&[before.clone(), refused.clone(), asked.clone()]).await, ("fresh".into(), true));
    // One whose answer was lost after that is ours.
    let lost = status("lost", step, Status::Running);
    assert_eq!(sent(&[before, refused, asked, lost]).await, ("lost".into(), false));
}

/// Found by `cargo xtask soak --seed 259` of its time: the step, which did not say that it may be repeated, had run on
/// the agent of before, whose answer was lost.
#[test]
fn a_step_that_was_written_down_for_another_agent_is_not_sent_to_this_one() {
    let decided = |token_at: u64, accepted: bool| {
        let contact = Contact { token_at: Some(at(token_at)), last_heartbeat_at: Some(at(200)), ..ipa() };
        decide(&snapshot(issued(at(100), accepted, false), contact, at(200)), &Settings::default())
    };
    for accepted in [false, true] {
        let Decision::Record(change) = decided(150, accepted) else {
            panic!("it goes on with another agent")
        };
        assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
        assert!(change.node.last_error.unwrap().contains("another agent has the token"));
        assert!(matches!(decided(50, accepted), Decision::Act(_)));
    }
}

/// A node whose agent has not answered two requests.
fn missed_two_requests(idempotent: bool) -> Node {
    let mut node = issued(NOW, true, idempotent);
    node.run.as_mut().unwrap().attempts = 2;
    node
}

/// What is decided at `now` about a step whose agent was last heard at 0 and has missed two requests, when another one asked
/// at `asked_at`.
fn with_rival(contact: Contact, idempotent: bool, asked_at: u64, now: u64) -> Decision {
    let node = missed_two_requests(idempotent);
    let rival = Some(second(asked_at, None));
    decide(&snapshot(node, Contact { rival, ..contact }, at(now)), &Settings::default())
}

/// ironic-python-agent asks once, gets no token while one is out, and stops permanently: no agent would come back. Found with
/// the real one.
#[test]
fn a_step_whose_agent_was_started_anew_fails_unless_it_may_be_repeated() {
    let Decision::Record(change) = with_rival(ipa(), false, 80, 120) else { panic!("it waits") };
    assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
    let text = change.node.last_error.unwrap();
    assert!(text.contains("another asks for its token") && text.contains("may be repeated"), "{text}");
    // Its own question, repeated by the network, comes soon after it was heard.
    assert!(matches!(with_rival(ipa(), false, 10, 120), Decision::Act(_)));
}

/// Finding 2 of the security review: any outage of ten seconds gave the token to the next agent that asked.
#[test]
fn another_agent_is_never_given_the_place_of_one_that_is_silent() {
    for contact in [ipa(), heard("b")] {
        let Decision::Record(change) = with_rival(contact.clone(), true, 80, 120) else { panic!("it waits") };
        let run = change.node.run.unwrap();
        assert_eq!(run.cursor, Cursor::PowerOff, "the node boots again, cold");
        assert!(!change.forget_agent, "the token goes when the node is seen to be off");
        assert_eq!((run.interruptions, run.fruitless), (1, 1));
        // One lookup of an agent that names its boot may be an old one that arrives late.
        let once = second(80, Some("b"));
        let asked = |rival: SecondAgent| {
            let contact = Contact { rival: Some(rival), ..contact.clone() };
            decide(&snapshot(missed_two_requests(true), contact, at(120)), &Settings::default())
        };
        assert!(matches!(asked(once.clone()), Decision::Act(_)));
        assert!(matches!(asked(SecondAgent { repeated: true, ..once }), Decision::Record(_)));
        // A heartbeat vetoes, however often others ask.
        let later = Contact { last_heartbeat_at: Some(at(60)), ..contact };
        assert!(matches!(with_rival(later, true, 119, 120), Decision::Act(_)));
    }
}

/// A node that has just booted, whose token was given out at 0 and has no heartbeat; another agent asks at `asked_at`.
fn booting(asked_at: u64, fruitless: u32) -> Decision {
    let mut node = node(ProvisionState::CleanWait, Cursor::AwaitAgent, 0);
    node.run.as_mut().unwrap().fruitless = fruitless;
    let rival = Some(SecondAgent { repeated: true, ..second(asked_at, Some("other")) });
    let token_to = Some(OURS);
    let contact =
        Contact { token: Some("t".into()), token_at: Some(NOW), token_to, rival, ..Contact::default() };
    decide(&snapshot(node, contact, at(20)), &Settings::default())
}

#[test]
fn two_agents_that_ask_in_one_boot_make_the_node_boot_again_and_then_fail_its_run() {
    assert!(matches!(booting(5, 0), Decision::Sleep { .. }), "the first has time for its heartbeat");
    let Decision::Record(change) = booting(16, 0) else { panic!("it waits") };
    assert!(!change.forget_agent);
    let run = change.node.run.unwrap();
    assert_eq!((run.cursor, run.fruitless), (Cursor::PowerOff, 1));
    let Decision::Record(change) = booting(16, Settings::default().max_interruptions) else {
        panic!("it waits")
    };
    assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
    let text = change.node.last_error.unwrap();
    assert!(text.contains("sent no heartbeat, and another asks for it"), "{text}");
    assert!(text.contains("192.0.2.7") && text.contains("192.0.2.66"), "{text}");
}

/// What is decided at 120 at `cursor` about a boot whose script 192.0.2.7 fetched first, got the token at 0 and was heard at
/// 110, and `from` fetched at `asked_at`.
fn fetched_by(from: IpAddr, asked_at: u64, cursor: Cursor, fruitless: u32) -> Decision {
    let mut node = node(ProvisionState::CleanWait, cursor, 0);
    node.run.as_mut().unwrap().fruitless = fruitless;
    let boot = Some(Boot { fetched_from: Some(OURS), shown: true, ..Boot::fresh() });
    let rival = Some(SecondAgent { address: Some(from), fetched: true, ..second(asked_at, None) });
    let (token_at, last_heartbeat_at) = (Some(NOW), Some(at(110)));
    let contact = Contact { boot, token_at, token_to: Some(OURS), last_heartbeat_at, rival, ..heard("b") };
    decide(&snapshot(node, contact, at(120)), &Settings::default())
}

/// Which of two that fetched the script of one boot is the node cannot be known, and the impostor may be the faster one: its
/// heartbeats do not count.
#[test]
fn two_that_fetch_one_boot_script_make_the_node_boot_again_and_then_fail_its_run() {
    for cursor in [Cursor::LearnSteps, Cursor::NextStep, Cursor::RestoreBootDevice] {
        let Decision::Record(change) = fetched_by(STRANGER, 100, cursor.clone(), 0) else {
            panic!("{cursor:?}")
        };
        let run = change.node.run.unwrap();
        assert_eq!((run.cursor, run.fruitless), (Cursor::PowerOff, 1), "{cursor:?}");
        let most = Settings::default().max_interruptions;
        let Decision::Record(change) = fetched_by(STRANGER, 100, cursor, most) else { panic!("it goes on") };
        assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
        let text = change.node.last_error.unwrap();
        assert!(text.contains("fetched from 192.0.2.7 and also from 192.0.2.66"), "{text}");
    }
    let issued = || issued(NOW, true, true).run.unwrap().cursor;
    let Decision::Record(change) = fetched_by(STRANGER, 100, issued(), 0) else { panic!("it goes on") };
    assert_eq!(change.node.run.unwrap().cursor, Cursor::PowerOff);
    // Later than a boot takes, heartbeats show that the agent is the node's; and so do they where the node only rebooted.
    let late = Settings::default().boot_timeout_s + 1;
    assert!(!matches!(fetched_by(STRANGER, late, issued(), 0), Decision::Record(_)));
    assert!(!matches!(fetched_by(OURS, 100, issued(), 0), Decision::Record(_)));
}

/// A node that fetches the script again after its agent has the token has rebooted: only a power cycle of ours gives it
/// another nonce.
#[test]
fn a_node_that_fetches_its_script_again_and_is_silent_boots_again() {
    let decided = |heard_at: u64, now: u64| {
        let boot = Some(Boot { fetched_from: Some(OURS), shown: true, ..Boot::fresh() });
        let rival = Some(SecondAgent { address: Some(OURS), fetched: true, ..second(80, None) });
        let last_heartbeat_at = Some(at(heard_at));
        let contact = Contact { boot, token_to: Some(OURS), last_heartbeat_at, rival, ..heard("b") };
        decide(&snapshot(missed_two_requests(true), contact, at(now)), &Settings::default())
    };
    let Decision::Record(change) = decided(0, 120) else { panic!("it waits") };
    let run = change.node.run.unwrap();
    assert_eq!((run.cursor, run.interruptions), (Cursor::PowerOff, 1));
    assert!(change.next_boot.is_none() && !change.forget_agent, "no nonce before the power cycle");
    let text = "its boot script was fetched again from 192.0.2.7";
    assert!(change.events.iter().any(|event| event.text.contains(text)), "{:?}", change.events);
    assert!(!matches!(decided(100, 120), Decision::Record(_)), "an agent that is heard goes on");
}

/// Before any heartbeat there is none that could veto.
#[test]
fn a_second_fetch_before_the_first_heartbeat_makes_the_node_boot_again_at_once() {
    let decided = |cursor: Cursor, from: IpAddr| {
        let boot = Some(Boot { fetched_from: Some(OURS), ..Boot::fresh() });
        let rival = Some(SecondAgent { address: Some(from), fetched: true, ..second(1, None) });
        let contact = Contact { boot, rival, ..Contact::default() };
        decide(&snapshot(node(ProvisionState::CleanWait, cursor, 0), contact, at(1)), &Settings::default())
    };
    for cursor in [Cursor::AwaitAgent, Cursor::AwaitInventory] {
        let Decision::Record(change) = decided(cursor, STRANGER) else { panic!("it waits") };
        assert_eq!(change.node.run.unwrap().cursor, Cursor::PowerOff);
    }
}

/// The node booted an agent that signs; what speaks for it does not.
#[test]
fn an_agent_that_does_not_sign_fails_the_run_and_is_named() {
    let decided = |unsigned| {
        let contact =
            Contact { token: Some("t".into()), token_at: Some(NOW), unsigned, ..Contact::default() };
        let node = node(ProvisionState::CleanWait, Cursor::AwaitAgent, 0);
        decide(&snapshot(node, contact, at(1)), &Settings::default())
    };
    assert!(matches!(decided(None), Decision::Sleep { .. }));
    let Decision::Record(change) = decided(Some(UnsignedAgent { address: Some(STRANGER) })) else {
        panic!("it waits for such an agent")
    };
    assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
    let text = change.node.last_error.unwrap();
    for part in ["192.0.2.66 was not accepted", "does not sign", "agent_kind"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn a_node_that_was_seen_off_gets_a_nonce_for_its_next_boot() {
    let node = node(ProvisionState::Cleaning, Cursor::PowerOff, 0);
    let snapshot = snapshot(node, heard("old"), NOW);
    let off = |state| {
        let outcome = Outcome::Power(state);
        apply_outcome(&snapshot, &Action::SetPower(PowerTarget::Off), outcome, &Settings::default())
    };
    let (first, second) = (off(PowerState::Off), off(PowerState::Off));
    assert!(first.forget_agent);
    assert_ne!(first.next_boot.unwrap().nonce, second.next_boot.unwrap().nonce);
    let on = off(PowerState::On);
    assert!(!on.forget_agent && on.next_boot.is_none(), "not before the BMC reports Off");
}

/// A node whose agent has had its step since `NOW`, and which was asked `asked` milliseconds after that and answered RUNNING.
fn asked(asked: u64, contact: Contact) -> Node {
    let now = NOW.after(Duration::from_millis(asked));
    let ask = Action::AskCommand { command_id: "c".into() };
    let outcome = Outcome::Command(status("c", "execute_clean_step", Status::Running));
    let seen = snapshot(issued(NOW, true, true), contact, now);
    apply_outcome(&seen, &ask, outcome, &Settings::default()).node
}

/// `cargo xtask bench steps --ironic-python-agent`: a hundred nodes with three steps each took 15.8 s, because each step waited
/// for a poll after 5 s.
#[test]
fn an_ironic_python_agent_is_asked_soon_and_then_less_and_less_often() {
    let pause = |at: u64, contact: Contact| {
        let due = asked(at, contact).next_wake_at.expect("the next question");
        due.since(NOW).as_millis() - u128::from(at)
    };
    for (at, expected) in [(0, 50), (50, 50), (200, 50), (400, 100), (4_000, 1_000), (60_000, 5_000)] {
        assert_eq!(pause(at, ipa()), expected, "after {at} ms");
        assert_eq!(pause(at, heard("b")), 5_000, "our agent reports the end by itself");
    }
    // One that acknowledges its command begins it then, however long the command lay there.
    let sent = Action::AskCommand { command_id: "c".into() };
    let outcome = Outcome::Command(status("c", "execute_clean_step", Status::Running));
    let seen = snapshot(issued(NOW, false, true), ipa(), at(100));
    let node = apply_outcome(&seen, &sent, outcome, &Settings::default()).node;
    assert_eq!(node.next_wake_at, Some(at(100).after(Duration::from_millis(50))));
}

#[test]
fn a_heartbeat_of_an_ironic_python_agent_is_answered_by_one_question() {
    for at in [0, 200, 10_000, 123_456] {
        let asked_at = NOW.after(Duration::from_millis(at));
        let later = |by: u64| asked_at.after(Duration::from_millis(by));
        let decided = |node: &Node, heard: Timestamp, now: Timestamp| {
            let contact = Contact { last_heartbeat_at: Some(heard), ..ipa() };
            decide(&snapshot(node.clone(), contact, now), &Settings::default())
        };
        let node = asked(at, ipa());
        // One that came before the question is no news, or each write would be followed by a question.
        for heard in [NOW, asked_at] {
            let decision = decided(&node, heard, later(1));
            assert!(matches!(decision, Decision::Sleep { .. }), "after {at} ms: {decision:?}");
        }
        let ask = Action::AskCommand { command_id: "c".into() };
        assert_eq!(decided(&node, later(1), later(2)), Decision::Act(ask), "after {at} ms");
    }
}
