//! Lookup and heartbeat, as agents of both kinds use them.

use crate::common::{Api, await_agent, fixture, keys};
use api::Settings;
use axum::body::Body;
use axum::http::Request;
use model::agent::{AgentKind, UnsignedAgent};
use model::boot::{AGENT_KIND, Boot, BootNonce};
use model::{Node, ProvisionState, Timestamp};
use serde_json::{Value, json};
use store::TokenRequest;

const MAC: &str = "52:54:00:12:34:56";
const NOT_FOUND: &str = "Resource could not be found.";
const KEY: &str = "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

pub async fn cleaning(api: &Api) -> Node {
    let node = api.node_awaiting_agent("n").await;
    api.port(&node, MAC).await;
    node
}

pub async fn token(api: &Api) -> String {
    let answer = api.at(62, "GET", &format!("/v1/lookup?addresses={MAC}"), None).await.is(200);
    answer.body["config"]["agent_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_lookup_answers_as_ironic_does() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let path = "/v1/lookup?addresses=52%3A54%3A00%3A12%3A34%3A56";
    let answer = api.at(62, "GET", path, None).await.is(200);
    let golden = fixture(include_str!("fixtures/lookup.json"));
    assert_eq!(keys(&answer.body), keys(&golden));
    assert_eq!(keys(&answer.body["node"]), keys(&golden["node"]));
    assert_eq!(answer.body["node"]["uuid"], json!(node.uuid));
    let mut config = answer.body["config"].clone();
    let given = config["agent_token"].as_str().unwrap().to_owned();
    assert_eq!(given.len(), 43);
    assert!(given.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    assert_eq!(config.as_object_mut().unwrap().remove("anneal"), Some(json!({"extension": 1})));
    assert_eq!(keys(&config), keys(&golden["config"]));
    assert_eq!(config["heartbeat_timeout"], json!(300.0));
    assert_eq!(answer.body["node"]["driver_internal_info"]["agent_secret_token"], "******");

    // A second agent sees that there is a token, and is noted.
    let again = api.at(62, "GET", &format!("{path}&anneal_boot_id=boot-2"), None).await.is(200).body;
    assert_eq!(again["config"]["agent_token"], "******");
    let contact = api.store.contact(node.uuid).await.unwrap();
    assert_eq!(contact.token, Some(given));
    assert_eq!(contact.rival.unwrap().boot_id.as_deref(), Some("boot-2"));
    let shown = api.get("/v1/nodes/n").await.body;
    assert_eq!(shown["driver_internal_info"]["anneal"]["rival"]["boot_id"], "boot-2");
}

/// However often unknown callers ask: the store is written, and the conductor woken, at most once in 10 s.
#[tokio::test]
async fn a_lookup_whose_token_is_out_is_noted_once_in_10_s() {
    let api = Api::new();
    let node = cleaning(&api).await;
    token(&api).await;
    let given = api.store.contact(node.uuid).await.unwrap().token_at.unwrap();
    let path = format!("/v1/lookup?addresses={MAC}&anneal_boot_id=asks");
    for (seconds, noted) in [(-9, false), (-11, true), (3600, true)] {
        let at = Timestamp(given.0 + seconds * 1_000_000);
        api.store.grant_token(node.uuid, TokenRequest::without_nonce("x", Some("before"), at)).await.unwrap();
        let mut bell = api.store.bell().listen();
        let answer = api.at(62, "GET", &path, None).await.is(200).body;
        assert_eq!(answer["config"]["agent_token"], "******");
        let rival = api.store.contact(node.uuid).await.unwrap().rival.unwrap();
        assert_eq!(rival.boot_id.as_deref() == Some("asks"), noted, "{seconds}");
        assert_eq!(bell.try_recv().is_ok(), noted, "{seconds}");
    }
}

#[tokio::test]
async fn a_lookup_of_an_unexpected_agent_reveals_nothing() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let other = api.node("m", ProvisionState::CleanWait).await;
    api.port(&other, "52:54:00:12:34:57").await;
    let before = api.everything().await;
    let both = format!("/v1/lookup?addresses={MAC},52:54:00:12:34:57");
    let at = |uuid| format!("/v1/lookup?node_uuid={uuid}");
    for (minor, path, status, says) in [
        (
            62,
            "/v1/lookup".to_owned(),
            400,
            "At least one of 'addresses' and 'node_uuid' parameters is required",
        ),
        (62, "/v1/lookup?addresses=junk".to_owned(), 400, "At least one of 'addresses' and 'node_uuid'"),
        (62, "/v1/lookup?addresses=52:54:00:ee:ee:99".to_owned(), 404, NOT_FOUND),
        (62, at("effd0687-dafe-4553-af7a-fb302a9df13a"), 404, NOT_FOUND),
        (62, at("xx"), 400, "Expected UUID for node_uuid: xx"),
        (62, both, 404, NOT_FOUND),
        (62, format!("/v1/lookup?addresses={MAC}&nosuch=1"), 400, "Unexpected arguments: nosuch"),
        (62, format!("/v1/lookup?addresses={MAC}&anneal_boot_id="), 400, "anneal_boot_id"),
        (21, format!("/v1/lookup?addresses={MAC}"), 404, NOT_FOUND),
    ] {
        let answer = api.at(minor, "GET", &path, None).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.fault().contains(says), "{path}: {}", answer.fault());
    }
    assert_eq!(api.everything().await, before);
    // An invalid address next to a valid one is left out; several of one node are one node.
    api.port(&node, "52:54:00:12:34:58").await;
    let path = format!("/v1/lookup?addresses=junk,{MAC},52:54:00:12:34:58,52:54:00:ee:ee:99");
    api.at(62, "GET", &path, None).await.is(200);
}

#[tokio::test]
async fn only_states_with_an_agent_allow_a_lookup() {
    use ProvisionState as P;
    let expected = [
        P::Deploying,
        P::DeployWait,
        P::Cleaning,
        P::CleanWait,
        P::Inspecting,
        P::InspectWait,
        P::Rescuing,
        P::RescueWait,
        P::ServiceWait,
    ];
    for state in P::ALL {
        let api = Api::new();
        let node = api.node_with("n", state, await_agent).await;
        api.port(&node, MAC).await;
        for path in [format!("/v1/lookup?addresses={MAC}"), format!("/v1/lookup?node_uuid={}", node.uuid)] {
            let answer = api.at(62, "GET", &path, None).await;
            if expected.contains(&state) {
                answer.is(200);
            } else {
                assert_eq!(answer.is(404).fault(), NOT_FOUND);
                assert_eq!(api.store.contact(node.uuid).await.unwrap().token, None, "{state:?}");
            }
        }
    }
}

#[tokio::test]
async fn old_agents_get_no_token() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let answer = api.at(61, "GET", &format!("/v1/lookup?addresses={MAC}"), None).await.is(200).body;
    assert!(answer["config"].get("agent_token").is_none());
    assert_eq!(api.store.contact(node.uuid).await.unwrap().token, None);
}

pub fn beat(token: &str) -> Value {
    json!({"callback_url": "http://127.0.0.1:9999", "agent_token": token, "agent_version": "13.0.0"})
}

fn with(mut body: Value, key: &str, value: Value) -> Value {
    body[key] = value;
    body
}

fn without(mut body: Value, key: &str) -> Value {
    body.as_object_mut().unwrap().remove(key);
    body
}

#[tokio::test]
async fn a_heartbeat_is_recorded() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let mut bell = api.store.bell().listen();
    let token = token(&api).await;
    let path = format!("/v1/heartbeat/{}", node.uuid);
    let answer = api.at(68, "POST", &path, Some(beat(&token))).await.is(202);
    assert_eq!(answer.text, "");
    assert_eq!(bell.recv().await, Some(node.uuid));
    let contact = api.store.contact(node.uuid).await.unwrap();
    assert_eq!(contact.callback_url.as_deref(), Some("http://127.0.0.1:9999"));
    assert_eq!(contact.agent_version.as_deref(), Some("13.0.0"));
    assert!(contact.last_heartbeat_at.is_some() && contact.agent == Some(AgentKind::Ipa));
    // The node itself was not written: heartbeats cause no 409.
    assert_eq!(api.store.node(node.uuid).await.unwrap().version, node.version);

    let anneal = json!({"extension": 1, "boot_id": "b", "process_id": "p", "ended": ["c0"]});
    let ours = with(beat(&token), "anneal", anneal);
    api.at(68, "POST", "/v1/heartbeat/n", Some(ours)).await.is(202);
    let contact = api.store.contact(node.uuid).await.unwrap();
    let state = contact.anneal().unwrap();
    assert_eq!((state.boot_id.as_str(), &state.ended), ("b", &vec!["c0".to_owned()]));
}

/// Each heartbeat is a write and wakes the conductor: a node whose agent has its token is limited, and no other node.
#[tokio::test(start_paused = true)]
async fn heartbeats_of_one_node_are_limited() {
    let agent_requests = api::RequestRate { per_s: 1, burst: 3 };
    let api = Api::with(Settings { require_agent_tls: false, agent_requests, ..Settings::default() });
    let node = cleaning(&api).await;
    let token = token(&api).await;
    let path = format!("/v1/heartbeat/{}", node.uuid);
    // What is rejected for another reason costs the node nothing.
    for _ in 0..5 {
        api.at(68, "POST", &path, Some(beat("wrong"))).await.is(400);
    }
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(api.at(68, "POST", &path, Some(beat(&token))).await.status);
    }
    assert_eq!(statuses, [202, 202, 202, 429, 429]);
}

#[tokio::test]
async fn heartbeats_are_refused_with_ironics_words() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let other = api.node("m", ProvisionState::CleanWait).await;
    let token = token(&api).await;
    api.at(68, "POST", "/v1/heartbeat/n", Some(beat(&token))).await.is(202);
    let before = api.everything().await;
    let good = || beat(&token);
    let unknown = "ffff0687-dafe-4553-af7a-fb302a9df13a".to_owned();
    let n = node.uuid.to_string();
    for (minor, ident, body, status, says) in [
        (68, &n, json!({}), 400, "Missing mandatory parameter: callback_url"),
        (68, &n, with(good(), "nosuch", json!(1)), 400, "Unexpected arguments: nosuch"),
        (68, &n, with(good(), "agent_token", json!(5)), 400, "Expected string for agent_token: 5"),
        (68, &n, json!([]), 400, "must be a JSON object"),
        (21, &n, without(good(), "agent_version"), 404, NOT_FOUND),
        (35, &n, good(), 400, "Field \"agent_version\" not recognised"),
        (
            62,
            &n,
            with(good(), "agent_verify_ca", json!("x")),
            400,
            "Field \"agent_verify_ca\" not recognised in this version",
        ),
        (71, &n, with(good(), "agent_status", json!("start")), 400, "not recognised"),
        (
            68,
            &n,
            with(good(), "callback_url", json!("ftp://x")),
            400,
            "An issue with the supplied \"callback_url\" has been detected.",
        ),
        (68, &n, with(good(), "callback_url", json!("")), 400, "An issue with the supplied \"callback_url\""),
        (
            68,
            &n,
            with(good(), "callback_url", json!("http://127.0.0.1:9998")),
            400,
            "Detected change in ramdisk provided \"callback_url\"",
        ),
        (68, &n, without(good(), "agent_token"), 400, "Agent token is required for heartbeat processing."),
        (72, &n, with(good(), "agent_status", json!("x")), 400, "Agent status is invalid. Valid states are"),
        (
            68,
            &n,
            without(beat("x"), "agent_version"),
            400,
            "Agent did not transmit a version, and a version is required. Please update the agent being used.",
        ),
        (68, &n, beat("x"), 400, "Invalid or missing agent token received."),
        (68, &n, beat(""), 400, "Invalid or missing agent token received."),
        (68, &n, with(good(), "agent_verify_ca", json!("x")), 400, "agent_verify_ca"),
        (
            68,
            &n,
            with(good(), "anneal", json!({"extension": 1, "boot_id": 5, "process_id": "p"})),
            400,
            "anneal.boot_id",
        ),
        (68, &n, with(good(), "anneal", json!("x")), 400, "anneal"),
        // The token of one node is worth nothing at another, whether there is such a node or not.
        (68, &unknown, good(), 400, "Invalid or missing agent token received."),
        (68, &other.uuid.to_string(), good(), 400, "Invalid or missing agent token received."),
    ] {
        let answer = api.at(minor, "POST", &format!("/v1/heartbeat/{ident}"), Some(body.clone())).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        assert!(answer.fault().contains(says), "{body}: {}", answer.fault());
        assert_eq!(api.everything().await, before, "{body}");
    }
    // After the controller has ended the boot, its token is worth nothing.
    api.store.forget_agent(node.uuid, None, None).await.unwrap();
    let fault = api.at(68, "POST", "/v1/heartbeat/n", Some(good())).await.is(400).fault();
    assert_eq!(fault, "Invalid or missing agent token received.");
}

/// Neither that there is such a node, nor that it has an agent, nor where that listens.
#[tokio::test]
async fn a_heartbeat_without_the_token_reveals_nothing() {
    let api = Api::new();
    cleaning(&api).await;
    api.node("idle", ProvisionState::Available).await;
    let token = token(&api).await;
    api.at(68, "POST", "/v1/heartbeat/n", Some(beat(&token))).await.is(202);
    let other_url = with(beat("x"), "callback_url", json!("http://127.0.0.1:9998"));
    for body in [beat("x"), other_url, without(beat("x"), "agent_token")] {
        let mut answers = Vec::new();
        for ident in ["n", "idle", "nosuch", "ffff0687-dafe-4553-af7a-fb302a9df13a"] {
            let answer = api.at(68, "POST", &format!("/v1/heartbeat/{ident}"), Some(body.clone())).await;
            answers.push((answer.status, answer.fault()));
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{body}: {answers:?}");
    }
}

#[tokio::test]
async fn tls_is_required_by_default_and_the_certificate_is_pinned() {
    let api = Api::with(Settings::default());
    let node = cleaning(&api).await;
    let token = token(&api).await;
    let path = "/v1/heartbeat/n";
    let fault = api.at(68, "POST", path, Some(beat(&token))).await.is(400).fault();
    assert_eq!(fault, "TLS is required by configuration");
    assert_eq!(api.store.contact(node.uuid).await.unwrap().callback_url, None);

    let pem = |body: &str| json!(format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"));
    let secure = with(beat(&token), "callback_url", json!("https://192.0.2.1:9999"));
    let first = with(secure.clone(), "agent_verify_ca", pem("AAAA"));
    api.at(68, "POST", path, Some(first.clone())).await.is(202);
    let changed = with(secure.clone(), "agent_verify_ca", pem("BBBB"));
    let fault = api.at(68, "POST", path, Some(changed)).await.is(400).fault();
    assert_eq!(fault, "Detected change in ramdisk provided \"agent_verify_ca\"");
    // Left out, the one on record stays.
    api.at(68, "POST", path, Some(secure)).await.is(202);
    let contact = api.store.contact(node.uuid).await.unwrap();
    assert_eq!(contact.verify_ca.map(Value::from), Some(first["agent_verify_ca"].clone()));
}

/// No agent is expected, and one that shows an old nonce is named all the same; it learns nothing.
#[tokio::test]
async fn an_old_boot_medium_is_named_in_whatever_state_its_node_is() {
    let start = json!({"addresses": [MAC], "boot_id": "b", "endorsement_key": "", "attestation_key": ""});
    let report = json!({"inventory": {"interfaces": [{"mac_address": MAC}]}});
    let lookup = format!("/v1/lookup?addresses={MAC}");
    for state in [ProvisionState::Available, ProvisionState::Active, ProvisionState::Manageable] {
        for (method, path, body) in [
            ("GET", lookup.as_str(), None),
            ("POST", "/v1/continue_inspection", Some(report.clone())),
            ("POST", agent_protocol::boot_proof::START_PATH, Some(start.clone())),
        ] {
            let api = Api::having(Settings { boot_proofs: true, ..Settings::default() });
            let shows = async |prefix: String| {
                api.at(115, method, &format!("{prefix}{path}"), body.clone()).await.is(404).text
            };
            let of = |nonce: &BootNonce| format!("/boot-nonce/{}", nonce.expose());
            let unknown = shows(of(&BootNonce::fresh())).await;
            let node = api.node("n", state).await;
            api.port(&node, MAC).await;
            let boot = Boot::fresh();
            api.store.forget_agent(node.uuid, Some(boot.clone()), None).await.unwrap();
            // Another remark of this minute hides none of them.
            let now = api.app.clock.now();
            api.app.remarks.note(&*api.store, node.uuid, "other", "another remark", now).await.unwrap();
            let named = async || {
                let history = api.store.history(node.uuid).await.unwrap();
                history.iter().filter(|event| event.text.contains("shows the nonce of another boot")).count()
            };
            // An agent of the node's own boot may ask too late, and what shows no nonce is none of ours.
            let answers = [shows(String::new()).await, shows(of(&boot.nonce)).await];
            assert_eq!(named().await, 0, "{state:?} {path}");
            let answer = shows(of(&BootNonce::fresh())).await;
            assert_eq!(named().await, 1, "{state:?} {path}");
            assert!(answers.iter().chain([&answer]).all(|answer| *answer == unknown), "{path}: {answers:?}");
        }
    }
}

/// A node in a boot that the conductor ordered: the nonce, shown in a header or in the path, opens what nothing else does.
#[tokio::test]
async fn an_agent_shows_the_nonce_of_its_boot() {
    let api = Api::demanding_nonce();
    let node = cleaning(&api).await;
    let boot = Boot::fresh();
    let nonce = boot.nonce.clone();
    api.store.forget_agent(node.uuid, Some(boot), None).await.unwrap();
    let lookup = format!("/v1/lookup?addresses={MAC}");
    let before = api.store.contact(node.uuid).await.unwrap();
    let other = BootNonce::fresh();
    for path in [lookup.clone(), format!("/boot-nonce/{}{lookup}", other.expose())] {
        let answer = api.at(68, "GET", &path, None).await.is(404);
        assert!(answer.text.contains(NOT_FOUND), "as for an unknown node");
    }
    assert_eq!(api.store.contact(node.uuid).await.unwrap(), before);
    // Named once, and not for a client that shows no nonce at all.
    api.at(68, "GET", &format!("/boot-nonce/{}{lookup}", other.expose()), None).await.is(404);
    let history = api.store.history(node.uuid).await.unwrap();
    let named = history.iter().filter(|event| event.text.contains("shows the nonce of another boot")).count();
    assert_eq!(named, 1, "{history:?}");

    let prefix = format!("/boot-nonce/{}", nonce.expose());
    api.at(68, "GET", &format!("{prefix}/"), None).await.is(200);
    let found = api.at(68, "GET", &format!("{prefix}{lookup}"), None).await.is(200);
    assert!(!found.text.contains(nonce.expose()), "no answer repeats it");
    let token = found.body["config"]["agent_token"].as_str().unwrap().to_owned();
    assert_eq!(token.len(), 43);

    let signed = json!({
        "callback_url": "https://192.0.2.7:9999", "agent_token": token, "agent_version": "13.0.0",
        "anneal": {"extension": 1, "boot_id": "b", "process_id": "p", "evidence_key": KEY},
    });
    let path = format!("/v1/heartbeat/{}", node.uuid);
    // The token alone is worth nothing, and an agent that signs nothing is not the one that was booted.
    let answer = api.at(68, "POST", &path, Some(signed.clone())).await.is(400);
    assert!(answer.text.contains("Invalid or missing agent token"), "{}", answer.text);
    let unsigned = without(signed.clone(), "anneal");
    let answer = api.at(68, "POST", &format!("{prefix}{path}"), Some(unsigned.clone())).await.is(400);
    assert!(answer.text.contains("agent_kind"), "{}", answer.text);
    let refused = api.store.contact(node.uuid).await.unwrap();
    assert_eq!((refused.last_heartbeat_at, refused.callback_url), (None, None));
    assert_eq!(refused.unsigned, Some(UnsignedAgent { address: None }), "the node's run is to say so");
    api.at(68, "POST", &format!("{prefix}{path}"), Some(signed)).await.is(202);

    let mut row = api.store.node(node.uuid).await.unwrap();
    row.properties.insert(AGENT_KIND.to_owned(), json!("ironic-python-agent"));
    api.update(row).await;
    api.at(68, "POST", &format!("{prefix}{path}"), Some(unsigned)).await.is(202);
}

#[tokio::test]
async fn a_heartbeat_names_the_address_that_it_comes_from() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let token = token(&api).await;
    let send = async |host: &str, peer: [u8; 4]| {
        let mut body = beat(&token);
        body["callback_url"] = json!(format!("https://{host}:9999"));
        let mut request = Request::post(format!("/v1/heartbeat/{}", node.uuid))
            .header("X-OpenStack-Ironic-API-Version", "1.68")
            .header("Content-Type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        request.extensions_mut().insert(api::ClientAddress(peer.into()));
        api.raw(request).await
    };
    for (host, peer, why) in [
        ("192.0.2.8", [192, 0, 2, 7], "is not where the heartbeat comes from (192.0.2.7)"),
        ("127.0.0.1", [192, 0, 2, 7], "no address of another host"),
        ("169.254.169.254", [192, 0, 2, 7], "no address of another host"),
    ] {
        let answer = send(host, peer).await.is(400);
        assert!(answer.text.contains(why), "{}", answer.text);
    }
    assert_eq!(api.store.contact(node.uuid).await.unwrap().callback_url, None);
    send("192.0.2.7", [192, 0, 2, 7]).await.is(202);
}
