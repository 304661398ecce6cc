//! A deployment that is done when its instance has said hello.

use crate::deployment;
use crate::world::{World, asked};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conductor::Settings;
use flate2::read::MultiGzDecoder;
use model::hello::{HelloNonce, WAIT_FOR_HELLO};
use model::request::VerbRequest;
use model::run::Cursor;
use model::{Node, ProvisionState, StepKind, Verb};
use serde_json::json;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, prelude::*};
use tokio::time::sleep;

/// Seconds for which the hello is awaited.
const LIMIT: u64 = 600;

/// As [`deployment::world`], with a deployment that awaits a hello.
pub async fn world() -> Arc<World> {
    let world = deployment::world().await;
    let ask = |node: &mut Node| {
        let info = json!({
            "image_source": "https://images/cloud.raw", "image_os_hash_algo": "sha256",
            "image_os_hash_value": "0".repeat(64),
            "configdrive": {"user_data": "#!/bin/sh", "vendor_data": {"of": "the user"}}, WAIT_FOR_HELLO: LIMIT,
        });
        node.instance_info = info.as_object().unwrap().clone();
    };
    world.put(ProvisionState::Available, ask).await;
    world
}

pub fn awaits(node: &Node) -> bool {
    matches!(node.run.as_ref().map(|run| &run.cursor), Some(Cursor::AwaitHello { .. }))
}

/// The file system that the agent was given.
fn drive(world: &World) -> Vec<u8> {
    let sent = world.sent.lock().unwrap()[0]["step"]["args"]["configdrive"].as_str().unwrap().to_owned();
    let mut iso = Vec::new();
    MultiGzDecoder::new(&STANDARD.decode(sent).unwrap()[..]).read_to_end(&mut iso).unwrap();
    iso
}

/// What cloud-init finds in the drive, and requests.
fn nonce(world: &World) -> String {
    let iso = String::from_utf8_lossy(&drive(world)).into_owned();
    let (_, rest) = iso.split_once("http://192.0.2.7:8089/hello/").expect("the URL is in the drive");
    rest.chars().take_while(char::is_ascii_hexdigit).collect()
}

/// Whether the controller hears the nonce.
async fn says(world: &World, nonce: &str) -> bool {
    store::hello::hear(&*world.store, &HelloNonce::shown(nonce), world.clock.now()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_done_when_its_instance_has_said_hello() {
    let world = world().await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    world.until("the image is written", |_| !world.sent.lock().unwrap().is_empty()).await;
    let nonce = nonce(&world);
    assert_eq!(nonce.len(), 64);
    assert!(!says(&world, &nonce).await, "the instance does not run yet");
    let node = world.until("the hello is awaited", awaits).await;
    assert_eq!(node.provision_state, ProvisionState::DeployWait);
    assert_eq!(node.deploy_step.as_ref().unwrap()["step"], "boot_instance");
    assert!(!node.boots_ramdisk(), "firmware that asks the network first gets to the disk");
    sleep(Duration::from_secs(LIMIT - 30)).await;
    assert!(awaits(&world.store.node(world.node).await.unwrap()), "nothing else ends the wait");
    for wrong in ["", &nonce[1..], &"0".repeat(64)] {
        assert!(!says(&world, wrong).await, "{wrong}");
    }
    assert!(says(&world, &nonce).await);
    assert!(!says(&world, &nonce).await, "a second time");
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Active, "{:?}", node.last_error);
    let texts = world.texts().await;
    assert!(texts.iter().any(|text| text == "the instance has said hello"), "{texts:#?}");
    assert!(!texts.iter().any(|text| text.contains(&nonce)), "{texts:#?}");
    // The user's part of the drive is as it was given.
    for part in ["the user", "#!/bin/sh", "vendor_data2.json", "vendor_data.json"] {
        assert!(drive(&world).windows(part.len()).any(|bytes| bytes == part.as_bytes()), "{part}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_hello_the_deployment_fails_and_the_node_stays_on() {
    let world = world().await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    world.until("the hello is awaited", awaits).await;
    let began = world.clock.seconds();
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    let took = world.clock.seconds() - began;
    assert!((LIMIT as f64 - 10.0..LIMIT as f64 + 10.0).contains(&took), "{took} s");
    let error = node.last_error.unwrap();
    for part in [
        "Deploy step deploy.boot_instance failed",
        "powered on into its disk at 20",
        "within 600 s",
        "still on",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert!(world.is_on() && !node.maintenance);
    assert!(!says(&world, &nonce(&world)).await, "the nonce has ended with the deployment");
}

/// The nonce is in the store, and an instance that gets no answer calls again.
#[tokio::test(start_paused = true)]
async fn a_controller_that_was_killed_goes_on_waiting_and_gives_the_instance_its_time() {
    let world = world().await;
    let (stop, task) = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    world.until("the hello is awaited", awaits).await;
    task.abort();
    drop(stop);
    sleep(Duration::from_secs(2 * LIMIT)).await;
    let _conductor = world.conductor(Settings::default());
    sleep(Duration::from_secs(60)).await;
    assert!(
        awaits(&world.store.node(world.node).await.unwrap()),
        "silence counts from the start of the controller"
    );
    assert!(says(&world, &nonce(&world)).await);
    assert_eq!(world.ended().await.provision_state, ProvisionState::Active);
}

#[tokio::test(start_paused = true)]
async fn abort_and_undeploy_end_the_wait_and_the_nonce() {
    for (verb, state) in
        [(Verb::Abort, ProvisionState::DeployFail), (Verb::Delete, ProvisionState::Available)]
    {
        let world = world().await;
        let _conductor = world.conductor(Settings::default());
        world.verb(Verb::Deploy).await;
        world.until("the hello is awaited", awaits).await;
        let nonce = nonce(&world);
        world.verb(verb).await;
        world.until("the wait is over", |node| !awaits(node)).await;
        assert!(!says(&world, &nonce).await, "{}", verb.as_str());
        world.until_state(state).await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_deployment_has_a_nonce_of_its_own() {
    let world = world().await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    world.until("the hello is awaited", awaits).await;
    let first = nonce(&world);
    assert!(says(&world, &first).await);
    world.until_state(ProvisionState::Active).await;
    world.sent.lock().unwrap().clear();
    world.verb(Verb::Rebuild).await;
    world.until("the hello is awaited", awaits).await;
    assert_ne!(first, nonce(&world));
    assert!(!says(&world, &first).await);
    assert!(says(&world, &nonce(&world)).await);
    world.until_state(ProvisionState::Active).await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_never_starts_the_instance_is_refused_before_anything_is_written() {
    let world = world().await;
    let _conductor = world.conductor(Settings::default());
    let off = asked("deploy.boot_instance", json!({"priority": 0, "args": {}}));
    world.ask(VerbRequest::of(Verb::Deploy).with_steps(StepKind::Deploy, vec![off])).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    let error = node.last_error.unwrap();
    assert!(error.contains(WAIT_FOR_HELLO) && error.contains("deploy.boot_instance"), "{error}");
    assert!(world.sent.lock().unwrap().is_empty() && world.ran().is_empty());
}
