//! Steps of interfaces, reserved steps, deploy steps, and steps that hang.

use crate::world::{Fault, World, asked, step};
use conductor::Settings;
use model::request::VerbRequest;
use model::{Node, PlannedStep, ProvisionState, StepKind, Verb};
use serde_json::{Value, json};
use std::time::Duration;
use store::{Clock, prelude::*};

fn of(interface: &str, step: &str, priority: i64) -> Value {
    json!({"interface": interface, "step": step, "priority": priority})
}

/// One order over both sorts; CLEANING while the controller runs a step, CLEANWAIT while the agent does.
#[tokio::test(start_paused = true)]
async fn steps_of_interfaces_and_of_the_agent_run_in_one_order() {
    let world = World::new().await;
    world.out_of_band(
        StepKind::Clean,
        &[of("raid", "between", 50), of("power", "early", 99), of("bios", "never", 0)],
    );
    let _conductor = world.provide(Settings::default()).await;
    let seen =
        world.until("early", |n| n.clean_step.as_ref().is_some_and(|step| step["step"] == "early")).await;
    assert_eq!(seen.provision_state, ProvisionState::Cleaning);
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Available, "{:?}", node.last_error);
    assert_eq!(world.ran(), ["early", "erase_devices_metadata", "between", "erase_devices"]);
    assert_eq!(
        world.path().await[..6],
        [
            "manageable -> cleaning",
            "cleaning -> clean wait",
            "clean wait -> cleaning",
            "cleaning -> clean wait",
            "clean wait -> cleaning",
            "cleaning -> clean wait"
        ]
    );
    assert_eq!(node.run.unwrap().results[0].result, json!({"by": "the interface"}));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_fails_its_step() {
    let world = World::new().await;
    world.suffer([Fault::LargeResult]);
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    let error = node.last_error.unwrap();
    assert!(error.contains("more than is stored (1048576)"), "{error}");
    let results = node.run.unwrap().results;
    assert!(results.iter().all(|result| result.result.to_string().len() < 1000), "it was stored");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_needs_no_ramdisk_does_not_boot_one() {
    let world = World::new().await;
    world.out_of_band(StepKind::Clean, &[of("bios", "factory_reset", 0)]);
    let _conductor = world.conductor(Settings::default());
    world.clean(vec![asked("bios.factory_reset", json!({}))]).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Manageable);
    assert_eq!(world.ran(), ["factory_reset"]);
    let actions = world.actions();
    assert!(!actions.iter().any(|action| action.starts_with("SetPower")), "{actions:?}");

    // Asked for without a ramdisk, a step of the agent is refused before anything runs.
    let request = VerbRequest {
        disable_ramdisk: true,
        ..VerbRequest::of(Verb::Clean)
            .with_steps(StepKind::Clean, vec![asked("deploy.erase_devices", json!({}))])
    };
    world.ask(request).await;
    let node = world.ended().await;
    assert_eq!((node.provision_state, node.maintenance), (ProvisionState::CleanFail, false));
    assert_eq!(world.ran().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failing_step_of_an_interface_is_named_and_the_rest_is_not_run() {
    let world = World::new().await;
    world.only_out_of_band(StepKind::Clean, &[of("bios", "first", 20), of("raid", "second", 10)]);
    world.suffer([Fault::StepFails("the BMC said no")]);
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    let error = node.last_error.unwrap();
    assert!(error.contains("Clean step bios.first failed") && error.contains("the BMC said no"), "{error}");
    assert_eq!(node.clean_step.unwrap()["step"], "first");
    assert_eq!((node.maintenance, world.ran().len()), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_goes_on_outside_is_asked_for_until_it_ends() {
    let world = World::new().await;
    let mut slow = of("raid", "create", 0);
    slow["args"] = json!({"slowly": {"description": "in the BMC"}});
    slow["abortable"] = json!(true);
    world.only_out_of_band(StepKind::Clean, &[slow]);
    let _conductor = world.conductor(Settings::default());
    let steps = vec![asked("raid.create", json!({"args": {"slowly": true}}))];
    world.clean(steps.clone()).await;
    let node = world.until("polled", |node| node.wait.is_some()).await;
    assert_eq!(node.provision_state, ProvisionState::CleanWait);
    let waits = node.wait.unwrap();
    assert!(waits.reason.starts_with("step raid.create to end: ") && waits.deadline.is_some());
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Manageable, "{:?}", node.last_error);
    assert_eq!(world.ran().len(), 1, "it was begun once");

    // It can be aborted meanwhile.
    world.clean(steps).await;
    world.until("polled", |node| node.wait.is_some()).await;
    world.verb(Verb::Abort).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::CleanFail);
    assert!(node.last_error.unwrap().starts_with("By request"));
}

/// Ironic fails every node that was `cleaning` when its conductor dies (05-experiments 2). Here only a step
/// fails that may not be repeated.
#[tokio::test(start_paused = true)]
async fn a_controller_killed_in_a_step_of_its_own_repeats_only_what_may_be_repeated() {
    for idempotent in [true, false] {
        let world = World::new().await;
        let mut first = of("bios", "first", 20);
        first["idempotent"] = json!(idempotent);
        world.only_out_of_band(StepKind::Clean, &[first, of("raid", "second", 10)]);
        world.suffer([Fault::Kill]);
        let (_, killed) = world.provide(Settings::default()).await;
        assert!(killed.await.unwrap_err().is_cancelled());
        let _conductor = world.conductor(Settings::default());
        let node = world.ended().await;
        if idempotent {
            assert_eq!(node.provision_state, ProvisionState::Available, "{:?}", node.last_error);
            assert_eq!(world.ran(), ["first", "first", "second"]);
        } else {
            assert_eq!(node.provision_state, ProvisionState::CleanFail);
            let error = node.last_error.unwrap();
            assert!(error.contains("controller was interrupted in the middle of the step"), "{error}");
            assert_eq!(world.ran(), ["first"]);
            assert_eq!(node.target_provision_state, Some(ProvisionState::Available));
            // ... and the next cleaning runs every step (05-experiments 3).
            world.verb(Verb::Manage).await;
            world.verb(Verb::Provide).await;
            assert_eq!(world.ended().await.provision_state, ProvisionState::Available);
            assert_eq!(world.ran(), ["first", "first", "second"]);
        }
    }
}

/// Ironic drops them silently (05-experiments 4).
#[tokio::test(start_paused = true)]
async fn reserved_steps_do_what_they_are_called() {
    let world = World::new().await;
    let _conductor = world.conductor(Settings::default());
    let steps = vec![
        asked("deploy.erase_devices_metadata", json!({})),
        asked("power.power_off", json!({})),
        asked("power.hold", json!({})),
        asked("power.power_on", json!({})),
        asked("power.wait", json!({"args": {"seconds": 600}})),
        asked("deploy.erase_devices", json!({})),
        asked("power.wait", json!({})),
        asked("power.reboot", json!({})),
    ];
    world.clean(steps).await;
    let held = world.until_state(ProvisionState::CleanHold).await;
    assert!(!world.is_on(), "power_off came before hold");
    assert_eq!(held.clean_step.unwrap()["step"], "hold");
    let held = world.until("a wait is stored", |node| node.wait.is_some()).await;
    assert!(held.wait.unwrap().reason.contains("unhold"));
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!(world.ran().len(), 1, "it really holds");
    let before = world.store.node(world.node).await.unwrap();
    assert_eq!(before.provision_state, ProvisionState::CleanHold);

    world.verb(Verb::Unhold).await;
    world.until("waits", |n| n.clean_step.as_ref().is_some_and(|step| step["step"] == "wait")).await;
    let begun = world.clock.now();
    assert!(world.is_on(), "power_on");
    world.until("next", |n| n.clean_step.as_ref().is_some_and(|s| s["step"] == "erase_devices")).await;
    assert!(world.clock.now().since(begun) >= Duration::from_secs(599), "wait");
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Manageable, "{:?}", node.last_error);
    let run = node.run.unwrap();
    assert!(run.all_succeeded() && run.results.len() == 8);
}

#[tokio::test(start_paused = true)]
async fn a_held_node_can_be_aborted() {
    let world = World::new().await;
    world.only_out_of_band(StepKind::Clean, &[of("bios", "first", 20)]);
    let _conductor = world.conductor(Settings::default());
    world.clean(vec![asked("power.hold", json!({}))]).await;
    world.until_state(ProvisionState::CleanHold).await;
    world.verb(Verb::Abort).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().starts_with("By request, the clean operation was aborted"));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_alternates_between_working_and_waiting() {
    let world = World::new().await;
    world.put(ProvisionState::Available, |_| {}).await;
    let mut deploy = of("deploy", "deploy", 100);
    deploy["requires_ramdisk"] = json!(true);
    world.out_of_band(StepKind::Deploy, &[deploy]);
    let steps = vec![step("prepare", 150, true), step("finish", 50, true), step("extra", 0, true)];
    world.advertise(StepKind::Deploy, steps);
    let _conductor = world.conductor(Settings::default());
    let template = asked("deploy.extra", json!({"priority": 60, "args": {}}));
    let user = asked("deploy.finish", json!({"priority": 0, "args": {}}));
    let request = VerbRequest {
        templates: vec![template],
        ..VerbRequest::of(Verb::Deploy).with_steps(StepKind::Deploy, vec![user])
    };
    world.ask(request).await;
    let during = world
        .until("prepares", |n| n.deploy_step.as_ref().is_some_and(|step| step["step"] == "prepare"))
        .await;
    assert_eq!(during.provision_state, ProvisionState::DeployWait);
    assert_eq!(during.driver_internal_info["deploy_step_index"], 0);
    let names = |node: &Node| -> Vec<String> {
        let steps = node.driver_internal_info["deploy_steps"].as_array().unwrap().iter();
        steps.map(|step| step["step"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&during), ["prepare", "deploy", "extra"]);
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Active, "{:?}", node.last_error);
    assert_eq!(world.ran(), ["prepare", "deploy", "extra"]);
    assert_eq!((node.deploy_step, node.driver_internal_info.get("deploy_steps")), (None, None));
    let path = world.path().await;
    assert_eq!(path.iter().filter(|step| *step == "deploying -> wait call-back").count(), 3, "{path:?}");
    assert!(world.is_on(), "started from its disk");
    assert_eq!(world.store.contact(world.node).await.unwrap().token, None, "not into the ramdisk");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_fails_shows_its_step_and_is_never_active() {
    for (steps, user, wanted) in [
        // Images cannot be written yet: the interface's step says so.
        (vec![of("deploy", "deploy", 100)], vec![], "cannot write images"),
        // ... and it cannot be talked around.
        (
            vec![of("deploy", "deploy", 100), of("bios", "apply", 0)],
            vec![asked("deploy.deploy", json!({"priority": 0})), asked("bios.apply", json!({"priority": 5}))],
            "is switched off, so that nothing would be deployed",
        ),
        // Ironic drops what it does not know where there is no agent (05-experiments 10).
        (vec![of("deploy", "deploy", 100)], vec![asked("deploy.nope", json!({"priority": 5}))], "'nope'"),
        (
            vec![json!({"interface": "deploy", "step": "half", "priority": 0.5})],
            vec![],
            "non-negative integer",
        ),
    ] {
        let world = World::new().await;
        world.put(ProvisionState::Available, |_| {}).await;
        world.out_of_band(StepKind::Deploy, &steps);
        world.suffer([Fault::StepFails("this version cannot write images")]);
        let _conductor = world.conductor(Settings::default());
        world.ask(VerbRequest::of(Verb::Deploy).with_steps(StepKind::Deploy, user)).await;
        let node = world.ended().await;
        assert_eq!(node.provision_state, ProvisionState::DeployFail, "{:?}", node.last_error);
        let error = node.last_error.unwrap();
        assert!(error.contains(wanted), "{error}");
        assert!(!node.maintenance);
        let ran = world.ran();
        let shown = node.deploy_step.map(|step| step["step"].as_str().unwrap().to_owned());
        assert_eq!(shown, ran.last().cloned());
    }
}

/// Without an agent, too, an unknown deploy step fails the deployment.
#[tokio::test(start_paused = true)]
async fn an_unknown_deploy_step_is_not_dropped_without_an_agent() {
    let world = World::new().await;
    world.put(ProvisionState::Available, |_| {}).await;
    world.only_out_of_band(StepKind::Deploy, &[of("deploy", "deploy", 100)]);
    let _conductor = world.conductor(Settings::default());
    let user = vec![asked("deploy.nope", json!({"priority": 5}))];
    world.ask(VerbRequest::of(Verb::Deploy).with_steps(StepKind::Deploy, user)).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    assert!(node.last_error.unwrap().contains("'nope'"));
    assert!(world.ran().is_empty());
}

/// Ironic waits without limit for a step whose agent goes on sending heartbeats.
#[tokio::test(start_paused = true)]
async fn a_hanging_step_is_noticed_while_the_agent_is_heard() {
    for (settings, wanted) in [
        (Settings { step_timeout_s: 7200, step_stall_s: 0, ..Settings::default() }, "limit of 72"),
        (Settings { step_stall_s: 900, ..Settings::default() }, "no progress for 9"),
        (
            Settings {
                step_stall_override: [("deploy.erase_devices_metadata".to_owned(), 60)].into(),
                ..Settings::default()
            },
            "no progress for 6",
        ),
    ] {
        let world = World::new().await;
        world.suffer([Fault::Hang]);
        let _conductor = world.provide(settings).await;
        let node = world.until("waits", |n| n.clean_step.is_some() && n.wait.is_some()).await;
        let wait = node.wait.unwrap();
        assert!(wait.reason.contains("deploy.erase_devices_metadata") && wait.deadline.is_some(), "{wait:?}");
        let node = world.ended().await;
        assert_eq!((node.provision_state, node.maintenance), (ProvisionState::CleanFail, true));
        let error = node.last_error.unwrap();
        assert!(error.contains(wanted), "{error}");
        assert!(world.actions().contains(&"CancelCommand".to_owned()), "it was cancelled");
        assert!(world.is_on());
    }
}

#[tokio::test(start_paused = true)]
async fn equal_priorities_of_an_agents_steps_run_by_name_and_that_is_recorded() {
    let world = World::new().await;
    world.advertise(StepKind::Clean, vec![step("b", 10, true), step("a", 10, true), step("c", 5, true)]);
    let _conductor = world.provide(Settings::default()).await;
    let node = world.ended().await;
    assert_eq!(world.ran(), ["a", "b", "c"]);
    let texts = world.texts().await;
    let tie = "deploy.a, deploy.b have the same priority 10: they run in the order of their names";
    assert_eq!(texts.iter().filter(|text| **text == tie).count(), 1, "{texts:#?}");
    let plan: Vec<_> = node.run.unwrap().plan.unwrap().iter().map(PlannedStep::label).collect();
    assert_eq!(plan, ["deploy.a", "deploy.b", "deploy.c"]);
}

/// What a catalogue stores must not outlive a change of the configuration.
#[tokio::test(start_paused = true)]
async fn a_catalogue_has_the_priorities_of_the_agent_and_the_plan_those_of_the_configuration() {
    let world = World::new().await;
    let clean_step_priority_override = [("deploy.erase_devices_metadata".to_owned(), 0.0)].into();
    let _conductor = world.provide(Settings { clean_step_priority_override, ..Settings::default() }).await;
    world.until_state(ProvisionState::Available).await;
    assert_eq!(world.ran(), ["erase_devices"], "by the override");
    let catalogue = world.store.catalogue(world.node, StepKind::Clean).await.unwrap().unwrap();
    let priorities: Vec<_> = catalogue.steps.iter().map(|step| step.priority.to_string()).collect();
    assert_eq!(priorities, ["10", "99"], "by the agent");
}
