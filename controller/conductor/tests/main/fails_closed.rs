//! Decisions in situations that the simulated machine room does not reach by itself: states that only a defect
//! or a damaged store could leave behind, and agents that say nothing.

use crate::situation::{NOW, heard, issued, node, recorded, snapshot};
use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome};
use conductor::stages::{apply_outcome, decide};
use model::run::Cursor;
use model::{Contact, PowerState, PowerTarget, ProvisionState, StepResult};
use serde_json::json;
use std::time::Duration;

#[test]
fn cleaning_does_not_end_well_without_a_stored_success_of_every_step() {
    let off = |results: &[usize]| {
        let mut node = node(ProvisionState::Cleaning, Cursor::TearDown, 1);
        let success = |index: &usize| StepResult::success(*index, format!("c{index}"), NOW, json!({}));
        node.run.as_mut().unwrap().results = results.iter().map(success).collect();
        let snapshot = snapshot(node, Contact::default(), NOW);
        let action = Action::SetPower(PowerTarget::Off);
        apply_outcome(&snapshot, &action, Outcome::Power(PowerState::Off), &Settings::default()).node
    };
    for results in [&[][..], &[0], &[1], &[1, 1]] {
        let node = off(results);
        assert_eq!(node.provision_state, ProvisionState::CleanFail, "{results:?}");
        assert!(node.maintenance && node.last_error.unwrap().contains("no stored success"));
    }
    assert_eq!(off(&[0, 1]).provision_state, ProvisionState::Available);
}

/// docs/cleaning.md, `max_attempts`: so many failures in a row, and no more.
#[test]
fn an_action_fails_for_good_at_the_fifth_attempt() {
    let settings = Settings::default();
    let mut node = node(ProvisionState::Cleaning, Cursor::PowerOff, 1);
    for attempt in 1..=5 {
        let action = Action::SetPower(PowerTarget::Off);
        let error = ActionError { text: "no answer".into(), retryable: true, unreachable: false };
        let snapshot = snapshot(node, Contact::default(), NOW);
        node = apply_outcome(&snapshot, &action, Outcome::Failed(error), &settings).node;
        let failed = node.provision_state == ProvisionState::CleanFail;
        assert_eq!(failed, attempt == 5, "attempt {attempt}: {:?}", node.provision_state);
    }
}

#[test]
fn a_command_of_an_earlier_boot_is_not_sent_to_the_agent_of_this_one() {
    let settings = Settings::default();
    for accepted in [false, true] {
        let at = |boot_id: &str| {
            let node = node(ProvisionState::CleanWait, issued(boot_id, accepted), 1);
            decide(&snapshot(node, heard("boot-2"), NOW), &settings)
        };
        let run = recorded(at("boot-1")).run.unwrap();
        assert_eq!((run.cursor, run.interruptions), (Cursor::LearnSteps, 1), "accepted: {accepted}");
        assert!(!matches!(at("boot-2"), Decision::Record(_)), "the same boot goes on");
    }
}

#[test]
fn an_agent_that_falls_silent_fails_the_step() {
    let settings = Settings::default();
    let after = |seconds: u64, attempts: u32| {
        let mut node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
        node.run.as_mut().unwrap().attempts = attempts;
        let now = NOW.after(Duration::from_secs(seconds));
        decide(&snapshot(node, heard("boot-1"), now), &settings)
    };
    assert!(!matches!(after(settings.agent_silence_s - 1, 2), Decision::Record(_)));
    // Heartbeats may be lost where answers are not: it is asked first, and whether the node has power.
    assert!(matches!(after(settings.agent_silence_s, 0), Decision::Act(Action::AskCommand { .. })));
    assert_eq!(after(settings.agent_silence_s, 1), Decision::Act(Action::ReadPower));
    let node = recorded(after(settings.agent_silence_s, 2));
    assert_eq!((node.provision_state, node.maintenance), (ProvisionState::CleanFail, true));
    let error = node.last_error.unwrap();
    assert!(error.contains("deploy.erase_devices ") && error.contains("not been heard for 300 s"), "{error}");
}
