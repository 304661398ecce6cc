//! The scenarios.

use explore::scenario::{By, Scenario, StepSpec};
use explore::search::explore;
use model::RunKind;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

static STATES: AtomicUsize = AtomicUsize::new(0);

/// Explore a scenario and print its size to standard error, which libtest does not capture.
///
/// `EXPLORE_DISTURBANCES=3` disturbs every scenario so often, however long it takes.
fn check(scenario: &Scenario) {
    let mut scenario = scenario.clone();
    if let Some(budget) = std::env::var("EXPLORE_DISTURBANCES").ok().and_then(|count| count.parse().ok()) {
        scenario.budget = budget;
    }
    match explore(&scenario) {
        Ok(explored) => {
            let all = STATES.fetch_add(explored.states, Ordering::Relaxed) + explored.states;
            let line = format!(
                "explore: {}: {} states, {} moves, {} disturbances at most, {:.1} s, ends {:?} ({all} states so far)\n",
                scenario.name,
                explored.states,
                explored.moves,
                scenario.budget,
                explored.took.as_secs_f64(),
                explored.ends,
            );
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        }
        Err(broken) => panic!("{broken}"),
    }
}

/// A node that is never powered off: resets stand for it.
#[test]
fn automated_cleaning_without_power_off() {
    let steps = [StepSpec::agent("deploy.erase")];
    let scenario = Scenario::new("automated_cleaning_without_power_off", RunKind::AutomatedClean, &steps, 2);
    check(&scenario.without_power_off());
}

/// The steps of an agent: one that may be repeated, one that may not and cannot be stopped.
#[test]
fn automated_cleaning() {
    let steps = [StepSpec::agent("deploy.metadata"), StepSpec::agent("deploy.erase").once().to_its_end()];
    check(&Scenario::new("automated_cleaning", RunKind::AutomatedClean, &steps, 2));
}

/// The ramdisk of the cleaning is kept: the node is deployed in it, or powered off after a time.
#[test]
fn fast_track() {
    let steps = [StepSpec::agent("deploy.deploy")];
    check(&Scenario::new("fast_track", RunKind::AutomatedClean, &steps, 2).with_fast_track());
}

/// An agent that signs what it erases, and sometimes owes the proof.
#[test]
fn automated_cleaning_with_evidence() {
    let steps = [
        StepSpec::agent("deploy.erase_devices_metadata"),
        StepSpec::agent("deploy.erase_devices").once().to_its_end(),
    ];
    let scenario = Scenario::new("automated_cleaning_with_evidence", RunKind::AutomatedClean, &steps, 2);
    check(&scenario.with_signatures());
}

/// One step, disturbed more often.
#[test]
fn one_step() {
    check(&Scenario::new("one_step", RunKind::AutomatedClean, &[StepSpec::agent("deploy.erase").once()], 2));
}

/// ironic-python-agent: it says of no step that it may be repeated.
#[test]
fn automated_cleaning_with_ipa() {
    let steps = [
        StepSpec::agent("deploy.erase_devices_metadata").once(),
        StepSpec::agent("deploy.erase_devices").once(),
    ];
    check(&Scenario::new("automated_cleaning_with_ipa", RunKind::AutomatedClean, &steps, 2).with_ipa());
}

/// A step that asks for a reboot, and one of each sort after it.
#[test]
fn automated_cleaning_with_a_reboot() {
    let steps = [
        StepSpec::agent("deploy.flash").once().then_reboot(),
        StepSpec::out_of_band("bios.reset", By::Controller),
        StepSpec::agent("raid.create"),
    ];
    check(&Scenario::new("automated_cleaning_with_a_reboot", RunKind::AutomatedClean, &steps, 2));
}

/// Out-of-band and in-band steps in one run.
#[test]
fn automated_cleaning_of_all_sorts() {
    let steps = [
        StepSpec::out_of_band("bios.apply", By::Bmc).once(),
        StepSpec::agent("deploy.erase"),
        StepSpec::out_of_band("raid.apply", By::Controller).once().in_ramdisk(),
    ];
    check(&Scenario::new("automated_cleaning_of_all_sorts", RunKind::AutomatedClean, &steps, 2));
}

/// No step needs the ramdisk.
#[test]
fn manual_cleaning_without_a_ramdisk() {
    let steps = [
        StepSpec::out_of_band("raid.delete", By::Bmc),
        StepSpec::out_of_band("raid.create", By::Controller).once(),
        StepSpec::out_of_band("bios.apply", By::Bmc).once(),
    ];
    check(&Scenario::new("manual_cleaning_without_a_ramdisk", RunKind::ManualClean, &steps, 3));
}

/// No step is the agent's, and one needs the ramdisk.
#[test]
fn manual_cleaning_in_the_ramdisk() {
    let steps = [StepSpec::out_of_band("raid.create", By::Controller).once().in_ramdisk()];
    check(&Scenario::new("manual_cleaning_in_the_ramdisk", RunKind::ManualClean, &steps, 2));
}

#[test]
fn manual_cleaning() {
    let steps = [StepSpec::agent("deploy.erase"), StepSpec::agent("raid.create").once()];
    check(&Scenario::new("manual_cleaning", RunKind::ManualClean, &steps, 2));
}

/// The reserved steps around one of the agent.
#[test]
fn manual_cleaning_with_reserved_steps() {
    let engine = |label| StepSpec::out_of_band(label, By::Engine);
    let steps = [engine("power.power_off"), StepSpec::agent("deploy.erase"), engine("power.reboot")];
    check(&Scenario::new("manual_cleaning_with_reserved_steps", RunKind::ManualClean, &steps, 2));
}

/// A pause until the next heartbeat, and a stop until the user says that it goes on.
#[test]
fn manual_cleaning_with_a_hold() {
    let engine = |label| StepSpec::out_of_band(label, By::Engine);
    let steps = [engine("power.wait"), StepSpec::agent("deploy.erase"), engine("deploy.hold")];
    check(&Scenario::new("manual_cleaning_with_a_hold", RunKind::ManualClean, &steps, 2));
}

#[test]
fn deployment() {
    let steps = [
        StepSpec::out_of_band("deploy.deploy", By::Controller).once().in_ramdisk(),
        StepSpec::agent("deploy.configure").then_reboot(),
    ];
    check(&Scenario::new("deployment", RunKind::Deploy, &steps, 2));
}

/// It is done when its instance has said hello.
#[test]
fn deployment_with_a_hello() {
    let steps = [
        StepSpec::out_of_band("deploy.deploy", By::Controller).once().in_ramdisk(),
        StepSpec::out_of_band("deploy.tear_down_agent", By::Engine),
        StepSpec::out_of_band("deploy.boot_instance", By::Engine),
    ];
    check(&Scenario::new("deployment_with_a_hello", RunKind::Deploy, &steps, 2).with_hello());
}

/// The deploy interface `ramdisk`: its one step is the power cycle.
#[test]
fn deployment_of_a_ramdisk() {
    let steps = [StepSpec::out_of_band("deploy.deploy", By::Engine)];
    check(&Scenario::new("deployment_of_a_ramdisk", RunKind::Deploy, &steps, 3));
}

/// A driver without an agent, and a step that asks for a reboot.
#[test]
fn deployment_without_an_agent() {
    let steps = [
        StepSpec::out_of_band("bios.apply", By::Bmc).once().then_reboot(),
        StepSpec::out_of_band("deploy.deploy", By::Controller),
    ];
    check(&Scenario::new("deployment_without_an_agent", RunKind::Deploy, &steps, 3).without_agent());
}

#[test]
fn service() {
    let steps =
        [StepSpec::agent("deploy.update").once().then_reboot(), StepSpec::out_of_band("bios.apply", By::Bmc)];
    check(&Scenario::new("service", RunKind::Service, &steps, 2));
}
