//! What came with deployment, service, rescue and the administrator's override.

use crate::common::Api;
use api::Settings;
use model::{ProvisionState, StepKind};
use serde_json::{Value, json};

/// specs/deploy-steps.txt: older versions hide the field and still show `driver_internal_info`.
#[tokio::test]
async fn the_current_step_of_each_kind_is_shown_to_versions_that_know_it() {
    let api = Api::new();
    let mut node = api.node("n", ProvisionState::DeployWait).await;
    for kind in StepKind::ALL {
        *node.step_mut(kind) = Some(json!({"interface": "deploy", "step": kind.as_str()}));
        node.driver_internal_info.insert(kind.steps_field().into(), json!([{"step": kind.as_str()}]));
        node.driver_internal_info.insert(kind.index_field().into(), 0.into());
    }
    api.store.update_node(node, vec![], None).await.unwrap();
    for (path, pick) in [("/v1/nodes/n", ""), ("/v1/nodes/detail", "/nodes/0")] {
        for (kind, since) in [(StepKind::Clean, 7), (StepKind::Deploy, 44), (StepKind::Service, 87)] {
            let field = kind.step_field();
            let shown = |answer: &Value| answer.pointer(pick).unwrap()[field].clone();
            let step = json!({"interface": "deploy", "step": kind.as_str()});
            let now = api.at(since, "GET", path, None).await.is(200).body;
            assert_eq!(shown(&now), step, "{path} 1.{since}");
            let before = api.at(since - 1, "GET", path, None).await.is(200).body;
            assert_eq!(shown(&before), Value::Null, "{path} below 1.{since}");
            let info = &before.pointer(pick).unwrap()["driver_internal_info"];
            assert_eq!(info[kind.steps_field()], json!([{"step": kind.as_str()}]));
            assert_eq!(info[kind.index_field()], 0);
        }
    }
    // Nothing under way: an empty object, as in Ironic.
    api.node("idle", ProvisionState::Available).await;
    assert_eq!(api.get("/v1/nodes/idle").await.is(200).body["deploy_step"], json!({}));
}

/// specs/cleaning-states.txt: "Nodes in CLEANFAIL may be put into CLEANING or AVAILABLE state".
#[tokio::test]
async fn an_override_is_taken_from_clean_failed_alone_and_recorded() {
    let api = Api::new();
    api.node("failed", ProvisionState::CleanFail).await;
    api.node("m", ProvisionState::Manageable).await;
    let override_ = json!({"target": "available", "reason": "disk swapped by hand"});
    api.put("/v1/nodes/m/states/provision", override_.clone()).await.is(400);
    api.put("/v1/nodes/failed/states/provision", override_).await.is(202);
    let node = api.get("/v1/nodes/failed").await.is(200).body;
    assert_eq!(node["provision_state"], "available");
    let history = api.get("/v1/nodes/failed/history").await.is(200).body["history"].clone();
    let text = history[0]["event"].as_str().unwrap();
    assert!(text.contains("override by an administrator (disk swapped by hand)"), "{text}");
    // The disks may contain anything: a reason is required.
    api.node("silent", ProvisionState::CleanFail).await;
    for reason in [json!(null), json!(""), json!(" "), json!("x".repeat(1001))] {
        let silent = json!({"target": "available", "reason": reason});
        let fault = api.put("/v1/nodes/silent/states/provision", silent).await.is(400).fault();
        assert!(fault.starts_with("A \"reason\" of 1 to 1000 characters is required"), "{fault}");
    }
    api.put("/v1/nodes/silent/states/provision", json!({"target": "available"})).await.is(400);
    assert_eq!(api.get("/v1/nodes/silent").await.body["provision_state"], "clean failed");
    // The other way out: once more.
    api.node("again", ProvisionState::CleanFail).await;
    api.put("/v1/nodes/again/states/provision", json!({"target": "CLEANED"})).await.is(202);
    assert_eq!(api.get("/v1/nodes/again").await.body["provision_state"], "cleaning");
}

#[tokio::test]
async fn a_rescue_keeps_only_a_hash_and_shows_not_even_that() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Active).await;
    let rescue = json!({"target": "rescue", "rescue_password": "correct horse"});
    api.put("/v1/nodes/n/states/provision", rescue).await.is(202);
    let kept = api.store.node(node.uuid).await.unwrap();
    let hash = kept.instance_info["hashed_rescue_password"].as_str().unwrap();
    // `$6$rounds=5000$salt$…`: crypt(3) gives back at most 16 characters of salt, and the whole is compared.
    assert_eq!(hash.rsplit('$').nth(1).map(str::len), Some(16), "{hash}");
    assert!(hash.starts_with("$6$") && hash.len() > 90, "{hash}");
    let whole = serde_json::to_string(&kept).unwrap();
    assert!(!whole.contains("correct horse"));
    let shown = api.get("/v1/nodes/n").await.is(200).text;
    assert!(!shown.contains("correct horse") && !shown.contains(hash));
    api.node("other", ProvisionState::Active).await;
    for wrong in [json!(null), json!(""), json!("  "), json!(5)] {
        let rescue = json!({"target": "rescue", "rescue_password": wrong});
        let fault = api.put("/v1/nodes/other/states/provision", rescue).await.is(400).fault();
        assert!(fault.contains("rescue_password") && !fault.contains('5'), "{fault}");
    }
}

/// A boot without the archive would have no login: refused before the node is switched off.
#[tokio::test]
async fn a_rescue_without_a_login_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("rescue");
    let api = Api::with(Settings { rescue_archive: Some(archive.clone()), ..Settings::default() });
    let request = json!({"target": "rescue", "rescue_password": "correct horse"});
    let path = "/v1/nodes/n/states/provision";
    let mut node = api.node("n", ProvisionState::Active).await;
    node.interfaces.insert("rescue_interface".to_owned(), "agent".to_owned());
    let node = api.store.update_node(node, vec![], None).await.unwrap();
    let fault = api.put(path, request.clone()).await.is(400).fault();
    assert!(fault.contains("boot.rescue") && !fault.contains("correct horse"), "{fault}");
    let judged = api.get("/v1/nodes/n/validate").await.is(200).body["rescue"].clone();
    assert!(
        judged["result"] == false && judged["reason"].as_str().unwrap().contains("boot.rescue"),
        "{judged}"
    );
    assert_eq!(api.store.node(node.uuid).await.unwrap().provision_state, ProvisionState::Active);

    std::fs::write(&archive, "").unwrap();
    let key = "ssh-ed25519 AAAAC3Nz me@desk";
    for (keys, agent, said) in [
        (json!([key, "command=\"x\" ssh-ed25519 AAAA"]), "anneal", "[1] is no public key"),
        (json!(key), "anneal", "is no list of public keys"),
        (json!([key]), "ironic-python-agent", "takes no keys"),
    ] {
        let mut node = api.store.node(node.uuid).await.unwrap();
        node.instance_info.insert("rescue_authorized_keys".to_owned(), keys.clone());
        node.properties.insert("agent_kind".to_owned(), json!(agent));
        api.store.update_node(node, vec![], None).await.unwrap();
        let fault = api.put(path, request.clone()).await.is(400).fault();
        assert!(fault.contains(said) && fault.contains("rescue_authorized_keys"), "{keys}: {fault}");
    }
    let mut node = api.store.node(node.uuid).await.unwrap();
    node.instance_info.insert("rescue_authorized_keys".to_owned(), json!([key]));
    node.properties.remove("agent_kind");
    let mut node = api.store.update_node(node, vec![], None).await.unwrap();
    assert_eq!(api.get("/v1/nodes/n/validate").await.is(200).body["rescue"], json!({"result": true}));

    // A signed ramdisk has none either.
    node.interfaces.insert("boot_interface".to_owned(), "redfish-virtual-media".to_owned());
    node.extra.insert("medium".to_owned(), json!("signed"));
    let mut node = api.store.update_node(node, vec![], None).await.unwrap();
    let fault = api.put(path, request.clone()).await.is(400).fault();
    assert!(fault.contains("boot.signed_uki, which has no login"), "{fault}");
    node.extra.remove("medium");
    api.store.update_node(node, vec![], None).await.unwrap();
    api.put(path, request).await.is(202);
}

/// The wire strings, and the names of the specifications.
#[tokio::test]
async fn verbs_are_taken_in_both_spellings() {
    for (state, targets, leads) in [
        (ProvisionState::Enroll, ["manage", "MANAGED", "MANAGEABLE"], "verifying"),
        (ProvisionState::Available, ["active", "deploy", "ACTIVE"], "deploying"),
        (ProvisionState::Active, ["deleted", "undeploy", "DELETED"], "deleting"),
    ] {
        for target in targets {
            let api = Api::new();
            api.node("n", state).await;
            api.put("/v1/nodes/n/states/provision", json!({"target": target})).await.is(202);
            assert_eq!(api.get("/v1/nodes/n").await.body["provision_state"], leads, "{target}");
        }
    }
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    for name in ["manageable", "MANAGEABLE", "MANAGED"] {
        let found = api.get(&format!("/v1/nodes?provision_state={name}")).await.is(200).body;
        assert_eq!(found["nodes"].as_array().unwrap().len(), 1, "{name}");
    }
}

/// Ironic takes most of these and fails after the node was booted.
#[tokio::test]
async fn a_node_is_not_deployed_without_an_image_that_can_be_written() {
    for (state, target) in [(ProvisionState::Available, "active"), (ProvisionState::Active, "rebuild")] {
        let api = Api::new();
        let direct = |node: &mut model::Node| node.driver = "redfish".into();
        let node = api.node_with("n", state, direct).await;
        let ask = async || api.put("/v1/nodes/n/states/provision", json!({"target": target})).await;
        let set = async |info: Value| {
            let patch = json!([{"op": "add", "path": "/instance_info", "value": info}]);
            api.patch("/v1/nodes/n", patch).await.is(200);
        };
        let validated = async || api.get("/v1/nodes/n/validate").await.is(200).body["deploy"].clone();

        let missing = "Missing are: ['instance_info.image_source']";
        let fault = ask().await.is(400).fault();
        let prefix = format!("Failed to validate deploy or power info for node {}: ", node.uuid);
        assert!(fault.starts_with(&prefix) && fault.ends_with(missing), "{fault}");
        let seen = validated().await;
        assert_eq!(seen["result"], false, "{seen}");
        assert!(seen["reason"].as_str().unwrap().ends_with(missing), "{seen}");

        let mut info = json!({"image_source": "http://images/x.raw?sig=hunter2", "image_type": "partition",
            "image_os_hash_algo": "sha256", "image_os_hash_value": "0".repeat(64)});
        set(info.clone()).await;
        let fault = ask().await.is(400).fault();
        assert!(fault.contains("whole-disk image") && !fault.contains("hunter2"), "{fault}");
        assert_eq!(api.store_node(&node).await.provision_state, state);

        info["image_type"] = json!("whole-disk");
        set(info).await;
        assert_eq!(validated().await["result"], true);
        ask().await.is(202);
        assert_eq!(api.store_node(&node).await.provision_state, ProvisionState::Deploying);
    }
}
