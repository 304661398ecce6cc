//! Bundles over the API: upload, scopes, offers to agents, and download by those that are allowed.

use crate::common::{Answer, Api, await_agent};
use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use api::Settings;
use axum::body::{Body, Bytes};
use axum::http::Request;
use bundle::build::{SigningKey, build};
use bundle::{Trust, Verified};
use http_body_util::BodyExt;
use model::{Node, ProvisionState};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use tower::ServiceExt;

const PATH: &str = "/v1/anneal/bundles";
const MAC: &str = "52:54:00:12:34:56";

fn made(name: &str, version: &str, key: Option<&SigningKey>) -> (Vec<u8>, Verified) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("manager"), version).unwrap();
    fs::set_permissions(root.join("manager"), fs::Permissions::from_mode(0o755)).unwrap();
    let source = json!({"format": 1, "name": name, "version": version, "vendor": "ACME", "entry": ["/manager"],
                        "protocol_versions": [1]});
    let path = dir.path().join("bundle");
    let mut out = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let verified = build(&root, source.to_string().as_bytes(), key, &mut out).unwrap();
    (fs::read(path).unwrap(), verified)
}

async fn post(api: &Api, query: &str, body: impl Into<Body>) -> Answer {
    let request = Request::builder().method("POST").uri(format!("{PATH}{query}"));
    api.raw(request.header("Content-Type", "application/octet-stream").body(body.into()).unwrap()).await
}

/// Status and bytes of a file, as an agent or (without a token) an operator asks for it.
async fn fetch(api: &Api, digest: &str, agent: Option<(&str, &str)>) -> (u16, Bytes) {
    let mut request = Request::builder().uri(format!("{PATH}/{digest}/file"));
    if let Some((node, token)) = agent {
        request = request.header(NODE_HEADER, node).header(TOKEN_HEADER, token);
    }
    let response = api.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.unwrap().to_bytes())
}

async fn cleaning(api: &Api) -> Node {
    let shape = |node: &mut Node| {
        node.resource_class = Some("gold".to_owned());
        await_agent(node);
    };
    let node = api.node_with("n", ProvisionState::CleanWait, shape).await;
    api.port(&node, MAC).await;
    node
}

fn files(api: &Api) -> Vec<String> {
    let names = fs::read_dir(api.bundles.path()).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

async fn lookup_config(api: &Api) -> Value {
    api.at(62, "GET", &format!("/v1/lookup?addresses={MAC}"), None).await.is(200).body["config"].clone()
}

#[tokio::test]
async fn a_bundle_is_offered_and_served_to_the_agents_of_its_nodes() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let config = lookup_config(&api).await;
    let token = config["agent_token"].as_str().unwrap().to_owned();
    assert_eq!(config.get("anneal_bundles"), None, "no key without bundles");

    let (wide, wide_is) = made("acme", "1.0", None);
    let (narrow, narrow_is) = made("acme", "2.0", None);
    let (other, other_is) = made("other", "1", None);
    let answer = post(&api, &format!("?digest={}", wide_is.digest), wide.clone()).await.is(201);
    assert_eq!(answer.body["scope"], "all");
    assert_eq!(answer.body["replaced"], Value::Null);
    post(&api, "?scope=resource_class:gold", narrow.clone()).await.is(201);
    post(&api, "?scope=driver:redfish", other).await.is(201);
    let offer = |is: &Verified| json!({"name": is.manifest.name, "version": is.manifest.version, "digest": is.digest, "size": is.size});
    assert_eq!(
        lookup_config(&api).await["anneal_bundles"],
        json!([offer(&narrow_is)]),
        "the narrowest of a name"
    );

    let uuid = node.uuid.to_string();
    let agent = Some((uuid.as_str(), token.as_str()));
    assert_eq!(fetch(&api, &narrow_is.digest, agent).await, (200, narrow.clone().into()));
    assert_eq!(fetch(&api, &wide_is.digest, agent).await.0, 404, "not what another node is meant to have");
    assert_eq!(fetch(&api, &other_is.digest, agent).await.0, 404);
    assert_eq!(fetch(&api, &wide_is.digest, None).await, (200, wide.into()), "an operator may have all");
    let stranger = uuid::Uuid::new_v4().to_string();
    let second = api.node("m", ProvisionState::CleanWait).await.uuid.to_string();
    for (node, token) in [
        (uuid.as_str(), &token[1..]),
        (uuid.as_str(), ""),
        (stranger.as_str(), token.as_str()),
        (second.as_str(), token.as_str()),
        (second.as_str(), ""),
        ("n", token.as_str()),
    ] {
        assert_eq!(fetch(&api, &narrow_is.digest, Some((node, token))).await.0, 403, "{node} {token}");
    }
    let half = Request::builder().uri(format!("{PATH}/{}/file", narrow_is.digest)).header(NODE_HEADER, &uuid);
    api.raw(half.body(Body::empty()).unwrap()).await.is(403);

    api.delete(&format!("{PATH}/{}", narrow_is.digest)).await.is(204);
    assert_eq!(lookup_config(&api).await["anneal_bundles"], json!([offer(&wide_is)]));
    assert_eq!(fetch(&api, &narrow_is.digest, agent).await.0, 404);
}

#[tokio::test]
async fn bundles_are_listed_replaced_and_taken_away_with_their_files() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let (one, one_is) = made("acme", "1.0", None);
    let (two, two_is) = made("acme", "2.0", None);
    post(&api, "", one.clone()).await.is(201);
    post(&api, "?scope=node:n", one.clone()).await.is(201);
    let replaced = post(&api, "?scope=all", two).await.is(201).body["replaced"].clone();
    assert_eq!((&replaced["version"], &replaced["scope"]), (&json!("1.0"), &json!("all")));
    let mut both = vec![one_is.digest.clone(), two_is.digest.clone()];
    both.sort();
    assert_eq!(files(&api), both);

    let list = api.get(PATH).await.is(200).body["bundles"].clone();
    let rows: Vec<_> = list.as_array().unwrap().iter().map(|row| (&row["version"], &row["scope"])).collect();
    let scope = json!(format!("node:{}", node.uuid));
    assert_eq!(rows, [(&json!("2.0"), &json!("all")), (&json!("1.0"), &scope)]);
    let of_node = api.get(&format!("{PATH}?node=n")).await.is(200).body["bundles"].clone();
    assert_eq!(of_node, json!([list[1]]));
    let shown = api.get(&format!("{PATH}/{}", one_is.digest)).await.is(200).body;
    assert_eq!((&shown["scopes"], &shown["manifest"]["entry"]), (&json!([scope]), &json!(["/manager"])));
    assert_eq!((&shown["size"], &shown["signed_by"]), (&json!(one.len()), &Value::Null));

    // With its node goes its bundle, and with the next change its file.
    let version = api.store.node(node.uuid).await.unwrap().version;
    api.store.delete_node(node.uuid, version, vec![]).await.unwrap();
    api.get(&format!("{PATH}/{}", one_is.digest)).await.is(404);
    api.delete(&format!("{PATH}/{}?scope=driver:redfish", two_is.digest)).await.is(404);
    let removed = api.delete(&format!("{PATH}/{}?scope=all", two_is.digest)).await.is(204);
    assert_eq!(files(&api), Vec::<String>::new());
    assert_eq!(api.get(PATH).await.body, json!({"bundles": []}));

    // The log of events has each change, with the request that made it.
    let log = api.get("/v1/anneal/events?type=change").await.is(200).body["events"].clone();
    let texts: Vec<_> = log.as_array().unwrap().iter().map(|event| event["text"].as_str().unwrap()).collect();
    let of_node = format!("bundle acme 1.0 for node:{} added by a user", node.uuid);
    let expected = [
        "bundle acme 1.0 for all added by a user",
        &of_node,
        "bundle acme 2.0 for all added by a user",
        "bundle acme 2.0 for all removed by a user",
    ];
    assert_eq!(texts, expected);
    let named = json!({"name": "acme", "version": "2.0", "scope": "all", "digest": two_is.digest});
    assert_eq!(
        (&log[3]["bundle"], &log[3]["node_uuid"], &log[1]["node_uuid"]),
        (&named, &Value::Null, &Value::Null)
    );
    assert_eq!(log[3]["request_id"], removed.header("openstack-request-id").unwrap());
}

#[tokio::test]
async fn what_is_refused_leaves_nothing_behind() {
    let (ours, _) = SigningKey::generate().unwrap();
    let (theirs, _) = SigningKey::generate().unwrap();
    let api = Api::trusting(Settings::default(), Trust::Keys { keys: vec![ours.public()], unsigned: false });
    let (signed, is) = made("acme", "1.0", Some(&ours));
    let (unsigned, _) = made("acme", "1.0", None);
    let (foreign, _) = made("acme", "1.0", Some(&theirs));
    let find = |text: &[u8]| signed.windows(text.len()).position(|found| found == text).unwrap();
    let mut damaged = signed.clone();
    damaged[100] ^= 1;
    let mut renamed = signed.clone();
    renamed[find(b"\"name\":\"acme\"") + 8] = b'A';
    let before = api.everything().await;
    for (query, body, status, says) in [
        ("", Vec::new(), 400, "is not a bundle"),
        ("", vec![0; 5000], 400, "is not a bundle"),
        ("", signed[..signed.len() - 1].to_vec(), 400, "is not a bundle"),
        ("", damaged, 400, "manifest: root_sha256: "),
        ("", renamed, 400, "manifest: name: manager name \"Acme\" is not"),
        ("", unsigned, 400, "is not signed, and unsigned ones are not allowed here"),
        ("", foreign, 400, theirs.public().id().as_str()),
        ("", vec![0; (2 << 20) + 1], 413, "larger than 2097152 bytes"),
        ("?digest=00", signed.clone(), 400, "was changed on its way"),
        ("?scope=everybody", signed.clone(), 400, "for scope: everybody"),
        ("?scope=driver:nosuch", signed.clone(), 400, "No driver nosuch"),
        ("?scope=driver:", signed.clone(), 400, "for scope: driver:"),
        ("?scope=node:nosuch", signed.clone(), 404, "Node nosuch could not be found"),
        ("?nosuch=1", signed.clone(), 400, "Unexpected arguments: nosuch"),
    ] {
        let answer = post(&api, query, body).await.is(status);
        assert!(answer.fault().contains(says), "{query}: {}", answer.fault());
    }
    // Without a length beforehand it is counted on its way; one that breaks off is nothing.
    let chunks = |count: usize, end: Option<std::io::Error>| {
        let chunks = (0..count).map(|_| Ok(Bytes::from(vec![0; 1 << 20])));
        Body::from_stream(futures_util::stream::iter(chunks.chain(end.map(Err)).collect::<Vec<_>>()))
    };
    post(&api, "", chunks(10, None)).await.is(413);
    let broken = post(&api, "", chunks(1, Some(std::io::Error::other("gone")))).await.is(400);
    assert!(broken.fault().contains("broke off"), "{}", broken.fault());
    assert_eq!(api.everything().await, before);
    assert_eq!(files(&api), Vec::<String>::new());

    let answer = post(&api, "", signed).await.is(201);
    assert_eq!(answer.body["signed_by"], json!(ours.public().id()));
    for path in ["/x", "/..%2Fx", "/..%2F..%2Fetc%2Fpasswd"] {
        api.get(&format!("{PATH}{path}")).await.is(404);
        assert_eq!(fetch(&api, &path[1..], None).await.0, 404, "{path}");
        api.delete(&format!("{PATH}{path}")).await.is(404);
    }
    assert_eq!(files(&api), [is.digest]);
}

#[tokio::test]
async fn parts_of_an_earlier_process_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("a/b");
    let trust = Trust::Digest;
    api::BundleStore::open(place.clone(), trust.clone(), 1).unwrap();
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o700);
    fs::write(place.join("x.part"), "half").unwrap();
    api::BundleStore::open(place.clone(), trust, 1).unwrap();
    assert_eq!(fs::read_dir(place).unwrap().count(), 0);
}
