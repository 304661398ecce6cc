//! Decisions in situations that the simulated machine room does not reach by itself: states that only a defect
//! or a damaged store could leave behind, and agents that say nothing.

use crate::situation::{NOW, at, catalogue_step, heard, issued, node, recorded, snapshot};
use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::plan::automated_plan;
use model::run::{Cursor, PersistentBoot};
use model::{CatalogueStep, Contact, PowerState, PowerTarget, ProvisionState, RunKind, StepResult};
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

/// The operator reads what could not be done, and not only why.
#[test]
fn a_boot_that_fails_says_what_could_not_be_done() {
    let settings = Settings { max_attempts: 1, ..Settings::default() };
    let (read, power) = (Action::ReadBootDevice, Action::SetPower);
    let restore = || Action::RestoreBootDevice(PersistentBoot { device: "disk".into(), mode: None });
    let off = "power off the node before booting the ramdisk";
    for (cursor, action, what) in [
        (Cursor::PowerOff, Action::ReadPower, off),
        (Cursor::PowerOff, power(PowerTarget::Off), off),
        (Cursor::ReadBootDevice, read, "read what the node boots from"),
        (Cursor::SetBootDevice, Action::SetBootDevice, "set the node to boot from the network"),
        (Cursor::RestoreBootDevice, restore(), "let the node boot from what it did before"),
        (Cursor::Reboot, power(PowerTarget::Reboot), "reboot the node after a step"),
        (Cursor::PowerOn, power(PowerTarget::Reboot), "reset the node to boot the ramdisk"),
        (Cursor::PowerOn, power(PowerTarget::On), "power on the node to boot the ramdisk"),
    ] {
        let error = ActionError { text: "no answer".into(), retryable: true, unreachable: false };
        let mut snapshot = snapshot(node(ProvisionState::Cleaning, cursor, 0), Contact::default(), NOW);
        let failed = |snapshot: &Snapshot| {
            let node = apply_outcome(snapshot, &action, Outcome::Failed(error.clone()), &settings).node;
            node.last_error.unwrap()
        };
        assert_eq!(failed(&snapshot), format!("Failed to {what}: no answer"));
        if action == restore() {
            // A user's ramdisk is booted from the network each time.
            let run = snapshot.node.run.as_mut().unwrap();
            run.kind = RunKind::Deploy;
            let step = &mut run.plan.as_mut().unwrap()[0].step;
            (step.step, step.provider) = ("deploy".into(), "ramdisk".into());
            assert!(run.starts_instance());
            assert_eq!(failed(&snapshot), "Failed to set the node to boot from the network: no answer");
        }
    }
}

/// A run in the ramdisk of a node with a workload, all of whose steps have succeeded, at its end.
fn at_the_end(kind: RunKind, cursor: Cursor, step: &str) -> Snapshot {
    let mut node = node(ProvisionState::Servicing, cursor, 0);
    let run = node.run.as_mut().unwrap();
    let of_direct = CatalogueStep { provider: "direct".into(), ..catalogue_step(step, 10) };
    (run.kind, run.plan) = (kind, Some(automated_plan(&[of_direct])));
    run.results = vec![StepResult::success(0, "c0".into(), NOW, json!({}))];
    snapshot(node, Contact::default(), NOW)
}

#[test]
fn a_workload_starts_by_a_power_cycle_unless_a_step_has_started_it() {
    let settings = Settings::default();
    let off = Decision::Act(Action::SetPower(PowerTarget::Off));
    assert_eq!(decide(&at_the_end(RunKind::Service, Cursor::TearDown, "erase_devices"), &settings), off);
    let started = decide(&at_the_end(RunKind::Deploy, Cursor::TearDown, "boot_instance"), &settings);
    assert!(matches!(started, Decision::Record(_)), "{started:?}");
    // Off once more after it was ordered on: it is waited for, not ordered anew without end.
    let restarts = at_the_end(RunKind::Service, Cursor::Restart, "erase_devices");
    let on = Action::SetPower(PowerTarget::On);
    let change = apply_outcome(&restarts, &on, Outcome::Power(PowerState::Off), &settings);
    assert_eq!(change.node.run.as_ref().unwrap().cursor, Cursor::Restart);
    assert!(change.node.wait.is_some_and(|wait| wait.deadline.is_some()) && !change.forget_agent);
}

#[test]
fn a_command_is_sent_at_once_and_after_a_failure_after_a_pause() {
    let settings = Settings::default();
    let next = |attempts: u32, due: u64| {
        let mut node = node(ProvisionState::CleanWait, issued("boot-1", false), 1);
        node.run.as_mut().unwrap().attempts = attempts;
        node.next_wake_at = Some(at(due));
        decide(&snapshot(node, heard("boot-1"), NOW), &settings)
    };
    let sends = |decision: Decision| matches!(decision, Decision::Act(Action::SendStep { .. }));
    assert!(sends(next(0, 60)), "whatever was to be waited for before");
    assert!(matches!(next(1, 60), Decision::Sleep { .. }));
    assert!(sends(next(1, 0)));
    assert_eq!(next(2, 0), Decision::Act(Action::ReadPower), "in turns");
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
