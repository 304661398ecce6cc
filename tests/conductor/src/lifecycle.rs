//! Every verb of the state machine, in the simulated machine room: with an agent, and without one.

use crate::world::{Fault, NIC, World, asked, step};
use conductor::Settings;
use model::abilities::Inspect;
use model::request::{RESCUE_HASH, VerbRequest};
use model::run::Cursor;
use model::{Node, PowerState, ProvisionState, ResourceKind, StepKind, Verb};
use serde_json::{Value, json};
use store::{ResourceWrite, prelude::*};

fn rescue() -> VerbRequest {
    VerbRequest { rescue_hash: Some("$6$salt$hash".into()), ..VerbRequest::of(Verb::Rescue) }
}

/// Until the node is at rest again.
async fn rest(world: &World) -> Node {
    let node = world.ended().await;
    assert!(node.provision_state.is_stable(), "{:?} {:#?}", node.last_error, world.texts().await);
    node
}

fn fake(world: &World) {
    let done = |interface: &str, step: &str, priority: i64| json!({"interface": interface, "step": step, "priority": priority});
    world.only_out_of_band(StepKind::Clean, &[done("management", "reset", 10)]);
    world.out_of_band(StepKind::Deploy, &[done("deploy", "deploy", 100)]);
    world.out_of_band(StepKind::Service, &[done("deploy", "tune", 0)]);
}

/// specs/state-machine.txt, the table of verbs: intermediate states with their momentary ones, and the end.
#[tokio::test(start_paused = true)]
async fn every_verb_passes_its_states_and_the_history_records_it_all() {
    let world = World::new().await;
    fake(&world);
    world.put(ProvisionState::Enroll, |_| {}).await;
    let _conductor = world.conductor(Settings::default());
    let service =
        VerbRequest::of(Verb::Service).with_steps(StepKind::Service, vec![asked("deploy.tune", json!({}))]);
    for (request, end) in [
        (VerbRequest::of(Verb::Manage), ProvisionState::Manageable),
        (VerbRequest::of(Verb::Inspect), ProvisionState::Manageable),
        (VerbRequest::of(Verb::Provide), ProvisionState::Available),
        (VerbRequest::of(Verb::Deploy), ProvisionState::Active),
        (VerbRequest::of(Verb::Rebuild), ProvisionState::Active),
        (rescue(), ProvisionState::Rescue),
        (VerbRequest::of(Verb::Unrescue), ProvisionState::Active),
        (service, ProvisionState::Active),
        (VerbRequest::of(Verb::Delete), ProvisionState::Available),
        (VerbRequest::of(Verb::Manage), ProvisionState::Manageable),
        (VerbRequest::of(Verb::Adopt), ProvisionState::Active),
    ] {
        let verb = request.verb;
        world.ask(request).await;
        let node = rest(&world).await;
        assert_eq!(node.provision_state, end, "{verb:?}: {:#?}", world.texts().await);
        assert_eq!(node.target_provision_state, None);
    }
    assert_eq!(
        world.path().await,
        [
            "enroll -> verifying",
            "VERIFIED",
            "verifying -> manageable",
            "manageable -> inspecting",
            "INSPECTED",
            "inspecting -> manageable",
            "manageable -> cleaning",
            "CLEANED",
            "cleaning -> available",
            "available -> deploying",
            "DEPLOYED",
            "deploying -> active",
            "active -> deploying",
            "DEPLOYED",
            "deploying -> active",
            "active -> rescuing",
            "RESCUED",
            "rescuing -> rescue",
            "rescue -> unrescuing",
            "UNRESCUED",
            "unrescuing -> active",
            "active -> servicing",
            "SERVICED",
            "servicing -> active",
            "active -> deleting",
            "DELETED",
            "deleting -> cleaning",
            "CLEANED",
            "cleaning -> available",
            "available -> manageable",
            "manageable -> adopting",
            "ADOPTED",
            "adopting -> active",
        ]
    );
    // Cleaning ran on provide and after delete, and on no rebuild.
    assert_eq!(world.ran(), ["reset", "deploy", "deploy", "tune", "reset"]);
}

#[tokio::test(start_paused = true)]
async fn the_agent_sends_the_inventory_and_properties_follow_it() {
    let world = World::new().await;
    let _conductor = world.conductor(Settings::default());
    world
        .put(ProvisionState::Manageable, |node| {
            node.properties.insert("memory_mb".into(), 1.into());
            node.properties.insert("rack".into(), "r7".into());
        })
        .await;
    world.verb(Verb::Inspect).await;
    let node = rest(&world).await;
    assert_eq!(
        Value::Object(node.properties.clone()),
        json!({"memory_mb": 512, "rack": "r7", "cpus": 4, "cpu_arch": "x86_64"})
    );
    assert!(node.inspection_started_at.unwrap() < node.inspection_finished_at.unwrap());
    let known: Vec<_> = node.disks.known.iter().map(|disk| disk.name()).collect();
    assert_eq!(known, ["S1"], "the next erase must report what was found");
    assert_eq!(
        world.path().await,
        [
            "manageable -> inspecting",
            "inspecting -> inspect wait",
            "inspect wait -> inspecting",
            "INSPECTED",
            "inspecting -> manageable"
        ]
    );
    assert!(!world.is_on());
    assert_eq!(world.store.inventory(world.node).await.unwrap().unwrap().source, "agent");

    let ports = world.store.resources(ResourceKind::Port, Some(world.node)).await.unwrap();
    let [port] = ports.as_slice() else { panic!("{ports:?}") };
    assert_eq!((port.address(), port.pxe_enabled()), (NIC, true));

    for how in [Inspect::Bmc, Inspect::Fake] {
        world.abilities.lock().unwrap().inspect = how;
        world.verb(Verb::Inspect).await;
        world.until("asked the BMC", |node| node.provision_state == ProvisionState::Manageable).await;
        assert_eq!(world.store.inventory(world.node).await.unwrap().unwrap().source, "redfish");
        assert!(!world.is_on(), "the BMC needs no boot");
        let now = world.store.resources(ResourceKind::Port, Some(world.node)).await.unwrap();
        if how == Inspect::Bmc {
            assert_eq!(now, ports, "the port is there already");
            let gone = ResourceWrite::Delete(port.kind, port.uuid, port.version);
            world.store.write_resource(gone, None, vec![]).await.unwrap();
        } else {
            assert_eq!(now, [], "what is made up becomes no port");
        }
    }
}

/// An inventory of an earlier inspection is not taken for this one's, and silence ends in INSPECTFAIL.
#[tokio::test(start_paused = true)]
async fn an_inspection_without_a_new_inventory_fails_with_the_reason() {
    let world = World::new().await;
    *world.unplugged.lock().unwrap() = true;
    world.store.put_inventory(world.node, world.inventory("agent")).await.unwrap();
    let _conductor = world.conductor(Settings::default());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    world.verb(Verb::Inspect).await;
    let node = world.until_state(ProvisionState::InspectFail).await;
    assert!(node.last_error.unwrap().contains("no inventory within 1800 s"));
    assert!(!node.maintenance);
    world.verb(Verb::Inspect).await;
    world.until_state(ProvisionState::InspectWait).await;
    world.verb(Verb::Abort).await;
    let node = world.until_state(ProvisionState::InspectFail).await;
    assert_eq!(node.last_error.unwrap(), "By request, the inspection operation was aborted");
}

#[tokio::test(start_paused = true)]
async fn rescue_boots_the_ramdisk_with_the_hash_and_unrescue_takes_it_all_back() {
    let world = World::new().await;
    world.put(ProvisionState::Active, |_| {}).await;
    let _conductor = world.conductor(Settings::default());
    world.ask(rescue()).await;
    let node = rest(&world).await;
    assert_eq!(node.provision_state, ProvisionState::Rescue);
    assert_eq!(*world.rescued_with.lock().unwrap(), Some(json!("$6$salt$hash")));
    assert!(world.is_on() && node.boots_ramdisk());
    assert_eq!(
        world.path().await,
        [
            "active -> rescuing",
            "rescuing -> rescue wait",
            "rescue wait -> rescuing",
            "rescuing -> rescue wait",
            "rescue wait -> rescuing",
            "RESCUED",
            "rescuing -> rescue"
        ]
    );
    world.verb(Verb::Unrescue).await;
    let node = rest(&world).await;
    assert_eq!(node.provision_state, ProvisionState::Active);
    assert!(!node.instance_info.contains_key(RESCUE_HASH) && !node.boots_ramdisk());
    assert!(world.is_on(), "the workload runs again");
    assert_eq!(world.store.contact(world.node).await.unwrap().token, None);
}

#[tokio::test(start_paused = true)]
async fn deleting_takes_back_what_deploying_added_and_then_cleans() {
    let world = World::new().await;
    world
        .put(ProvisionState::Active, |node| {
            node.instance_info.insert("image_source".into(), "http://images/x".into());
            node.instance_uuid = Some(uuid::Uuid::new_v4());
            node.deploy_step = Some(json!({"step": "old"}));
            node.driver_internal_info.insert("deploy_steps".into(), json!([1]));
        })
        .await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Delete).await;
    let node = rest(&world).await;
    assert_eq!(node.provision_state, ProvisionState::Available);
    assert!(node.instance_info.is_empty() && node.instance_uuid.is_none() && node.deploy_step.is_none());
    assert!(!node.driver_internal_info.contains_key("deploy_steps"));
    assert_eq!(world.ran(), ["erase_devices_metadata", "erase_devices"]);
    assert!(node.run.unwrap().all_succeeded());
}

#[tokio::test(start_paused = true)]
async fn a_tear_down_that_fails_ends_in_error_with_the_reason_and_can_be_tried_again() {
    let world = World::new().await;
    world
        .put(ProvisionState::Active, |node| {
            node.instance_info.insert("image_source".into(), "http://images/x".into());
            node.power_state = Some(PowerState::On);
        })
        .await;
    *world.bmc_stuck.lock().unwrap() = true;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Delete).await;
    let node = world.until_state(ProvisionState::Error).await;
    assert!(node.last_error.unwrap().contains("the BMC is stuck"));
    assert!(node.instance_info.contains_key("image_source"), "nothing was taken back");
    assert!(!world.path().await.contains(&"DELETED".to_owned()));
    *world.bmc_stuck.lock().unwrap() = false;
    world.verb(Verb::Delete).await;
    assert_eq!(rest(&world).await.provision_state, ProvisionState::Available);
}

#[tokio::test(start_paused = true)]
async fn a_ramdisk_that_could_not_inspect_fails_the_inspection_in_its_words() {
    let world = World::new().await;
    *world.plugin_data.lock().unwrap() = json!({"error": "lshw is missing"});
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Inspect).await;
    let node = world.until_state(ProvisionState::InspectFail).await;
    assert!(node.last_error.unwrap().contains("lshw is missing"));
    assert!(!node.properties.contains_key("memory_mb"));
}

#[tokio::test(start_paused = true)]
async fn a_rescued_node_is_deleted_as_an_active_one() {
    let world = World::new().await;
    fake(&world);
    world.put(ProvisionState::Active, |_| {}).await;
    let _conductor = world.conductor(Settings::default());
    world.ask(rescue()).await;
    rest(&world).await;
    world.verb(Verb::Delete).await;
    let node = rest(&world).await;
    assert!(!node.instance_info.contains_key(RESCUE_HASH));
    assert_eq!(
        world.path().await[3..],
        ["rescue -> deleting", "DELETED", "deleting -> cleaning", "CLEANED", "cleaning -> available"]
    );
}

/// With cleaning switched off Ironic makes a retired node available here (05-experiments 5).
#[tokio::test(start_paused = true)]
async fn a_retired_node_is_never_available_after_delete() {
    for (enabled, own, retired, end) in [
        (true, None, true, ProvisionState::Manageable),
        (false, None, true, ProvisionState::Manageable),
        (true, Some(false), true, ProvisionState::Manageable),
        (false, None, false, ProvisionState::Available),
        (false, Some(true), false, ProvisionState::Available),
    ] {
        let world = World::new().await;
        world
            .put(ProvisionState::Active, |node| {
                node.automated_clean = own;
                node.retired = retired;
            })
            .await;
        let _conductor = world.conductor(Settings { automated_clean_enable: enabled, ..Settings::default() });
        world.verb(Verb::Delete).await;
        let node = rest(&world).await;
        assert_eq!(node.provision_state, end, "{enabled} {own:?} {retired}");
        let cleans = own.unwrap_or(enabled);
        assert_eq!(world.ran().is_empty(), !cleans);
        assert!(world.path().await.contains(&"DELETED".to_owned()));
        let path = world.path().await;
        assert!(!path.iter().any(|step| step.contains("-> available")) || !retired, "{path:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_interrupts_a_deployment_that_waits() {
    let world = World::new().await;
    world.put(ProvisionState::Available, |_| {}).await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    world.until_state(ProvisionState::DeployWait).await;
    world.verb(Verb::Delete).await;
    let node = rest(&world).await;
    assert_eq!(node.provision_state, ProvisionState::Available);
    let path = world.path().await;
    let deleted = ["wait call-back -> deleting", "DELETED", "deleting -> cleaning"];
    assert!(path.windows(3).any(|three| three == deleted), "{path:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_service_keeps_the_node_and_service_is_taken_again() {
    let world = World::new().await;
    world.put(ProvisionState::Active, |_| {}).await;
    world.advertise(StepKind::Service, vec![step("tune", 0, true)]);
    world.suffer([Fault::StepFails("no such knob")]);
    let _conductor = world.conductor(Settings::default());
    let service = || {
        VerbRequest::of(Verb::Service).with_steps(StepKind::Service, vec![asked("deploy.tune", json!({}))])
    };
    world.ask(service()).await;
    let node = world.until_state(ProvisionState::ServiceFail).await;
    assert_eq!((node.maintenance, node.fault.as_deref()), (true, Some("service failure")));
    assert!(node.last_error.unwrap().starts_with("Service step deploy.tune failed"));
    assert_eq!(node.service_step.unwrap()["step"], "tune");
    assert!(world.is_on());
    world.ask(service()).await;
    let node = rest(&world).await;
    assert_eq!((node.provision_state, node.maintenance), (ProvisionState::Active, false));
    assert_eq!((node.service_step, node.run.unwrap().cursor), (None, Cursor::Done));
    assert!(world.is_on(), "the workload runs again");
}

/// Ironic's abort of a step that cannot be stopped never ends if nothing ends the step (05-experiments 20);
/// here the step has a deadline.
#[tokio::test(start_paused = true)]
async fn an_abort_of_a_hanging_step_that_cannot_be_stopped_ends_with_its_deadline() {
    let world = World::new().await;
    world.put(ProvisionState::Active, |_| {}).await;
    let long = json!({"step": "flash", "interface": "deploy", "priority": 0, "abortable": false});
    let long = serde_json::from_value(long).unwrap();
    world.advertise(StepKind::Service, vec![long]);
    world.suffer([Fault::Hang]);
    let _conductor = world.conductor(Settings { step_timeout_s: 7200, ..Settings::default() });
    let service =
        VerbRequest::of(Verb::Service).with_steps(StepKind::Service, vec![asked("deploy.flash", json!({}))]);
    world.ask(service).await;
    world.until("runs", |n| n.service_step.is_some()).await;
    world.until_state(ProvisionState::ServiceWait).await;
    world.verb(Verb::Abort).await;
    let node = world.until_state(ProvisionState::ServiceFail).await;
    assert!(node.last_error.unwrap().contains("Service step deploy.flash failed"));
}
