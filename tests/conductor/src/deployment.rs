//! A deployment with the deploy interface `direct`: the agent writes the image, and the node starts from its disk.

use crate::world::{Fault, World, asked, step};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bmc::{Builtin, Drivers};
use conductor::Settings;
use flate2::read::MultiGzDecoder;
use model::{DiskIdentity, Node, ProvisionState, StepKind, Verb};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use store::memory::MemoryStore;
use store::prelude::*;

const SECRET: &str = "hunter2";
const SHA: &str = "d3abad4080be9a88d34baa01be43afc84f4720c2c262cea679e6da8c4673f0c3";

fn with_image(node: &mut Node) {
    let info = json!({
        "image_source": format!("https://images/cloud.raw?signature={SECRET}"),
        "image_os_hash_algo": "sha256", "image_os_hash_value": SHA, "configdrive": format!("aXNv{SECRET}"),
        "root_device": {"serial": "S1"},
    });
    node.instance_info = info.as_object().unwrap().clone();
}

/// A node with the steps of `direct`, whose agent offers `write_image`, too, and a step between the others.
pub async fn world() -> Arc<World> {
    world_with(MemoryStore::new()).await
}

/// The same with this store.
pub async fn world_with(store: MemoryStore) -> Arc<World> {
    let world = World::with(store).await;
    world.put(ProvisionState::Available, with_image).await;
    let able = Builtin::default().abilities("redfish", &BTreeMap::new()).unwrap();
    *world.abilities.lock().unwrap() = able;
    world.advertise(StepKind::Deploy, vec![step("write_image", 90, true), step("tune", 70, true)]);
    world
}

async fn deployed(world: &Arc<World>) -> Node {
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    world.ended().await
}

#[tokio::test(start_paused = true)]
async fn the_agent_writes_the_image_and_the_node_starts_from_its_disk() {
    let world = world().await;
    let node = deployed(&world).await;
    assert_eq!(node.provision_state, ProvisionState::Active, "{:?}", node.last_error);
    assert!(world.is_on());
    assert_eq!(world.boots_from.lock().unwrap().as_deref(), Some("disk"));
    assert_eq!(world.store.contact(world.node).await.unwrap().token, None, "its agent is gone");

    let labels: Vec<String> =
        node.run.as_ref().unwrap().plan.as_ref().unwrap().iter().map(|planned| planned.label()).collect();
    let ironics = ["deploy", "write_image", "tune", "prepare_instance_boot", "tear_down_agent"];
    let ironics = [&ironics[..], &["switch_to_tenant_network", "boot_instance"]].concat();
    assert_eq!(labels, ironics.iter().map(|name| format!("deploy.{name}")).collect::<Vec<_>>());
    let by_the_agent = |name: &String| ["write_image", "tune", "install_bootloader"].contains(&name.as_str());
    let ran: Vec<String> = world.ran().into_iter().filter(by_the_agent).collect();
    assert_eq!(ran, ["write_image", "tune", "install_bootloader"]);
    // Switched off once for the ramdisk and once for the instance, and never again.
    let switched = world.actions().into_iter().filter(|action| action == "SetPower").count();
    assert_eq!(switched, 4);
}

#[tokio::test(start_paused = true)]
async fn the_agent_gets_the_image_and_no_plan_result_or_event_keeps_its_secrets() {
    let world = world().await;
    let node = deployed(&world).await;
    let sent = world.sent.lock().unwrap().clone();
    let args = &sent[0]["step"]["args"];
    assert_eq!(args["image_info"]["urls"], json!([format!("https://images/cloud.raw?signature={SECRET}")]));
    assert_eq!(args["configdrive"], format!("aXNv{SECRET}"));
    assert_eq!(sent[0]["node"]["instance_info"], json!({"root_device": {"serial": "S1"}}));
    assert_eq!(sent[1]["step"]["args"], Value::Null, "no other step gets it");
    assert_eq!(sent[2]["target_boot_mode"], Value::Null, "our agent takes that of its own boot");

    let run = serde_json::to_string(&node.run).unwrap();
    assert!(!run.contains(SECRET), "{run}");
    let texts = world.texts().await;
    assert!(!texts.iter().any(|text| text.contains(SECRET)), "{texts:?}");
}

/// What the agent is given of these parts.
async fn drive_of(parts: Value) -> (Vec<u8>, Node) {
    let world = world().await;
    let with_parts = |node: &mut Node| {
        with_image(node);
        node.instance_info.insert("configdrive".into(), parts.clone());
    };
    world.put(ProvisionState::Available, with_parts).await;
    let node = deployed(&world).await;
    let sent = world.sent.lock().unwrap()[0]["step"]["args"]["configdrive"].as_str().unwrap().to_owned();
    let mut iso = Vec::new();
    MultiGzDecoder::new(&STANDARD.decode(sent).unwrap()[..]).read_to_end(&mut iso).unwrap();
    (iso, node)
}

#[tokio::test(start_paused = true)]
async fn of_the_parts_of_a_configdrive_the_agent_gets_a_file_system() {
    let (iso, node) = drive_of(json!({"meta_data": {"hostname": "h"}, "user_data": SECRET})).await;
    assert_eq!(node.provision_state, ProvisionState::Active, "{:?}", node.last_error);
    let meta = json!({"hostname": "h", "uuid": node.uuid}).to_string();
    for part in ["CD001", "config-2", "vendor_data2.json"] {
        let there = iso.windows(part.len()).any(|bytes| bytes == part.as_bytes());
        assert_eq!(there, part != "vendor_data2.json", "{part}");
    }
    for part in [meta.as_str(), SECRET] {
        assert!(iso.windows(part.len()).any(|bytes| bytes == part.as_bytes()), "{part}");
    }
    // Kept as it was given: a rebuild makes it again.
    assert_eq!(node.instance_info["configdrive"]["user_data"], SECRET);
    assert!(!serde_json::to_string(&node.run).unwrap().contains(SECRET));
}

#[tokio::test(start_paused = true)]
async fn a_failure_names_the_cause_without_the_secrets_of_the_url() {
    let world = world().await;
    world.suffer([
        Fault::None,
        Fault::StepFails("GET https://images/cloud.raw?signature=hunter2 ended with 404"),
    ]);
    let node = deployed(&world).await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    let error = node.last_error.unwrap();
    assert!(error.contains("https://images/cloud.raw?****** ended with 404"), "{error}");
    assert!(!node.maintenance);
}

/// An image that cannot be written fails before the node is touched, should it get past the API.
#[tokio::test(start_paused = true)]
async fn without_the_step_that_writes_the_image_a_node_never_becomes_active() {
    let world = world().await;
    let _conductor = world.conductor(Settings::default());
    let off = asked("deploy.write_image", json!({"priority": 0, "args": {}}));
    world.ask(model::request::VerbRequest::of(Verb::Deploy).with_steps(StepKind::Deploy, vec![off])).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    assert!(node.last_error.unwrap().contains("nothing would be deployed"));
}

/// Hints may be changed meanwhile, and disks added.
#[tokio::test(start_paused = true)]
async fn a_rebuild_names_the_disk_of_the_deployment_before_until_the_node_is_torn_down() {
    let world = world().await;
    let node = deployed(&world).await;
    let disk = DiskIdentity { serial: Some("S1".into()), wwn: None };
    assert_eq!(node.root_disk, Some(disk));
    let named = |world: &World| {
        let sent = world.sent.lock().unwrap();
        let images = sent.iter().map(|params| &params["step"]["args"]["image_info"]);
        images.filter(|info| info.is_object()).map(|info| info["anneal"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(named(&world), [Value::Null], "any disk may be the first");
    world.verb(Verb::Rebuild).await;
    assert_eq!(world.ended().await.provision_state, ProvisionState::Active);
    assert_eq!(named(&world), [Value::Null, json!({"disk": {"serial": "S1"}})]);

    world.put(ProvisionState::Active, |node| node.automated_clean = Some(false)).await;
    world.verb(Verb::Delete).await;
    assert_eq!(world.until_state(ProvisionState::Available).await.root_disk, None);
}
