//! What begins a boot: an observed power-off, or a reset that stands for it; and how a run ends on such a node.

use crate::situation::{NOW, acts, after, changes, heard, node, snapshot};
use conductor::Settings;
use conductor::decision::{Action, ActionError, Change, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::boot::{Boot, BootStart};
use model::run::Cursor;
use model::{PowerState, PowerTarget, ProvisionState};
use serde_json::json;
use std::time::Duration;

const OFF: Action = Action::SetPower(PowerTarget::Off);
const RESET: Action = Action::SetPower(PowerTarget::Reboot);

/// A node whose run stands here, and that an agent of the boot before was heard of.
fn at(cursor: Cursor) -> Snapshot {
    snapshot(node(ProvisionState::Cleaning, cursor, 0), heard("old"), NOW)
}

fn never_off(cursor: Cursor) -> Snapshot {
    let mut snapshot = at(cursor);
    snapshot.node.other.insert("disable_power_off".to_owned(), json!(true));
    snapshot
}

fn began(change: &Change) -> (Cursor, BootStart, bool) {
    let run = change.node.run.as_ref().unwrap();
    (run.cursor.clone(), run.boot_start, run.off_unobserved)
}

/// The boot device is set: the reset follows at once.
fn boot_device_is_set(mut snapshot: Snapshot) -> Snapshot {
    snapshot.node.run.as_mut().unwrap().cursor = Cursor::SetBootDevice;
    assert_eq!(acts(&snapshot), Action::SetBootDevice);
    let change = after(&snapshot, &Action::SetBootDevice, Outcome::Done);
    assert_eq!(began(&change).0, Cursor::PowerOn);
    let snapshot = Snapshot { node: change.node, ..snapshot };
    assert_eq!(acts(&snapshot), RESET, "never On, of which the boot before would not hear");
    snapshot
}

fn busy() -> Outcome {
    Outcome::Failed(ActionError { text: "busy".into(), retryable: true, unreachable: false })
}

/// From the reset to the nonce of the boot that it begins.
fn resets(snapshot: Snapshot, state: Outcome) {
    let snapshot = boot_device_is_set(snapshot);
    let refused = after(&snapshot, &RESET, busy());
    assert!(!refused.forget_agent && refused.next_boot.is_none(), "not before the BMC accepts it");
    assert_eq!(began(&refused), (Cursor::SetBootDevice, BootStart::ResetAccepted, false));
    let accepted = after(&snapshot, &RESET, state);
    assert_eq!(began(&accepted), (Cursor::AwaitAgent, BootStart::ResetAccepted, true));
    assert!(accepted.forget_agent, "the agent of the boot before");
    let boot = accepted.next_boot.unwrap();
    assert!(!boot.has_begun(), "before the boot script is fetched");
    let says = |text: &str| accepted.events.iter().any(|event| event.text.contains(text));
    assert!(says("no power-off was observed"), "{:?}", accepted.events);
}

/// A node whose boot begins with a reset.
fn to_be_reset() -> Snapshot {
    let seen = never_off(Cursor::PowerOff);
    Snapshot { node: changes(&seen).node, ..seen }
}

#[test]
fn a_reset_waits_until_the_boot_of_the_reset_before_has_chosen_its_device() {
    let pause = Settings::default().reset_pause();
    let mut ends = never_off(Cursor::TearDown);
    ends.node.run.as_mut().unwrap().kind = model::RunKind::ManualClean;
    ends.node.run.as_mut().unwrap().plan = Some(Vec::new());
    let reset_at = after(&ends, &RESET, Outcome::Power(PowerState::On)).node.reset_at;
    assert_eq!(reset_at, Some(NOW), "by the run before");

    let mut next = to_be_reset();
    next.node.reset_at = reset_at;
    next.node.run.as_mut().unwrap().cursor = Cursor::SetBootDevice;
    match decide(&next, &Settings::default()) {
        Decision::Sleep { wait: Some(wait), wake_at } => {
            assert_eq!(wake_at, Some(NOW.after(pause)));
            assert!(wait.reason.contains("an earlier reset"), "{wait:?}");
        }
        other => panic!("{other:?}"),
    }
    next.now = NOW.after(pause);
    boot_device_is_set(next);

    // The power of this one was observed off, so nothing of an earlier boot is left.
    let mut seen_off = at(Cursor::SetBootDevice);
    seen_off.node.reset_at = reset_at;
    assert_eq!(acts(&seen_off), Action::SetBootDevice);
}

#[test]
fn a_reset_that_may_have_been_ordered_is_not_repeated_without_its_boot_device() {
    let set = boot_device_is_set(to_be_reset());

    // The BMC answers with an error, and may have reset the node.
    let mut snapshot = set.clone();
    for attempt in 1..Settings::default().max_attempts {
        // The BMC took its time.
        snapshot.now = snapshot.now.after(Duration::from_secs(5));
        let failed = after(&snapshot, &RESET, busy()).node;
        assert_eq!(failed.run.as_ref().unwrap().attempts, attempt);
        assert_eq!(failed.reset_at, Some(snapshot.now));
        let now = snapshot.now.after(Settings::default().reset_pause());
        snapshot = boot_device_is_set(Snapshot { node: failed, now, ..snapshot });
    }
    let last = after(&snapshot, &RESET, busy()).node;
    assert_eq!(last.provision_state, ProvisionState::CleanFail, "attempts count on");

    // The process ended before it stored what the BMC answered; or another one took the node over.
    let restarted = Snapshot { listening_since: NOW.after(Duration::from_secs(1)), ..set.clone() };
    let taken_over = Snapshot { now: NOW.after(Duration::from_secs(31)), ..set };
    for again in [restarted, taken_over] {
        assert_eq!(began(&changes(&again)).0, Cursor::SetBootDevice);
    }
}

#[test]
fn a_node_that_is_never_powered_off_is_reset() {
    let seen = never_off(Cursor::PowerOff);
    let change = changes(&seen);
    assert_eq!(began(&change), (Cursor::ReadBootDevice, BootStart::ResetAccepted, false));
    assert!(!change.forget_agent && change.next_boot.is_none(), "nothing has ended yet");
    resets(Snapshot { node: change.node, ..seen }, Outcome::Power(PowerState::On));
}

#[test]
fn a_node_whose_bmc_reports_no_power_state_is_reset() {
    let mut seen = at(Cursor::PowerOff);
    seen.node.power_state = None;
    assert_eq!(acts(&seen), Action::ReadPower, "an order that cannot be seen to be obeyed is not given");
    let change = after(&seen, &Action::ReadPower, Outcome::PowerUnknown);
    assert_eq!(began(&change), (Cursor::ReadBootDevice, BootStart::ResetAccepted, false));
    resets(Snapshot { node: change.node, ..seen.clone() }, Outcome::PowerUnknown);

    // It reports one after all: the ordinary way.
    let change = after(&seen, &Action::ReadPower, Outcome::Power(PowerState::On));
    assert_eq!(began(&change), (Cursor::PowerOff, BootStart::OffObserved, false));
    assert_eq!(acts(&Snapshot { node: change.node, ..seen }), OFF);
}

/// A BMC that does report power states, and none for a moment, gets no benefit from it.
#[test]
fn without_a_report_an_off_is_not_observed() {
    let seen = at(Cursor::PowerOff);
    let change = after(&seen, &OFF, Outcome::PowerUnknown);
    assert_eq!(began(&change), (Cursor::PowerOff, BootStart::OffObserved, false));
    assert!(!change.forget_agent && change.next_boot.is_none());
    let settings = Settings { power_timeout_s: 0, ..Settings::default() };
    let failed = apply_outcome(&seen, &OFF, Outcome::PowerUnknown, &settings);
    assert_eq!(failed.node.provision_state, ProvisionState::CleanFail);
    let text = failed.node.last_error.unwrap();
    assert!(text.contains("accepted power off but reports no power state"), "{text}");
    assert_eq!(failed.node.power_state, None, "the next run resets the node");
}

#[test]
fn an_observed_off_follows_a_reset_and_does_not_hide_it() {
    let mut seen = at(Cursor::PowerOff);
    let run = seen.node.run.as_mut().unwrap();
    (run.boot_start, run.off_unobserved) = (BootStart::ResetAccepted, true);
    let change = after(&seen, &OFF, Outcome::Power(PowerState::Off));
    assert_eq!(began(&change), (Cursor::ReadBootDevice, BootStart::OffObserved, true));
    assert!(change.next_boot.as_ref().is_some_and(Boot::has_begun));
    let mut later = Snapshot { node: change.node, ..seen };
    later.node.run.as_mut().unwrap().cursor = Cursor::PowerOn;
    assert_eq!(acts(&later), Action::SetPower(PowerTarget::On));
}

#[test]
fn a_run_ends_with_a_reset_where_the_node_is_never_off() {
    let ends = |mut snapshot: Snapshot| {
        let run = snapshot.node.run.as_mut().unwrap();
        run.kind = model::RunKind::ManualClean;
        run.plan = Some(Vec::new());
        snapshot.node.enter(ProvisionState::Cleaning, Some(ProvisionState::Manageable), NOW);
        assert_eq!(acts(&snapshot), RESET);
        let change = after(&snapshot, &RESET, Outcome::Power(PowerState::On));
        assert_eq!(change.node.provision_state, ProvisionState::Manageable);
        assert_eq!(change.node.power_state, Some(PowerState::On));
        assert!(change.forget_agent);
    };
    ends(never_off(Cursor::TearDown));
    let mut reset = at(Cursor::TearDown);
    reset.node.run.as_mut().unwrap().boot_start = BootStart::ResetAccepted;
    ends(reset);
    assert_eq!(acts(&at(Cursor::TearDown)), OFF);
}
