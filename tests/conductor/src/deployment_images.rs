//! A deployment whose image the controller serves: the image is ready before the agent writes, and the agent gets the URL of the
//! controller's copy.

use crate::deployment::world;
use crate::situation::{Scripted, heard, ipa};
use crate::world::World;
use agent_protocol::command::{CommandStatus, Status};
use conductor::Settings;
use conductor::agent_client::AgentClient;
use conductor::decision::Outcome;
use image_source::{Algorithm, Digest};
use images::{Endpoint, ImageStore};
use model::{AgentApi, CatalogueStep, Node, PlannedStep, ProvisionState, RunKind, Verb};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const IMAGE: &[u8] = b"an image";

fn sha256(bytes: &[u8]) -> String {
    let mut digest = Digest::new(Algorithm::Sha256);
    digest.update(bytes);
    digest.finish()
}

/// A store of the files in `directory`, with a cache in it, too.
fn serving(directory: &Path) -> ImageStore {
    let settings = images::Settings {
        directory: directory.into(),
        hosts: vec!["127.0.0.1".into()],
        cache: true,
        cache_directory: directory.join("cache"),
        cache_min_free_mib: 0,
        ..images::Settings::default()
    };
    let endpoint = Endpoint { address: ([192, 0, 2, 9], 6385).into(), pin: Some("sha256:00".into()) };
    let never = vec!["192.0.2.9/32".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
    let store = ImageStore::open(settings, never, Some(endpoint), || Ok(Vec::new())).unwrap();
    store.alongside(|| {
        let of = |url: &str| AgentApi {
            url: url.to_owned(),
            url_ipv6: None,
            pin_sha256: Some("aa".repeat(32)),
            gives_addresses: false,
        };
        vec![of("https://192.0.2.8:6385"), of("https://name.without.address:6385")]
    })
}

fn image_of(node: &mut Node, source: &str, digest: &str) {
    let info = json!({"image_source": source, "image_os_hash_algo": "sha256", "image_os_hash_value": digest});
    node.instance_info = info.as_object().unwrap().clone();
}

async fn world_with(source: &str, digest: &str, images: ImageStore) -> Arc<World> {
    let world = world().await;
    world.put(ProvisionState::Available, |node| image_of(node, source, digest)).await;
    *world.images.lock().unwrap() = images;
    world
}

#[tokio::test(start_paused = true)]
async fn the_agent_gets_the_controllers_copy_and_the_operators_fields_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.raw");
    std::fs::write(&path, IMAGE).unwrap();
    let source = format!("file://{}", path.display());
    let world = world_with(&source, &sha256(IMAGE), serving(directory.path())).await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::Active, "{:?}", node.last_error);
    assert_eq!(node.instance_info["image_source"], source);
    // Asked until the image is ready.
    let mut steps = world.ran();
    steps.dedup();
    assert_eq!(steps[..2], ["deploy", "write_image"]);

    let info = world.sent.lock().unwrap()[0]["step"]["args"]["image_info"].clone();
    let name = format!("file-sha256-{}", sha256(IMAGE));
    assert_eq!(info["urls"], json!([format!("https://192.0.2.9:6385/v1/anneal/images/{name}")]));
    assert_eq!((&info["os_hash_algo"], &info["os_hash_value"]), (&json!("sha256"), &json!(sha256(IMAGE))));
    let anneal = &info["anneal"];
    assert_eq!(anneal["pin"], "sha256:00");
    assert_eq!(anneal["hosts"], json!(["127.0.0.1/32", "192.0.2.9", "192.0.2.8"]));
    let pin = format!("sha256:{}", "aa".repeat(32));
    let copy = format!("https://192.0.2.8:6385/v1/anneal/images/{name}");
    assert_eq!(
        info["anneal_copies"],
        json!([{"url": copy, "pin": pin}]),
        "where it is when this controller dies"
    );
    assert_eq!(anneal["never_hosts"], json!(["10.0.0.0/8"]));
    assert_eq!(anneal["headers"]["x-anneal-node"], json!(node.uuid));
    let token = anneal["headers"]["x-anneal-agent-token"].as_str().expect("a token").to_owned();
    assert!(token.len() > 10);

    let run = node.run.unwrap();
    let found = &run.results[0].result["image"];
    let expected =
        json!({"source": source, "algorithm": "sha256", "digest": sha256(IMAGE), "bytes": 8, "served": true});
    assert_eq!(found, &expected);
    let kept = format!("{}{:?}", serde_json::to_string(&run).unwrap(), world.texts().await);
    assert!(!kept.contains(&token), "{kept}");
}

#[tokio::test(start_paused = true)]
async fn an_image_with_another_digest_fails_before_the_agent_is_asked_to_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.raw");
    std::fs::write(&path, IMAGE).unwrap();
    let source = format!("file://{}", path.display());
    let world = world_with(&source, &sha256(b"another"), serving(directory.path())).await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    let error = node.last_error.unwrap();
    let said = format!("the sha256 of {source} is {}, not {}", sha256(IMAGE), sha256(b"another"));
    assert!(error.contains("deploy.deploy") && error.contains(&said), "{error}");
    assert!(world.sent.lock().unwrap().is_empty());
}

/// A mirror that accepts, and answers nothing.
#[tokio::test(start_paused = true)]
async fn the_wait_for_an_image_is_seen_and_can_be_aborted() {
    let mirror = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let source = format!("http://me:hunter2@{}/a.raw?key=hunter2", mirror.local_addr().unwrap());
    let world = world_with(&source, &sha256(IMAGE), serving(directory.path())).await;
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Deploy).await;
    let waits = |node: &Node| node.wait.as_ref().is_some_and(|wait| wait.reason.contains("to be fetched"));
    let node = world.until("waits for the image", waits).await;
    assert_eq!(node.provision_state, ProvisionState::DeployWait);
    let reason = node.wait.unwrap().reason;
    let shown = format!("http://******@{}/a.raw?****** to be fetched", mirror.local_addr().unwrap());
    assert!(reason.starts_with("step deploy.deploy to end: ") && reason.contains(&shown), "{reason}");
    world.verb(Verb::Abort).await;
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::DeployFail);
    assert!(node.last_error.unwrap().contains("By request"));
    assert!(world.sent.lock().unwrap().is_empty());
    assert!(!format!("{:?}", world.texts().await).contains("hunter2"));
}

/// The outcome of sending `write_image`, and `image_info` as it was sent.
async fn sent(images: ImageStore, source: &str, digest: &str, theirs: bool) -> (Outcome, Option<Value>) {
    let answer =
        CommandStatus { command_name: "execute_deploy_step".into(), ..room::command("c", Status::Running) };
    let agent = Scripted::with(&[], &answer);
    let mut node = Node::enrolled(Uuid::nil(), "redfish", model::Timestamp(0));
    image_of(&mut node, source, digest);
    let step: CatalogueStep = serde_json::from_value(json!({
        "interface": "deploy", "step": "write_image", "priority": 80, "provider": "direct", "in_band": true,
    }))
    .unwrap();
    let step = PlannedStep { step, given: Map::new() };
    let contact = if theirs { ipa() } else { heard("b") };
    let client = AgentClient::over(agent.clone()).serving(images);
    let begun = Instant::now();
    let outcome = loop {
        match client.send_step(&node, &contact, "c", RunKind::Deploy, &step).await {
            Outcome::Failed(error) if error.retryable && begun.elapsed() < Duration::from_secs(60) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            outcome => break outcome,
        }
    };
    let info = agent.sent().first().map(|sent| sent["params"]["step"]["args"]["image_info"].clone());
    (outcome, info)
}

#[tokio::test]
async fn ironic_python_agent_gets_the_original_url_and_no_file_of_the_controller() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.raw");
    std::fs::write(&path, IMAGE).unwrap();
    let file = format!("file://{}", path.display());
    let (outcome, _) = sent(serving(directory.path()), &file, &sha256(IMAGE), true).await;
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    assert!(!error.retryable && error.text.contains("ironic-python-agent"), "{}", error.text);
    let url = "http://127.0.0.1:1/a.raw";
    let (outcome, info) = sent(serving(directory.path()), url, &sha256(IMAGE), true).await;
    assert!(matches!(outcome, Outcome::Command(_)), "{outcome:?}");
    let info = info.expect("sent");
    assert_eq!((&info["urls"], info.get("anneal")), (&json!([url]), None));
}

/// After a restart of the controller nothing is known of the comparison: it is made again.
#[tokio::test]
async fn an_image_that_is_no_longer_ready_is_awaited_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.raw");
    std::fs::write(&path, IMAGE).unwrap();
    let file = format!("file://{}", path.display());
    let (outcome, info) = sent(serving(directory.path()), &file, &sha256(IMAGE), false).await;
    assert!(matches!(outcome, Outcome::Command(_)), "{outcome:?}");
    assert!(info.expect("sent")["urls"][0].as_str().unwrap().starts_with("https://192.0.2.9:6385/"));
}

#[tokio::test]
async fn without_the_cache_the_agent_judges_hosts_as_the_controller_does() {
    let directory = tempfile::tempdir().unwrap();
    let settings = images::Settings { hosts: vec![".example".into()], ..images::Settings::default() };
    let never = vec!["10.0.0.0/8".parse().unwrap()];
    let store = ImageStore::open(settings, never, None, || Ok(Vec::new())).unwrap();
    let (outcome, info) = sent(store.clone(), "http://m.example/a", &sha256(IMAGE), false).await;
    assert!(matches!(outcome, Outcome::Command(_)), "{outcome:?}");
    let expected = json!({"hosts": [".example"], "never_hosts": ["10.0.0.0/8"]});
    assert_eq!(info.expect("sent")["anneal"], expected);
    let (outcome, _) = sent(store, "http://other/a", &sha256(IMAGE), false).await;
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    assert!(error.text.contains("other is not in [images] hosts"), "{}", error.text);
    drop(directory);
}

/// Of what the test signs itself.
const CA: &str = include_str!("fixtures/mirror-ca.pem");

#[tokio::test]
async fn agents_of_ours_get_the_certificates_that_mirrors_may_have() {
    let directory = tempfile::tempdir().unwrap();
    let ca_file = directory.path().join("ca.pem");
    std::fs::write(&ca_file, CA).unwrap();
    let pin = format!("sha256:{}", "aa".repeat(32));
    let pins = [("pinned.example".to_owned(), vec![pin])].into();
    let with = |cache: bool| {
        let cache_directory = directory.path().join("cache");
        let directory = directory.path().into();
        let (ca_file, pins) = (ca_file.clone(), std::clone::Clone::clone(&pins));
        let settings = images::Settings {
            ca_file,
            pins,
            cache,
            cache_directory,
            directory,
            ..images::Settings::default()
        };
        let endpoint = Endpoint { address: ([192, 0, 2, 9], 6385).into(), pin: Some("sha256:00".into()) };
        ImageStore::open(settings, Vec::new(), Some(endpoint), || Ok(Vec::new())).unwrap()
    };
    let (_, info) = sent(with(false), "https://m.example/a", &sha256(IMAGE), false).await;
    assert_eq!(info.expect("sent")["anneal"], json!({"ca": CA, "pins": pins}));
    let (_, info) = sent(with(false), "https://m.example/a", &sha256(IMAGE), true).await;
    assert_eq!(info.expect("sent").get("anneal"), None, "ironic-python-agent has its own");
    // The configuration drive may come from a mirror, too.
    let image = directory.path().join("a.raw");
    std::fs::write(&image, IMAGE).unwrap();
    let (_, info) = sent(with(true), &format!("file://{}", image.display()), &sha256(IMAGE), false).await;
    let anneal = info.expect("sent")["anneal"].clone();
    assert_eq!(
        (&anneal["ca"], &anneal["pins"], &anneal["pin"]),
        (&json!(CA), &json!(pins), &json!("sha256:00"))
    );
}

/// As Ironic sends them; who gets the image from the controller needs none.
#[tokio::test]
async fn agents_that_ask_mirrors_get_the_proxies() {
    let directory = tempfile::tempdir().unwrap();
    let with = |cache: bool| {
        let settings = images::Settings {
            https_proxy: "http://u:word@proxy.example:3128".into(),
            no_proxy: "own.example".to_owned(),
            cache,
            cache_directory: directory.path().join("cache"),
            directory: directory.path().into(),
            ..images::Settings::default()
        };
        let endpoint = Endpoint { address: ([192, 0, 2, 9], 6385).into(), pin: Some("sha256:00".into()) };
        ImageStore::open(settings, Vec::new(), Some(endpoint), || Ok(Vec::new())).unwrap()
    };
    for is_ipa in [false, true] {
        let (_, info) = sent(with(false), "http://m.example/a", &sha256(IMAGE), is_ipa).await;
        let info = info.expect("sent");
        assert_eq!(info["proxies"], json!({"https": "http://u:word@proxy.example:3128"}));
        assert_eq!(info["no_proxy"], "own.example");
    }
    let image = directory.path().join("a.raw");
    std::fs::write(&image, IMAGE).unwrap();
    let (_, info) = sent(with(true), &format!("file://{}", image.display()), &sha256(IMAGE), false).await;
    assert_eq!(info.expect("sent").get("proxies"), None);
    let (_, info) = sent(ImageStore::default(), "http://m.example/a", &sha256(IMAGE), false).await;
    assert_eq!(info.expect("sent").get("proxies"), None);
}
