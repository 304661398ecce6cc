//! Cleaning from end to end in the simulated machine room, undisturbed and disturbed.

use crate::world::{Fault, World, asked, step};
use conductor::Settings;
use model::request::{Policy, VerbRequest, apply_verb};
use model::{ProvisionState, StepKind, Verb};
use serde_json::json;
use std::time::Duration;
use store::prelude::*;

const BOTH: [&str; 2] = ["erase_devices_metadata", "erase_devices"];

#[tokio::test(start_paused = true)]
async fn automated_cleaning_runs_every_step_in_order_and_makes_the_node_available() {
    let world = World::new().await;
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::Available).await;
    assert_eq!(world.ran(), BOTH);
    assert!(!world.is_on());
    assert!(node.run.as_ref().unwrap().all_succeeded());
    assert_eq!((node.clean_step, node.last_error, node.maintenance), (None, None, false));
    let history = world.texts().await;
    let transitions: Vec<_> = history
        .iter()
        .filter_map(|t| t.split_once(':').map(|(t, _)| t))
        .filter(|t| t.contains("->"))
        .collect();
    assert_eq!(
        transitions,
        [
            "manageable -> cleaning",
            "cleaning -> clean wait",
            "clean wait -> cleaning",
            "cleaning -> clean wait",
            "clean wait -> cleaning",
            "cleaning -> available"
        ]
    );
    assert!(history.contains(&"CLEANED".to_owned()));
    let catalogue = world.store.catalogue(world.node, store::StepKind::Clean).await.unwrap().unwrap();
    assert_eq!(catalogue.steps.len(), 2);
    assert_eq!(world.store.contact(world.node).await.unwrap().token, None, "the agent is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_retired_node_goes_back_to_manageable() {
    let world = World::new().await;
    let _conductor = world.provide(Settings::default()).await;
    let mut node = world.until("cleaning", |node| node.run.is_some()).await;
    loop {
        node.retired = true;
        if world.store.update_node(node, Vec::new(), None).await.is_ok() {
            break;
        }
        node = world.store.node(world.node).await.unwrap();
    }
    let node = world.until("stable", |node| node.provision_state.is_stable()).await;
    assert_eq!(node.provision_state, ProvisionState::Manageable);
}

#[tokio::test(start_paused = true)]
async fn a_failing_step_names_itself_keeps_its_record_and_leaves_the_node_on() {
    let world = World::new().await;
    world.suffer([Fault::StepFails("/dev/vda (serial S1): write error at 4096")]);
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    let error = node.last_error.unwrap();
    assert!(error.contains("deploy.erase_devices_metadata") && error.contains("serial S1"), "{error}");
    assert_eq!((node.maintenance, node.fault.as_deref()), (true, Some("clean failure")));
    assert!(world.is_on(), "a power cycle could damage a node");
    assert_eq!(node.target_power_state, None, "nor is one to come");
    assert_eq!(node.clean_step.unwrap()["step"], "erase_devices_metadata");
    let results = node.run.unwrap().results;
    assert_eq!(results[0].result["clean_result"]["disks"][0]["outcome"], "failed");
    assert_eq!(world.ran(), ["erase_devices_metadata"]);

    // `manage` is one way out, and keeps the evidence; `provide` from CLEANFAIL is the other.
    let untouched = world.store.node(world.node).await.unwrap();
    let request = VerbRequest::of(Verb::Manage);
    let (managed, _) =
        apply_verb(&untouched, request, Policy { automated_clean: true }, untouched.created_at).unwrap();
    assert_eq!(managed.provision_state, ProvisionState::Manageable);
    assert_eq!((managed.clean_step, managed.run.unwrap().results.len()), (None, 1));
    world.verb(Verb::Provide).await;
    let node = world.until_state(ProvisionState::Available).await;
    assert_eq!((node.maintenance, node.fault), (false, None));
}

#[tokio::test(start_paused = true)]
async fn a_success_whose_report_says_otherwise_is_not_believed() {
    let world = World::new().await;
    world.suffer([Fault::LyingReport]);
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("record of disk /dev/vda (serial S1)"));
}

#[tokio::test(start_paused = true)]
async fn power_cut_reset_and_agent_restart_repeat_the_step_and_end_clean() {
    for fault in [Fault::PowerCut, Fault::Reset, Fault::AgentRestart] {
        let world = World::new().await;
        world.suffer([Fault::None, fault.clone()]);
        let _conductor = world.provide(Settings::default()).await;
        let node = world.ended().await;
        assert_eq!(
            node.provision_state,
            ProvisionState::Available,
            "{fault:?}: {:?} {:#?}",
            node.last_error,
            world.texts().await
        );
        assert_eq!(world.ran(), ["erase_devices_metadata", "erase_devices", "erase_devices"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn endless_interruptions_end_in_clean_failed() {
    let world = World::new().await;
    world.suffer(vec![Fault::PowerCut; 9]);
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("lost power in the middle of the step (interruption 3)"));
    assert_eq!(world.ran().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_does_not_say_it_may_be_repeated_is_not() {
    let world = World::new().await;
    world.advertise(StepKind::Clean, vec![step("flash_firmware", 50, false)]);
    world.suffer([Fault::Reset]);
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("does not say that it may be repeated"));
    assert_eq!(world.ran().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_run_the_step_twice() {
    let world = World::new().await;
    world.suffer([Fault::LostAnswer, Fault::LostAnswer]);
    let _conductor = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::Available).await;
    assert_eq!(world.ran(), BOTH);
}

#[tokio::test(start_paused = true)]
async fn changed_hardware_managers_start_automated_cleaning_again() {
    let world = World::new().await;
    world.suffer([Fault::None, Fault::VersionMismatch]);
    let _conductor = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::Available).await;
    assert_eq!(world.ran(), ["erase_devices_metadata", "erase_devices_metadata", "erase_devices"]);
}

#[tokio::test(start_paused = true)]
async fn abort_stops_the_running_step_and_leaves_the_node_on() {
    let world = World::new().await;
    let _conductor = world.provide(Settings::default()).await;
    world
        .until("running", |node| {
            node.provision_state == ProvisionState::CleanWait && node.clean_step.is_some()
        })
        .await;
    world.verb(Verb::Abort).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().starts_with("By request, the clean operation was aborted"));
    assert!(!node.maintenance && world.is_on());
    assert!(world.actions().contains(&"CancelCommand".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn manual_cleaning_keeps_its_order_and_refuses_wrong_arguments_before_anything_runs() {
    let world = World::new().await;
    let _conductor = world.conductor(Settings::default());
    world
        .clean(vec![
            asked("deploy.erase_devices", json!({})),
            asked("deploy.erase_devices_metadata", json!({})),
        ])
        .await;
    let node = world.until("stable", |node| node.provision_state.is_stable()).await;
    assert_eq!(node.provision_state, ProvisionState::Manageable);
    assert_eq!(world.ran(), ["erase_devices", "erase_devices_metadata"]);
    assert!(world.texts().await.contains(&"CLEANED".to_owned()));
    world.clean(vec![asked("deploy.erase_devices", json!({})), asked("deploy.nope", json!({}))]).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("'step': 'nope'"));
    assert!(!node.maintenance, "nothing is wrong with the node");
    assert_eq!(world.ran().len(), 2, "nothing ran");
}

#[tokio::test(start_paused = true)]
async fn a_ramdisk_that_never_boots_ends_in_clean_failed_with_the_reason() {
    let world = World::new().await;
    *world.unplugged.lock().unwrap() = true;
    let _conductor = world.provide(Settings::default()).await;
    let waiting = world.until_state(ProvisionState::CleanWait).await;
    let waiting = match waiting.wait {
        Some(wait) => wait,
        None => world.until("waiting", |node| node.wait.is_some()).await.wait.unwrap(),
    };
    assert!(waiting.reason.contains("ramdisk to boot") && waiting.deadline.is_some());
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("within 1800 s"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_offers_nothing_never_makes_a_node_available() {
    let world = World::new().await;
    world.steps.lock().unwrap().clear();
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("no clean step is enabled"));
}

/// The conductor is dropped at a different moment in each round, at every await it may be at, and a new one
/// takes over: each step still runs exactly once.
#[tokio::test(start_paused = true)]
async fn a_conductor_killed_at_any_moment_loses_and_repeats_nothing() {
    for round in 0..60u64 {
        let world = World::new().await;
        world.verb(Verb::Provide).await;
        let mut at = 0;
        for kill in 0..4 {
            let (_, task) = world.conductor(Settings::default());
            at = (round * 37 + kill * 1013) % 1300 * 75 + at % 97;
            tokio::time::sleep(Duration::from_millis(at)).await;
            task.abort();
        }
        let _conductor = world.conductor(Settings::default());
        let node = world.ended().await;
        assert_eq!(node.provision_state, ProvisionState::Available, "round {round}: {:?}", node.last_error);
        assert_eq!(world.ran(), BOTH, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_required_argument_fails_before_anything_runs() {
    let world = World::new().await;
    let wanting = json!({
        "step": "create_configuration", "interface": "deploy", "priority": 0,
        "argsinfo": {"size": {"description": "GiB", "required": true}},
    });
    world
        .steps
        .lock()
        .unwrap()
        .entry(StepKind::Clean)
        .or_default()
        .push(serde_json::from_value(wanting).unwrap());
    let _conductor = world.conductor(Settings::default());
    let steps =
        vec![asked("deploy.erase_devices", json!({})), asked("deploy.create_configuration", json!({}))];
    world.clean(steps).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    let error = node.last_error.unwrap();
    assert!(error.contains("create_configuration") && error.ends_with("required arguments: size"), "{error}");
    assert_eq!(world.ran(), Vec::<String>::new());
}

/// Ironic boots the node to find that out (05-experiments 18).
#[tokio::test(start_paused = true)]
async fn arguments_of_a_step_that_was_learnt_are_checked_before_the_node_is_booted() {
    let world = World::new().await;
    let _conductor = world.conductor(Settings::default());
    world.clean(vec![asked("deploy.erase_devices", json!({}))]).await;
    world.until("learnt", |node| node.provision_state.is_stable()).await;
    world.actions.lock().unwrap().clear();
    for steps in [
        vec![
            asked("deploy.erase_devices", json!({})),
            asked("deploy.erase_devices", json!({"args": {"passes": 3}})),
        ],
        vec![asked("deploy.erase_devices", json!({"args": {"passes": 3}}))],
    ] {
        world.clean(steps).await;
        let node = world.until_state(ProvisionState::CleanFail).await;
        assert!(node.last_error.unwrap().ends_with("unexpected arguments: passes"));
        assert!(!node.maintenance);
        assert_eq!(world.actions(), Vec::<String>::new(), "the node was left alone");
    }
    // A step that was not there last time may be in a newer ramdisk.
    world.steps.lock().unwrap().entry(StepKind::Clean).or_default().push(step("new", 0, true));
    world.clean(vec![asked("deploy.new", json!({}))]).await;
    world.until_state(ProvisionState::Manageable).await;
    assert_eq!(world.ran().last().unwrap(), "new");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_finds_its_arguments_wrong_fails_after_the_earlier_ones() {
    let world = World::new().await;
    world.suffer([Fault::None, Fault::StepFails("argument x: 7 is not a size")]);
    let _conductor = world.conductor(Settings::default());
    let steps =
        vec![asked("deploy.erase_devices", json!({})), asked("deploy.erase_devices_metadata", json!({}))];
    world.clean(steps).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("argument x: 7 is not a size"));
    assert_eq!(world.ran(), ["erase_devices", "erase_devices_metadata"]);
    let run = node.run.unwrap();
    assert!(run.succeeded(0) && !run.succeeded(1));
}

#[tokio::test(start_paused = true)]
async fn abort_waits_for_the_end_of_a_step_that_cannot_be_stopped() {
    let world = World::new().await;
    let long = json!({"step": "flash_firmware", "interface": "deploy", "priority": 50, "abortable": false});
    world.advertise(StepKind::Clean, vec![serde_json::from_value(long).unwrap()]);
    let _conductor = world.provide(Settings::default()).await;
    world
        .until("running", |node| {
            node.provision_state == ProvisionState::CleanWait && node.clean_step.is_some()
        })
        .await;
    world.verb(Verb::Abort).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().starts_with("By request, the clean operation was aborted"));
    assert!(node.run.unwrap().succeeded(0), "the step ended first");
    assert!(world.is_on() && !world.actions().contains(&"CancelCommand".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_node_may_stay_on_while_it_is_available() {
    let world = World::new().await;
    let _conductor = world.provide(Settings { stay_on_after_cleaning: true, ..Settings::default() }).await;
    world.until_state(ProvisionState::Available).await;
    assert!(world.is_on());
    assert_eq!(world.ran(), BOTH);
}

/// "The apparent configuration of the system must not change" (specs/state-machine.txt).
#[tokio::test(start_paused = true)]
async fn what_the_node_boots_from_every_time_is_the_same_after_the_ramdisk_has_booted() {
    for (before, sets) in [(Some("disk"), 1), (Some("pxe"), 0), (None, 1)] {
        let world = World::new().await;
        *world.boots_from.lock().unwrap() = before.map(str::to_owned);
        let _conductor = world.provide(Settings::default()).await;
        world.until("a step", |node| node.clean_step.is_some()).await;
        assert_eq!(world.boots_from.lock().unwrap().as_deref(), before, "as soon as the ramdisk runs");
        let node = world.until_state(ProvisionState::Available).await;
        assert_eq!(
            (node.run.unwrap().boot_before, world.boots_from.lock().unwrap().as_deref()),
            (None, before)
        );
        let actions = world.actions();
        let count = |name: &str| actions.iter().filter(|action| *action == name).count();
        assert_eq!(count("SetBootDevice"), sets, "{before:?}");
        assert_eq!(count("RestoreBootDevice"), usize::from(before == Some("disk")), "{before:?}");
    }
}
