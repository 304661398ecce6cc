//! Images that the controller serves: only to the agent of the node whose run deploys them.

use crate::common::Api;
use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use api::Settings;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use images::{Endpoint, ImageStore, State, Wanted};
use model::{Cursor, Inventory, Node, ProvisionState, Run, RunKind, Timestamp};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::Path;
use store::{TokenGrant, TokenRequest};
use tower::ServiceExt;

const IMAGE: &[u8] = b"an image of sixteen";

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn serving(directory: &Path, hosts: &[&str]) -> ImageStore {
    let hosts = hosts.iter().map(|text| (*text).to_owned()).collect();
    let settings = images::Settings { directory: directory.into(), hosts, ..images::Settings::default() };
    let endpoint = Endpoint { address: ([192, 0, 2, 9], 6385).into(), pin: None };
    ImageStore::open(settings, Vec::new(), Some(endpoint), || Ok(Vec::new())).unwrap()
}

/// A node that is deployed from a file, and the token of its agent.
async fn deploying(api: &Api, name: &str, file: &Path, image: &[u8]) -> (Node, String) {
    let info = json!({
        "image_source": format!("file://{}", file.display()), "image_os_hash_algo": "sha256",
        "image_os_hash_value": sha256(image),
    });
    let shape = |node: &mut Node| {
        node.instance_info = info.as_object().unwrap().clone();
        let cursor = Cursor::AwaitAgent;
        node.run = Some(Run { cursor, booted: true, ..Run::new(RunKind::Deploy, Timestamp(0)) });
    };
    let node = api.node_with(name, ProvisionState::DeployWait, shape).await;
    let token = format!("token-of-{name}");
    let granted =
        api.store.grant_token(node.uuid, TokenRequest::without_nonce(&token, Some("b"), Timestamp(0)));
    assert_eq!(granted.await.unwrap(), TokenGrant::Given);
    (node, token)
}

struct Got {
    status: u16,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

async fn get(api: &Api, method: &str, name: &str, agent: Option<(&str, &str)>, more: &[(&str, &str)]) -> Got {
    get_from(&api.router, method, name, agent, more).await
}

async fn get_from(
    router: &Router,
    method: &str,
    name: &str,
    agent: Option<(&str, &str)>,
    more: &[(&str, &str)],
) -> Got {
    let mut request = Request::builder().method(method).uri(format!("/v1/anneal/images/{name}"));
    if let Some((node, token)) = agent {
        request = request.header(NODE_HEADER, node).header(TOKEN_HEADER, token);
    }
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.into_body().collect().await.unwrap().to_bytes().to_vec();
    Got { status, headers, bytes }
}

/// Until the store has compared the file with its digest.
async fn compared(images: &ImageStore, node: &Node) -> String {
    let wanted = Wanted::of(node).unwrap();
    loop {
        match images.state(&wanted) {
            State::Ready(ready) => return ready.name,
            State::Waiting(_) => tokio::task::yield_now().await,
            State::Failed(why) => panic!("{why}"),
        }
    }
}

#[tokio::test]
async fn an_image_is_served_to_the_agent_of_the_node_that_deploys_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.raw");
    std::fs::write(&file, IMAGE).unwrap();
    std::fs::write(directory.path().join("b.raw"), b"b").unwrap();
    let images = serving(directory.path(), &[]);
    let api = Api::serving(images.clone());
    let (node, token) = deploying(&api, "n", &file, IMAGE).await;
    let (other, others) = deploying(&api, "m", &directory.path().join("b.raw"), b"b").await;
    let uuid = node.uuid.to_string();
    let agent = Some((uuid.as_str(), token.as_str()));
    // Not compared yet: the agent tries again.
    let name = format!("file-sha256-{}", sha256(IMAGE));
    assert_eq!(get(&api, "GET", &name, agent, &[]).await.status, 503);
    assert_eq!(compared(&images, &node).await, name);
    compared(&images, &other).await;

    let whole = get(&api, "GET", &name, agent, &[]).await;
    assert_eq!((whole.status, whole.bytes.as_slice()), (200, IMAGE));
    let etag = whole.headers[header::ETAG].to_str().unwrap().to_owned();
    let head = get(&api, "HEAD", &name, agent, &[]).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    assert_eq!(head.headers[header::CONTENT_LENGTH], IMAGE.len().to_string());
    let rest = get(&api, "GET", &name, agent, &[("range", "bytes=9-"), ("if-range", &etag)]).await;
    assert_eq!((rest.status, rest.bytes.as_slice()), (206, &IMAGE[9..]));
    assert_eq!(rest.headers[header::CONTENT_RANGE], format!("bytes 9-{}/{}", IMAGE.len() - 1, IMAGE.len()));
    let changed = get(&api, "GET", &name, agent, &[("range", "bytes=9-"), ("if-range", "\"x\"")]).await;
    assert_eq!((changed.status, changed.bytes.as_slice()), (200, IMAGE));

    let others_uuid = other.uuid.to_string();
    for (agent, status) in [
        (None, 403),
        (Some((uuid.as_str(), "")), 403),
        (Some((uuid.as_str(), others.as_str())), 403),
        (Some((others_uuid.as_str(), token.as_str())), 403),
        (Some((others_uuid.as_str(), others.as_str())), 404),
    ] {
        let got = get(&api, "GET", &name, agent, &[]).await;
        let (is, text) = (got.status, String::from_utf8_lossy(&got.bytes).into_owned());
        assert_eq!(is, status, "{agent:?}: {text}");
        assert!(!text.contains("an image of") && !text.contains(&token), "{text}");
    }
    // Its run has ended.
    let mut ended = api.store.node(node.uuid).await.unwrap();
    ended.run = None;
    api.store.update_node(ended, Vec::new(), None).await.unwrap();
    assert_eq!(get(&api, "GET", &name, agent, &[]).await.status, 404);
}

/// An agent whose controller dies goes on at another one: with the same name, token and entity tag, from the byte where it was.
#[tokio::test]
async fn another_controller_with_the_same_database_goes_on_with_an_image() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.raw");
    std::fs::write(&file, IMAGE).unwrap();
    let (images, others) = (serving(directory.path(), &[]), serving(directory.path(), &[]));
    let api = Api::serving(images.clone());
    let another = api.another(others.clone());
    let (node, token) = deploying(&api, "n", &file, IMAGE).await;
    let uuid = node.uuid.to_string();
    let agent = Some((uuid.as_str(), token.as_str()));
    let name = compared(&images, &node).await;
    let etag = get(&api, "GET", &name, agent, &[]).await.headers[header::ETAG].to_str().unwrap().to_owned();
    let rest = [("range", "bytes=9-"), ("if-range", etag.as_str())];
    assert_eq!(get_from(&another, "GET", &name, agent, &rest).await.status, 503, "it has not got it yet");
    assert_eq!(compared(&others, &node).await, name);
    let got = get_from(&another, "GET", &name, agent, &rest).await;
    assert_eq!((got.status, got.bytes.as_slice()), (206, &IMAGE[9..]));
    assert_eq!(get_from(&another, "GET", &name, Some((uuid.as_str(), "wrong")), &rest).await.status, 403);
}

/// What `validate` says of the deploy interface.
async fn judged(api: &Api, node: &Node, source: &str, agent: &str) -> (bool, String) {
    let mut changed = api.store.node(node.uuid).await.unwrap();
    let info = json!({"image_source": source, "image_checksum": sha256(IMAGE)});
    changed.instance_info = info.as_object().unwrap().clone();
    changed.properties.insert(model::boot::AGENT_KIND.into(), json!(agent));
    changed.interfaces.insert("deploy_interface".into(), "direct".into());
    api.store.update_node(changed, Vec::new(), None).await.unwrap();
    let answer = api.at(81, "GET", &format!("/v1/nodes/{}/validate", node.uuid), None).await.is(200);
    let deploy = &answer.body["deploy"];
    (deploy["result"] == true, deploy["reason"].as_str().unwrap_or_default().to_owned())
}

/// The firmware of the node fetches them, so that the hosts are judged as far as they are known.
#[tokio::test]
async fn what_the_ramdisk_interface_boots_is_judged_before_the_node_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let api = Api::serving(serving(directory.path(), &["192.0.2.0/24"]));
    let good = json!({"kernel": "http://192.0.2.1/k", "ramdisk": "http://192.0.2.1/r"});
    let mut node = api.node("n", ProvisionState::Available).await;
    for (boot, more, why) in [
        ("fake", json!({}), None),
        ("ipxe", json!({}), Some("[boot] enabled")),
        (
            "fake",
            json!({"ramdisk": "http://198.51.100.1/r?key=secret"}),
            Some("198.51.100.1 is not in [images] hosts"),
        ),
        ("fake", json!({"kernel": null}), Some("instance_info.kernel")),
        ("fake", json!({"boot_iso": "http://192.0.2.1/i"}), Some("boot_iso")),
        ("fake", json!({"configdrive": {"user_data": "x"}}), Some("configdrive")),
        ("fake", json!({"anneal_wait_for_hello": true}), Some("only the deploy interface direct")),
    ] {
        let mut info = good.clone();
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node.instance_info = info.as_object().unwrap().clone();
        node.interfaces.insert("deploy_interface".into(), "ramdisk".into());
        node.interfaces.insert("boot_interface".into(), boot.into());
        node = api.store.update_node(node, Vec::new(), None).await.unwrap();
        let seen = api.at(81, "GET", &format!("/v1/nodes/{}/validate", node.uuid), None).await.is(200).body;
        let said = seen["deploy"]["reason"].as_str().unwrap_or_default().to_owned();
        assert_eq!(seen["deploy"]["result"], why.is_none(), "{more}: {said}");
        let Some(why) = why else { continue };
        assert!(said.contains(why) && !said.contains("secret"), "{more}: {said}");
        let path = format!("/v1/nodes/{}/states/provision", node.uuid);
        let refused = api.at(81, "PUT", &path, Some(json!({"target": "active"}))).await.is(400);
        assert!(refused.body.to_string().contains(why), "{more}: {}", refused.body);
    }
    node.instance_info = good.as_object().unwrap().clone();
    node.interfaces.insert("boot_interface".into(), "fake".into());
    let node = api.store.update_node(node, Vec::new(), None).await.unwrap();
    let path = format!("/v1/nodes/{}/states/provision", node.uuid);
    let drive = json!({"target": "active", "configdrive": {"user_data": "x"}});
    let refused = api.at(81, "PUT", &path, Some(drive)).await.is(400);
    assert!(refused.body.to_string().contains("no disk to put a configdrive on"), "{}", refused.body);
    api.at(81, "PUT", &path, Some(json!({"target": "active"}))).await.is(202);
}

#[tokio::test]
async fn fast_track_of_a_node_is_true_or_false() {
    let directory = tempfile::tempdir().unwrap();
    let api = Api::serving(serving(directory.path(), &["192.0.2.0/24"]));
    let node = api.node("n", ProvisionState::Manageable).await;
    for (value, good) in
        [(json!("perhaps"), false), (json!(2), false), (json!("yes"), true), (json!(false), true)]
    {
        let mut changed = api.store.node(node.uuid).await.unwrap();
        changed.driver_info.insert("fast_track".into(), value.clone());
        api.store.update_node(changed, Vec::new(), None).await.unwrap();
        let (is_good, said) = judged(&api, &node, "http://192.0.2.1/a", "anneal").await;
        assert_eq!(is_good, good, "{value}: {said}");
        assert!(good || said.contains("driver_info['fast_track']"), "{said}");
    }
}

#[tokio::test]
async fn an_image_from_elsewhere_is_refused_before_the_node_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.raw");
    std::fs::write(&file, IMAGE).unwrap();
    let api = Api::serving(serving(directory.path(), &["192.0.2.0/24", ".example"]));
    let node = api.node("n", ProvisionState::Manageable).await;
    let url = format!("file://{}", file.display());
    for (source, agent, good, why) in [
        ("http://192.0.2.1/a", "anneal", true, ""),
        ("http://m.example/a", "anneal", true, ""),
        ("https://m.example/a", "anneal", false, "says which certificate m.example may have"),
        ("http://198.51.100.1/a?key=secret", "anneal", false, "198.51.100.1 is not in [images] hosts"),
        ("http://127.0.0.1/a", "anneal", false, "loopback address, which no network in [images] hosts names"),
        ("http://[fe80::1]/a", "anneal", false, "link-local"),
        ("http://198.51.100.1/a", "ironic-python-agent", false, "[images] hosts"),
        ("http://192.0.2.1/a", "ironic-python-agent", true, ""),
        (&url, "anneal", true, ""),
        (&url, "ironic-python-agent", false, "ironic-python-agent knows no certificate"),
        ("file:///etc/passwd", "anneal", false, "is not below [images] directory"),
    ] {
        let (is_good, said) = judged(&api, &node, source, agent).await;
        assert_eq!(is_good, good, "{source} {agent}: {said}");
        assert!(said.contains(why) && !said.contains("secret"), "{said}");
    }
    let none = Api::with(Settings::default());
    let node = none.node("n", ProvisionState::Manageable).await;
    let (is_good, said) = judged(&none, &node, &url, "anneal").await;
    assert!(!is_good && said.contains("[boot] address"), "{said}");
}

#[tokio::test]
async fn the_disk_of_several_that_will_be_written_is_named() {
    let rules = model::root_disk::Rules { smallest: 8 << 30, ..Default::default() };
    let api = Api::with(Settings { root_disk: rules, ..Settings::default() });
    let node = api.node("n", ProvisionState::Manageable).await;
    let disk = |name: &str, gib: u64| json!({"name": name, "size": gib << 30, "serial": name});
    let said = async |source: &str, disks: serde_json::Value| {
        let inventory = json!({ "disks": disks });
        let (plugin_data, at) = (json!({}), Timestamp(0));
        let inventory = Inventory { inventory, plugin_data, at, source: source.to_owned(), ruled: false };
        api.store.put_inventory(node.uuid, inventory).await.unwrap();
        judged(&api, &node, "http://192.0.2.1/a", "anneal").await
    };
    let all = json!([disk("a", 100), disk("b", 50), disk("c", 4)]);
    let (good, named) = said("agent", all.clone()).await;
    assert!(good, "a help, no refusal: {named}");
    assert_eq!(
        named,
        "of the disks of the last inspection b (serial b) gets the image, the smallest that fits; a (serial a) fits as well"
    );
    assert_eq!(said("agent", json!([disk("a", 100)])).await, (true, String::new()));
    assert!(said("agent", json!([disk("c", 4)])).await.1.contains("less than 8 GiB"));
    assert_eq!(said("redfish", all).await, (true, String::new()), "a BMC calls disks otherwise");
}
