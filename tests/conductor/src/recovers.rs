//! What the exploration of `tests/explore` found: situations in which progress was lost, invented or reported wrongly.

use crate::situation::{NOW, anneal, at, heard, issued, node, recorded, snapshot};
use agent_protocol::command::Status;
use agent_protocol::step::AdvertisedSteps;
use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::run::Cursor;
use model::{Contact, Node, PowerState, PowerTarget, ProvisionState, RunKind, StepKind, Wait};
use room::{command, failed};
use serde_json::json;
use std::collections::BTreeMap;

/// A node in the middle of a step of its agent, changed.
fn in_step(change: impl FnOnce(&mut model::Run)) -> Node {
    let mut node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
    change(node.run.as_mut().unwrap());
    node
}

/// The agent, heard `seconds` from now, that runs the step.
fn runs(seconds: u64) -> Contact {
    let mut contact = heard("boot-1");
    contact.last_heartbeat_at = Some(at(seconds));
    anneal(&mut contact).running = Some("c0".into());
    contact
}

fn status(status: Status) -> Outcome {
    Outcome::Command(command("c0", status))
}

fn failed_by(kind: &str, details: &str) -> Outcome {
    Outcome::Command(failed("c0", kind, details))
}

fn ask() -> Action {
    Action::AskCommand { command_id: "c0".into() }
}

fn unreachable_peer() -> Outcome {
    let text = "no answer".into();
    Outcome::Failed(ActionError { text, retryable: true, unreachable: true })
}

/// What an answer of the agent makes of the node.
fn answered(snapshot: &Snapshot, outcome: Outcome) -> Node {
    apply_outcome(snapshot, &ask(), outcome, &Settings::default()).node
}

fn error(node: &Node) -> &str {
    node.last_error.as_deref().unwrap_or_default()
}

/// The new process would run the command again that the old one had begun: same id, empty memory. So would the agent of
/// another boot, should a heartbeat with the token of this boot name one.
#[test]
fn a_command_is_not_sent_to_another_boot_or_process() {
    let others = [("boot-2", "p", "the node rebooted"), ("boot-1", "q", "the agent was restarted")];
    let cases = [(true, true), (true, false), (false, true), (false, false)];
    for ((boot, process, text), (idempotent, accepted)) in
        others.into_iter().flat_map(|other| cases.map(|case| (other, case)))
    {
        let mut node = node(ProvisionState::CleanWait, issued("boot-1", accepted), 1);
        node.run.as_mut().unwrap().plan.as_mut().unwrap()[1].step.idempotent = idempotent;
        let mut contact = heard(boot);
        anneal(&mut contact).process_id = process.into();
        let node = recorded(decide(&snapshot(node, contact, NOW), &Settings::default()));
        let run = node.run.as_ref().unwrap();
        if idempotent {
            assert_eq!((&run.cursor, run.interruptions), (&Cursor::LearnSteps, 1), "{text}, {accepted}");
        } else {
            assert_eq!(node.provision_state, ProvisionState::CleanFail, "{text}, {accepted}");
            assert!(error(&node).contains(text), "{}", error(&node));
        }
    }
}

/// A controller that was away for longer than an agent may be silent fails no run for its own absence.
#[test]
fn no_agent_is_silent_while_no_controller_listened() {
    let settings = Settings::default();
    let away = settings.boot_timeout_s * 2;
    let started = |node: Node, contact: Contact, later: u64| {
        let mut snapshot = snapshot(node, contact, at(away + later));
        snapshot.listening_since = at(away);
        decide(&snapshot, &settings)
    };
    let step = || in_step(|run| run.attempts = 2);
    assert!(!matches!(started(step(), heard("boot-1"), settings.agent_silence_s - 1), Decision::Record(_)));
    let failed = recorded(started(step(), heard("boot-1"), settings.agent_silence_s));
    assert!(error(&failed).contains("not been heard for 300 s"), "{}", error(&failed));

    let booting = || {
        let mut node = node(ProvisionState::CleanWait, Cursor::AwaitAgent, 0);
        node.wait = Some(Wait {
            reason: "the ramdisk to boot and its agent to send a heartbeat".into(),
            since: NOW,
            deadline: Some(at(settings.boot_timeout_s)),
        });
        node
    };
    let patience = Some(at(away + settings.agent_silence_s));
    match started(booting(), Contact::default(), 0) {
        Decision::Sleep { wait, .. } => assert_eq!(wait.and_then(|wait| wait.deadline), patience),
        other => panic!("{other:?}"),
    }
    let failed = recorded(started(booting(), Contact::default(), settings.agent_silence_s));
    assert_eq!(failed.provision_state, ProvisionState::CleanFail);
}

/// A step is not stopped for lack of progress before a heartbeat could report progress.
#[test]
fn progress_is_missed_only_where_it_could_be_reported() {
    let stall = Settings::default().step_stall_s;
    let hung = |contact: Contact| {
        let snapshot = snapshot(in_step(|_| {}), contact, at(stall));
        answered(&snapshot, status(Status::Running)).run.unwrap().hung
    };
    assert_eq!(hung(runs(0)), None, "no heartbeat came since");
    let mut before = runs(stall);
    anneal(&mut before).running = None;
    assert_eq!(hung(before), None, "no heartbeat has named the step yet");
    let mut moved = runs(stall);
    moved.progress_at = Some(at(1));
    assert_eq!(hung(moved), None, "it moved");
    let why = hung(runs(stall)).unwrap();
    assert!(why.contains("no progress for 1800 s"), "{why}");
}

/// The step may have ended meanwhile: what the agent says decides, not the clock.
#[test]
fn a_step_past_its_limit_is_judged_by_the_agents_answer() {
    let settings = Settings::default();
    let limit = settings.step_timeout_s;
    let past = |change: fn(&mut model::Run)| {
        let mut snapshot = snapshot(in_step(change), runs(limit), at(limit));
        snapshot.contact.progress_at = Some(at(limit));
        snapshot
    };
    assert_eq!(decide(&past(|_| {}), &settings), Decision::Act(ask()));
    assert!(answered(&past(|_| {}), status(Status::Succeeded)).run.unwrap().succeeded(1));
    let run = answered(&past(|_| {}), status(Status::Running)).run.unwrap();
    assert!(run.hung.unwrap().contains("longer than its limit") && run.cursor != Cursor::Done);
    // An agent that sends heartbeats and cannot be asked is judged by the clock in the end.
    let unanswered = |run: &mut model::Run| run.attempts = 2 * Settings::default().max_attempts;
    let node = recorded(decide(&past(unanswered), &settings));
    assert!(node.run.unwrap().hung.is_some());
    let mut ended = past(unanswered);
    anneal(&mut ended.contact).ended = vec!["c0".into()];
    let node = recorded(decide(&ended, &settings));
    assert!(error(&node).contains("could not be asked how the step ended"), "{}", error(&node));
}

#[test]
fn the_time_of_a_step_counts_from_when_the_agent_had_it() {
    let node = node(ProvisionState::CleanWait, issued("boot-1", false), 1);
    let run = answered(&snapshot(node, heard("boot-1"), at(500)), status(Status::Running)).run.unwrap();
    assert!(matches!(run.cursor, Cursor::Issued { at: since, accepted: true, .. } if since == at(500)));
    let later = in_step(|run| run.attempts = 1);
    let run = answered(&snapshot(later, runs(500), at(500)), status(Status::Running)).run.unwrap();
    assert!(matches!(run.cursor, Cursor::Issued { at, .. } if at == NOW), "it had it before");
}

/// Its return is news: the deadline of the wait for it may be half an hour away.
#[test]
fn an_agent_that_is_back_is_asked_at_once() {
    let settings = Settings::default();
    let mut node = in_step(|_| {});
    node.next_wake_at = Some(at(settings.boot_timeout_s));
    assert_eq!(decide(&snapshot(node.clone(), heard("boot-1"), NOW), &settings), Decision::Act(ask()));
    node.next_wake_at = Some(at(settings.agent_poll_s));
    assert!(matches!(decide(&snapshot(node, heard("boot-1"), NOW), &settings), Decision::Sleep { .. }));
}

/// It hangs once: the order to stop is not forgotten at each look.
#[test]
fn a_hung_step_that_goes_on_is_cancelled_as_often_as_any_action_is_tried() {
    let settings = Settings::default();
    let limit = settings.step_timeout_s;
    let node = in_step(|run| (run.hung, run.attempts) = (Some("the step hangs".into()), 1));
    let change =
        apply_outcome(&snapshot(node, runs(limit), at(limit)), &ask(), status(Status::Running), &settings);
    let run = change.node.run.unwrap();
    assert_eq!((run.hung.as_deref(), run.attempts), (Some("the step hangs"), 3));
    assert!(change.events.is_empty(), "{:?}", change.events);
}

#[test]
fn the_end_of_a_hung_step_is_believed_at_the_last_look() {
    let last = |outcome: Outcome| {
        let node = in_step(|run| {
            run.hung = Some("the step hangs".into());
            run.attempts = Settings::default().max_attempts - 1;
        });
        answered(&snapshot(node, runs(0), NOW), outcome)
    };
    assert!(last(status(Status::Succeeded)).run.unwrap().succeeded(1));
    let failed = last(failed_by("CleaningError", "the disk is gone"));
    assert!(error(&failed).contains("the disk is gone; before that, the step hangs"), "{}", error(&failed));
    let running = last(status(Status::Running));
    assert!(error(&running).contains("the step hangs; it could not be stopped"), "{}", error(&running));
}

#[test]
fn a_step_that_failed_by_itself_says_so_although_it_was_to_be_aborted() {
    let end = |kind: &str, details: &str| {
        let node = in_step(|run| run.abort = true);
        answered(&snapshot(node, runs(0), NOW), failed_by(kind, details))
    };
    let failed = end("CleaningError", "the disk is gone");
    assert!(error(&failed).contains("the disk is gone; before that, a user asked to abort"));
    assert!(failed.maintenance, "{}", error(&failed));
    let stopped = end("Cancelled", "Step cancelled by request");
    assert!(
        error(&stopped).starts_with("By request, the clean operation was aborted") && !stopped.maintenance
    );
}

/// A hung step fails its run, whatever stops it in the end.
#[test]
fn a_hung_step_is_not_started_again_by_a_restart_of_its_agent() {
    let node = in_step(|run| run.hung = Some("the step hangs".into()));
    let mut contact = heard("boot-1");
    anneal(&mut contact).process_id = "q".into();
    let node = recorded(decide(&snapshot(node, contact, NOW), &Settings::default()));
    assert_eq!(node.provision_state, ProvisionState::CleanFail);
    assert!(error(&node).contains("the step hangs; then the agent was restarted"), "{}", error(&node));
}

/// To ask how it goes is not to do it again.
#[test]
fn a_question_without_an_answer_does_not_fail_a_step_that_goes_on_outside() {
    let settings = Settings::default();
    let after = |polling: bool| {
        let cursor = Cursor::OutOfBand { command_id: "c0".into(), at: NOW, polling };
        let mut node = node(ProvisionState::Cleaning, cursor, 1);
        let planned = &mut node.run.as_mut().unwrap().plan.as_mut().unwrap()[1];
        (planned.step.in_band, planned.step.idempotent) = (false, false);
        let (command_id, step) = ("c0".into(), Box::new(planned.clone()));
        let action = Action::RunStep { command_id, kind: StepKind::Clean, step, polling };
        apply_outcome(&snapshot(node, Contact::default(), NOW), &action, unreachable_peer(), &settings).node
    };
    let run = after(true).run.unwrap();
    assert!(matches!(run.cursor, Cursor::OutOfBand { polling: true, .. }) && run.attempts == 1);
    assert_eq!(after(false).provision_state, ProvisionState::CleanFail, "it is not known whether it began");
}

/// A step that may be repeated, too: its cleaning would never end, and in CLEANING it cannot be aborted.
#[test]
fn a_step_that_its_bmc_refuses_each_time_is_begun_as_often_as_any_action_is_tried() {
    let settings = Settings::default();
    let mut node = node(ProvisionState::Cleaning, Cursor::NextStep, 0);
    let planned = &mut node.run.as_mut().unwrap().plan.as_mut().unwrap()[0];
    (planned.step.in_band, planned.step.idempotent) = (false, true);
    let mut begun = 0;
    while node.provision_state == ProvisionState::Cleaning {
        node.next_wake_at = None;
        let (change, action) = match decide(&snapshot(node, heard("boot-1"), NOW), &settings) {
            Decision::Begin(change, action) => (change, action),
            other => panic!("{other:?}"),
        };
        begun += 1;
        assert!(begun <= settings.max_attempts, "it never ends");
        let snapshot = snapshot(change.node, heard("boot-1"), NOW);
        node = apply_outcome(&snapshot, &action, unreachable_peer(), &settings).node;
    }
    assert_eq!((node.provision_state, begun), (ProvisionState::CleanFail, settings.max_attempts));
}

#[test]
fn a_step_of_an_interface_is_asked_about_as_often_as_any_action_is_tried() {
    let settings = Settings::default();
    let cursor = Cursor::OutOfBand { command_id: "c0".into(), at: NOW, polling: true };
    let mut node = node(ProvisionState::CleanWait, cursor, 1);
    node.run.as_mut().unwrap().plan.as_mut().unwrap()[1].step.in_band = false;
    for attempt in 1..=settings.max_attempts {
        let action = match decide(&snapshot(node.clone(), Contact::default(), NOW), &settings) {
            Decision::Act(action @ Action::RunStep { polling: true, .. }) => action,
            other => panic!("{other:?}"),
        };
        let snapshot = snapshot(node, Contact::default(), NOW);
        node = apply_outcome(&snapshot, &action, unreachable_peer(), &settings).node;
        if attempt < settings.max_attempts {
            assert_eq!(node.run.as_ref().unwrap().attempts, attempt, "{}", error(&node));
            node.next_wake_at = Some(NOW);
        }
    }
    assert_eq!(node.provision_state, ProvisionState::CleanFail);
}

/// It may have ended while no controller ran.
#[test]
fn a_step_of_the_bmc_past_its_limit_is_asked_about_before_it_fails() {
    let settings = Settings::default();
    let later = at(settings.step_timeout_s + 1);
    let cursor = Cursor::OutOfBand { command_id: "c0".into(), at: NOW, polling: true };
    let mut node = node(ProvisionState::CleanWait, cursor, 1);
    node.run.as_mut().unwrap().plan.as_mut().unwrap()[1].step.in_band = false;
    let late = snapshot(node, Contact::default(), later);
    let action = match decide(&late, &settings) {
        Decision::Act(action @ Action::RunStep { polling: true, .. }) => action,
        other => panic!("{other:?}"),
    };
    let outcome = |outcome| apply_outcome(&late, &action, outcome, &settings).node;
    let ended = outcome(Outcome::StepDone(json!(null)));
    assert_eq!(ended.run.as_ref().unwrap().results.len(), 1, "{ended:#?}");
    let running = outcome(Outcome::StepRunning("at work".into()));
    assert_eq!(running.provision_state, ProvisionState::CleanFail);
    assert!(error(&running).contains("longer than its limit"), "{}", error(&running));
}

/// The time in which no controller ran does not count against the BMC.
#[test]
fn power_is_not_judged_by_the_time_in_which_no_controller_looked() {
    let settings = Settings::default();
    let off = Action::SetPower(PowerTarget::Off);
    let still_on = |node: Node, now| {
        let snapshot = snapshot(node, Contact::default(), now);
        apply_outcome(&snapshot, &off, Outcome::Power(PowerState::On), &settings).node
    };
    let first = still_on(node(ProvisionState::Cleaning, Cursor::PowerOff, 0), NOW);
    let limit = settings.power_timeout_s;
    let looked_at = |seconds: u64| {
        let mut node = first.clone();
        node.next_wake_at = Some(at(seconds));
        node
    };
    let failed = still_on(looked_at(limit + 1), at(limit + 1));
    assert_eq!(failed.provision_state, ProvisionState::CleanFail, "a controller that looked each second");
    let back = still_on(looked_at(1), at(10 * limit));
    assert_eq!(back.provision_state, ProvisionState::Cleaning, "{}", error(&back));
    let deadline = back.wait.unwrap().deadline.unwrap();
    assert!(deadline > at(10 * limit) && deadline <= at(11 * limit));
}

/// One change counted twice left half of `max_replans`, and said that they kept changing.
#[test]
fn a_change_of_hardware_managers_is_counted_once() {
    let mut node = in_step(|run| {
        run.kind = RunKind::ManualClean;
        run.hardware_manager_version = [("generic".to_owned(), json!("1"))].into_iter().collect();
    });
    node = answered(&snapshot(node, runs(0), NOW), status(Status::VersionMismatch));
    assert_eq!(node.run.as_ref().map(|run| (&run.cursor, run.replans)), Some((&Cursor::LearnSteps, 1)));
    let steps = AdvertisedSteps {
        clean_steps: BTreeMap::new(),
        hardware_manager_version: BTreeMap::from([("generic".to_owned(), "2".to_owned())]),
    };
    let outcome = Outcome::Steps(BTreeMap::from([(StepKind::Clean, steps)]));
    let action = Action::AskSteps(StepKind::Clean);
    let change = apply_outcome(&snapshot(node, heard("boot-1"), NOW), &action, outcome, &Settings::default());
    let run = change.node.run.unwrap();
    assert_eq!((&run.cursor, run.replans), (&Cursor::NextStep, 1));
    assert_eq!(run.hardware_manager_version["generic"], "2");
}

/// The operator sees which disk it is, once, and that it is over.
#[test]
fn a_disk_that_stands_still_is_a_warning_until_it_moves() {
    let at_disk = |stalled: serde_json::Value| {
        let mut contact = runs(10);
        anneal(&mut contact).progress = Some(json!({"disks": [{"device": "/dev/sda", "serial": "S1",
            "phase": "erasing", "bytes_done": 5, "bytes_total": 9, "rate": 0, "stalled_since": stalled}]}));
        contact
    };
    let look = |node: Node, contact: Contact| {
        apply_outcome(&snapshot(node, contact, at(10)), &ask(), status(Status::Running), &Settings::default())
    };
    let warned = look(in_step(|_| {}), at_disk(json!(1.5)));
    assert_eq!(error(&warned.node), "disk /dev/sda (serial S1) stands still at 5 of 9 bytes");
    assert_eq!(warned.events.len(), 1, "{:?}", warned.events);
    assert!(warned.events[0].text.contains("deploy.erase_devices: disk /dev/sda (serial S1) stands still"));
    let again = look(warned.node, at_disk(json!(1.5)));
    assert!(again.events.is_empty() && again.node.last_error.is_some(), "{:?}", again.events);
    let moves = look(again.node, at_disk(json!(null)));
    assert_eq!((moves.node.last_error, moves.events.len()), (None, 0));
    assert_eq!(moves.node.provision_state, ProvisionState::CleanWait);
}
