//! Nodes: what a stock client sees, against recordings of the real Ironic.

use crate::common::test_store::StoreKind;
use crate::common::{Api, await_agent, fixture, keys};
use api::Settings;
use model::agent::{AgentKind, AgentState};
use model::{Catalogue, CatalogueStep, Node, ProvisionState, Timestamp, Wait};
use serde_json::{Value, json};
use store::{HeartbeatRecord, StepKind, TokenRequest};

#[tokio::test]
async fn a_created_node_looks_as_ironics() {
    let api = Api::new();
    let golden = fixture(include_str!("fixtures/node.json"));
    let uuid = golden["uuid"].as_str().unwrap();
    let request = json!({"driver": "fake-hardware", "name": "walk1", "uuid": uuid});
    let answer = api.post("/v1/nodes", request).await.is(201);
    assert_eq!(answer.header("location"), Some(format!("http://127.0.0.1:6385/v1/nodes/{uuid}").as_str()));
    let mut made = answer.body.clone();
    // The clock of the test is the one of the recording, give or take its ticks.
    assert!(
        made["created_at"].as_str().unwrap().starts_with("2026-11-21T02:59:25."),
        "{}",
        made["created_at"]
    );
    made["created_at"] = golden["created_at"].clone();
    assert_eq!(made, golden);
    assert_eq!(api.get("/v1/nodes/walk1").await.is(200).body, answer.body);
    assert_eq!(api.get(&format!("/v1/nodes/{}", uuid.to_uppercase())).await.is(200).body, answer.body);
}

#[tokio::test]
async fn each_version_shows_the_fields_that_ironics_shows() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Enroll).await;
    let golden = fixture(include_str!("fixtures/node_keys.json"));
    for (version, expected) in golden.as_object().unwrap() {
        let minor: u16 = version.strip_prefix("1.").unwrap().parse().unwrap();
        let shown = api.at(minor, "GET", &format!("/v1/nodes/{}", node.uuid), None).await.is(200);
        assert_eq!(Value::from(keys(&shown.body)), *expected, "{version}");
        let detail = api.at(minor, "GET", "/v1/nodes/detail", None).await.is(200);
        assert_eq!(detail.body["nodes"][0], shown.body, "{version}");
    }
}

#[tokio::test]
async fn a_list_shows_ironics_short_form() {
    let api = Api::new();
    api.node("n", ProvisionState::Available).await;
    let golden = fixture(include_str!("fixtures/list_item.json"));
    let list = api.get("/v1/nodes/").await.is(200).body;
    assert_eq!(keys(&list["nodes"][0]), keys(&golden));
    assert!(list.get("next").is_none());
    let old = api.at(1, "GET", "/v1/nodes", None).await.is(200).body;
    assert_eq!(old["nodes"][0]["provision_state"], Value::Null, "1.1 does not know available");
    assert!(old["nodes"][0].get("name").is_none());
    assert_eq!(api.get("/v1/nodes?retired=True").await.is(200).body, json!({"nodes": []}));
}

#[tokio::test]
async fn lists_are_filtered() {
    let api = Api::new();
    api.node_with("a", ProvisionState::Manageable, |node| {
        node.retired = true;
        node.resource_class = Some("big".into());
        node.other.insert("description".into(), "Rack Seven".into());
        node.other.insert("owner".into(), "me".into());
    })
    .await;
    api.node_with("b", ProvisionState::CleanFail, |node| {
        node.maintenance = true;
        node.fault = Some("clean failure".into());
        node.instance_uuid = Some(uuid::Uuid::from_u128(5));
        node.driver = "redfish".into();
        node.other.insert("conductor_group".into(), "east".into());
    })
    .await;
    for (query, expected) in [
        ("", "a,b"),
        ("?provision_state=manageable", "a"),
        ("?provision_state=clean%20failed", "b"),
        ("?maintenance=true", "b"),
        ("?maintenance=0", "a"),
        ("?associated=yes", "b"),
        ("?retired=True", "a"),
        ("?retired=False", "b"),
        ("?driver=redfish", "b"),
        ("?resource_class=big", "a"),
        ("?owner=me", "a"),
        ("?project=me", "a"),
        ("?fault=clean%20failure", "b"),
        ("?conductor_group=EAST", "b"),
        ("?conductor_group=", "a"),
        ("?description_contains=rack", "a"),
        ("?instance_uuid=00000000-0000-0000-0000-000000000005", "b"),
        ("?conductor=probe-conductor", "a,b"),
        ("?conductor=other", ""),
        ("?sort_key=name&sort_dir=desc", "b,a"),
        ("?sort_key=retired", "b,a"),
        ("?sort_dir=desc", "b,a"),
    ] {
        let list = api.get(&format!("/v1/nodes{query}")).await.is(200).body;
        let mut names: Vec<_> =
            list["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect();
        if !query.contains("sort") {
            names.sort_unstable();
        }
        // Both nodes were made in one instant: by id they come in the order of their UUIDs.
        if query != "?sort_dir=desc" {
            assert_eq!(names.join(","), expected, "{query}");
        }
    }
    let up = api.get("/v1/nodes").await.body["nodes"].clone();
    let down = api.get("/v1/nodes?sort_dir=desc").await.body["nodes"].clone();
    assert_eq!((&up[0], &up[1]), (&down[1], &down[0]));
}

#[tokio::test]
async fn lists_come_in_pages() {
    let api = Api::new();
    for index in 0..5 {
        api.node(&format!("n{index}"), ProvisionState::Enroll).await;
    }
    let mut seen = Vec::new();
    let mut path = "/v1/nodes?limit=2&sort_key=name&fields=name,uuid".to_owned();
    loop {
        let page = api.get(&path).await.is(200).body;
        let nodes = page["nodes"].as_array().unwrap();
        assert!(nodes.len() <= 2 && !nodes.is_empty());
        assert_eq!(keys(&nodes[0]), ["links", "name", "uuid"]);
        seen.extend(nodes.iter().map(|node| node["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => path = next.strip_prefix("http://127.0.0.1:6385").unwrap().to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["n0", "n1", "n2", "n3", "n4"]);
    let gone = "ffffffff-0000-4000-8000-000000000000";
    assert_eq!(
        api.get(&format!("/v1/nodes?marker={gone}")).await.is(404).fault(),
        format!("Node {gone} could not be found.")
    );
}

#[tokio::test]
async fn secrets_are_never_shown() {
    let api = Api::new();
    let node = api
        .node_with("n", ProvisionState::CleanWait, |node| {
            node.driver_info.insert("redfish_password".into(), "hunter2".into());
            node.driver_info.insert("redfish_username".into(), "admin".into());
            node.instance_info.insert("configdrive".into(), json!({"meta_data": "hunter2"}));
            node.driver_internal_info.insert("agent_secret_token_old".into(), "hunter2".into());
            await_agent(node);
        })
        .await;
    api.store
        .grant_token(node.uuid, TokenRequest::without_nonce("hunter2", None, Timestamp(0)))
        .await
        .unwrap();
    for path in [
        "/v1/nodes/n",
        "/v1/nodes/detail",
        "/v1/nodes?detail=true",
        "/v1/nodes?fields=driver_info,driver_internal_info",
    ] {
        let answer = api.get(path).await.is(200);
        assert!(!answer.text.contains("hunter2"), "{path}: {}", answer.text);
        assert!(answer.text.contains("******"), "{path}");
    }
    let shown = api.get("/v1/nodes/n").await.body;
    assert_eq!(shown["driver_info"], json!({"redfish_password": "******", "redfish_username": "admin"}));
    assert_eq!(shown["driver_internal_info"]["agent_secret_token"], "******");
}

#[tokio::test]
async fn the_run_the_wait_and_the_progress_are_shown() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    api.put("/v1/nodes/n/states/provision", json!({"target": "provide"})).await.is(202);
    let mut stored = api.store.node(node.uuid).await.unwrap();
    stored.wait =
        Some(Wait { reason: "the agent".into(), since: Timestamp(0), deadline: Some(Timestamp(1)) });
    await_agent(&mut stored);
    api.store.update_node(stored, Vec::new(), None).await.unwrap();
    api.store.grant_token(node.uuid, TokenRequest::without_nonce("t", None, Timestamp(0))).await.unwrap();
    let state = AgentState {
        boot_id: "b".into(),
        process_id: "p".into(),
        evidence_key: None,
        running: Some("c1".into()),
        ended: vec![],
        progress: Some(json!({"disks": []})),
    };
    let beat = HeartbeatRecord {
        callback_url: "https://192.0.2.1:9999".into(),
        verify_ca: None,
        agent_version: Some("1".into()),
        at: Timestamp(0),
        agent: AgentKind::Anneal(state),
    };
    api.store.record_heartbeat(node.uuid, "t", beat).await.unwrap();
    let shown = api.get("/v1/nodes/n").await.is(200).body;
    let info = &shown["driver_internal_info"];
    assert_eq!(info["agent_url"], "https://192.0.2.1:9999");
    assert_eq!(info["agent_last_heartbeat"], "1970-01-01T00:00:00");
    assert_eq!(info["anneal"]["run"]["kind"], "automated_clean");
    assert_eq!(info["anneal"]["run"]["cursor"], json!({"deed": "await_agent"})); // wording: wire name
    assert_eq!(info["anneal"]["wait"]["reason"], "the agent");
    assert_eq!(info["anneal"]["wait"]["deadline"], "1970-01-01T00:00:00.000001+00:00");
    assert_eq!(info["anneal"]["progress"], json!({"disks": []}));
    assert_eq!(shown["clean_step"], json!({}));
}

#[tokio::test]
async fn states_maintenance_power_boot_device_and_validate() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let states = api.get("/v1/nodes/n/states").await.is(200).body;
    assert_eq!(states["provision_state"], "manageable");
    assert_eq!(keys(&states).len(), 11);
    assert_eq!(keys(&api.at(5, "GET", "/v1/nodes/n/states", None).await.is(200).body).len(), 7);

    let set = api.put("/v1/nodes/n/maintenance", json!({"reason": "m"})).await.is(202);
    assert_eq!(set.text, "");
    let shown = api.get("/v1/nodes/n").await.body;
    assert_eq!((&shown["maintenance"], &shown["maintenance_reason"]), (&json!(true), &json!("m")));
    api.delete("/v1/nodes/n/maintenance").await.is(202);
    let shown = api.get("/v1/nodes/n").await.body;
    assert_eq!((&shown["maintenance"], &shown["maintenance_reason"]), (&json!(false), &Value::Null));

    let power =
        api.put("/v1/nodes/n/states/power", json!({"target": "rebooting", "timeout": 10})).await.is(202);
    assert_eq!(power.header("location"), Some("http://127.0.0.1:6385/v1/nodes/n/states"));
    assert_eq!(api.get("/v1/nodes/n").await.body["target_power_state"], "power on");
    // The conductor has carried it out.
    let stored = api.store.node_by_ident("n").await.unwrap();
    api.update(Node { target_power_state: None, ..stored }).await;

    let body = json!({"boot_device": "pxe", "persistent": false});
    api.put("/v1/nodes/n/management/boot_device", body.clone()).await.is(204);
    assert_eq!(api.get("/v1/nodes/n/management/boot_device").await.is(200).body, body);
    let supported = api.get("/v1/nodes/n/management/boot_device/supported").await.is(200).body;
    assert_eq!(supported["supported_boot_devices"][0], "pxe");

    let valid = api.get("/v1/nodes/n/validate").await.is(200).body;
    assert_eq!(valid["power"], json!({"result": true}));
    api.patch("/v1/nodes/n", json!([{"op": "replace", "path": "/driver", "value": "redfish"}])).await.is(200);
    let valid = api.get(&format!("/v1/nodes/validate?node_uuid={}", node.uuid)).await.is(200).body;
    assert_eq!(valid["power"], json!({"result": false, "reason": "missing redfish_address"}));
    assert_eq!(valid["bios"], json!({"result": null, "reason": "not supported"}));
    assert_eq!(valid["boot"]["result"], true);
    assert!(valid["boot"]["reason"].to_string().contains("lookup_without_nonce is set"), "{valid}");
}

#[tokio::test]
async fn validate_shows_which_agent_is_accepted() {
    let api = Api::demanding_nonce();
    api.node("n", ProvisionState::Manageable).await;
    let boot = async || api.get("/v1/nodes/n/validate").await.is(200).body["boot"].clone();
    assert_eq!(boot().await, json!({"result": true}));
    for (kind, result) in [("ironic-python-agent", true), ("anneal", true), ("ipa", false)] {
        let patch = json!([{"op": "add", "path": "/properties/agent_kind", "value": kind}]);
        api.patch("/v1/nodes/n", patch).await.is(200);
        assert_eq!(boot().await["result"], result, "{kind}");
    }
    assert!(boot().await["reason"].to_string().contains("agent_kind is \\\"ipa\\\""), "{}", boot().await);
}

#[tokio::test]
async fn validate_says_which_identity_the_way_of_booting_gives() {
    let api = Api::demanding_nonce();
    api.node("n", ProvisionState::Manageable).await;
    let patch = async |path: &str, value: Value| {
        let patch = json!([{"op": "add", "path": path, "value": value}]);
        api.patch("/v1/nodes/n", patch).await.is(200);
        api.get("/v1/nodes/n/validate").await.is(200).body["boot"].clone()
    };
    let network = patch("/driver", json!("redfish")).await;
    assert_eq!(network["result"], true);
    assert!(network["reason"].to_string().contains("in plain text on the nodes' network"), "{network}");
    let media = patch("/boot_interface", json!("redfish-virtual-media")).await;
    assert_eq!(media["result"], true);
    assert!(media["reason"].to_string().contains("only the node's BMC can read"), "{media}");
    let signed = patch("/extra/medium", json!("signed")).await;
    assert_eq!(signed["result"], true);
    assert!(signed["reason"].to_string().contains("obeys this controller"), "{signed}");
    let shim = patch("/extra/medium", json!("shim")).await;
    assert_eq!(shim["result"], true);
    let says = "initramfs and kernel command line are not signed. Without a TPM that proves it";
    assert!(shim["reason"].to_string().contains(says), "{shim}");
    let proved = patch("/driver_info/require_tpm", json!(true)).await;
    assert_eq!(proved["result"], true);
    assert!(proved["reason"].to_string().contains("The next inspection records the node's TPM"), "{proved}");
    let unsigned = patch("/extra/medium", json!("unsigned")).await;
    assert_eq!(unsigned["result"], false);
    assert!(unsigned["reason"].to_string().contains("nothing is known of what a boot"), "{unsigned}");
    patch("/driver_info/require_tpm", json!(false)).await;
    let none = patch("/extra/medium", json!("none")).await;
    assert_eq!(none, json!({"result": false, "reason": "no loaders"}));
}

#[tokio::test]
async fn validate_says_where_add_on_firmware_is_not_sent() {
    let settings = Settings { add_on_firmware: true, ..Settings::default() };
    let api = Api::kept_in(StoreKind::Memory, settings);
    api.node("n", ProvisionState::Manageable).await;
    for (medium, named) in [("unsigned", false), ("signed", true)] {
        let change = |path: &str, value: &str| json!({"op": "add", "path": path, "value": value});
        let changes = json!([
            change("/driver", "redfish"),
            change("/boot_interface", "redfish-virtual-media"),
            change("/extra/medium", medium),
        ]);
        api.patch("/v1/nodes/n", changes).await.is(200);
        let boot = api.get("/v1/nodes/n/validate").await.is(200).body["boot"].clone();
        assert_eq!(boot["result"], true, "{boot}");
        assert_eq!(boot["reason"].to_string().contains("Add-on firmware"), named, "{boot}");
    }
}

#[tokio::test]
async fn verbs_are_stored_as_the_model_decides() {
    let api = Api::new();
    api.node("n", ProvisionState::Enroll).await;
    let answer = api.put("/v1/nodes/n/states/provision", json!({"target": "manage"})).await.is(202);
    assert_eq!(answer.text, "");
    assert_eq!(answer.header("content-type"), None);
    assert_eq!(answer.header("location"), Some("http://127.0.0.1:6385/v1/nodes/n/states"));
    let shown = api.get("/v1/nodes/n").await.body;
    assert_eq!(shown["provision_state"], "verifying");
    assert_eq!(shown["target_provision_state"], "manageable");

    let node = api.node("m", ProvisionState::Manageable).await;
    let steps = json!([{"interface": "deploy", "step": "erase_devices", "args": {"x": 1}}]);
    api.put("/v1/nodes/m/states/provision", json!({"target": "clean", "clean_steps": steps})).await.is(202);
    let stored = api.store.node(node.uuid).await.unwrap();
    assert_eq!(stored.provision_state, ProvisionState::Cleaning);
    assert_eq!(stored.run.unwrap().requested[0].args["x"], 1);

    for state in [ProvisionState::Manageable, ProvisionState::CleanFail] {
        let node = api.node(&format!("c-{}", state.as_str().len()), state).await;
        let path = format!("/v1/nodes/{}/states/provision", node.uuid);
        api.put(&path, json!({"target": "CLEANED"})).await.is(202);
        let stored = api.store.node(node.uuid).await.unwrap();
        assert_eq!(stored.target_provision_state, Some(ProvisionState::Available));
    }
    let history = api.get("/v1/nodes/n/history").await.is(200).body["history"].clone();
    assert_eq!(keys(&history[0]), keys(&fixture(include_str!("fixtures/history.json"))));
    assert!(history[0]["event"].as_str().unwrap().contains("enroll -> verifying"), "{history}");
    let one = format!("/v1/nodes/n/history/{}", history[0]["uuid"].as_str().unwrap());
    assert_eq!(api.get(&one).await.is(200).body["event_type"], "transition");
}

#[tokio::test]
async fn cleaning_steps_as_the_specification_says() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let unknown = api.get("/v1/nodes/n/cleaning/steps").await.is(202);
    assert_eq!(unknown.header("retry-request-after"), Some("-1"));
    assert!(unknown.body["message"].as_str().unwrap().contains("not known yet"));

    // The interfaces' own steps are known before any boot.
    let reset = json!({
        "interface": "management", "step": "reset", "priority": 20, "abortable": false,
        "args": [{"name": "hard", "description": "at once", "required": true, "schema": {"type": "boolean"}}],
    });
    assert_eq!(unknown.body["steps"], json!([reset]));
    let filtered = api.get("/v1/nodes/n/cleaning/steps?min_priority=21").await.is(202).body;
    assert_eq!(filtered["steps"], json!([]));
    // While a boot is under way, its deadline says when to ask again.
    let mut booting = node.clone();
    let mut run = model::Run::new(model::RunKind::AutomatedClean, node.created_at);
    run.cursor = model::Cursor::AwaitAgent;
    booting.run = Some(run);
    let deadline = Some(node.created_at.after(std::time::Duration::from_secs(1800)));
    booting.wait = Some(model::Wait { reason: "the ramdisk".into(), since: node.created_at, deadline });
    api.store.update_node(booting, vec![], None).await.unwrap();
    let soon = api.get("/v1/nodes/n/cleaning/steps").await.is(202);
    let seconds: u64 = soon.header("retry-request-after").unwrap().parse().unwrap();
    assert!((1700..=1800).contains(&seconds), "{seconds}");
    // A node without an agent has no more to show.
    api.node("oob", ProvisionState::Manageable).await;
    assert_eq!(api.get("/v1/nodes/oob/cleaning/steps").await.is(200).body, json!([reset]));
    assert_eq!(api.get("/v1/nodes/oob/deploy/steps").await.is(200).body, json!([]));
    api.get("/v1/nodes/n/service/steps").await.is(202);

    let step = |interface: &str, step: &str, priority: i64| -> CatalogueStep {
        let step = json!({"interface": interface, "step": step, "priority": priority, "abortable": true,
            "args": {"size": {"description": "GiB", "required": true}}});
        serde_json::from_value(step).unwrap()
    };
    let steps = vec![step("raid", "create", 0), step("deploy", "erase_devices", 10), step("power", "p", 10)];
    let catalogue =
        Catalogue { steps, hardware_manager_version: serde_json::Map::new(), learnt_at: Timestamp(0) };
    api.store.put_catalogue(node.uuid, StepKind::Clean, catalogue, None).await.unwrap();
    let all = api.get("/v1/nodes/n/cleaning/steps").await.is(200).body;
    let names: Vec<_> = all.as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(names, ["reset", "p", "erase_devices", "create"]);
    assert_eq!(
        all[2],
        json!({
            "interface": "deploy", "step": "erase_devices", "priority": 10, "abortable": true,
            "args": [{"name": "size", "description": "GiB", "required": true}],
        })
    );
    for (least, count) in [("1", 3), ("10", 3), ("10.5", 1), ("20.5", 0), ("0", 4), ("-1", 4)] {
        let some = api.get(&format!("/v1/nodes/n/cleaning/steps?min_priority={least}")).await.is(200).body;
        assert_eq!(some.as_array().unwrap().len(), count, "{least}");
    }
    for bad in ["x", "", "nan", "inf"] {
        let fault = api.get(&format!("/v1/nodes/n/cleaning/steps?min_priority={bad}")).await.is(400).fault();
        assert!(fault.contains("min_priority"), "{fault}");
    }
    api.get("/v1/nodes/nope/cleaning/steps").await.is(404);
    // A changed override shows at once, not at the next boot.
    let overrides = [("raid.create".to_owned(), 95), ("power.p".to_owned(), 0)];
    api.drivers.overrides.lock().unwrap().extend(overrides);
    let all = api.get("/v1/nodes/n/cleaning/steps?min_priority=1").await.is(200).body;
    let shown: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["step"].as_str().unwrap(), &step["priority"]))
        .collect();
    assert_eq!(shown, [("create", &json!(95)), ("reset", &json!(20)), ("erase_devices", &json!(10))]);
}

#[tokio::test]
async fn deleting() {
    let api = Api::new();
    for (state, status) in [
        (ProvisionState::Enroll, 204),
        (ProvisionState::Manageable, 204),
        (ProvisionState::Available, 204),
        (ProvisionState::AdoptFail, 204),
        (ProvisionState::Cleaning, 409),
        (ProvisionState::CleanFail, 409),
        (ProvisionState::Active, 409),
    ] {
        let node = api.node("n", state).await;
        let answer = api.delete("/v1/nodes/n").await.is(status);
        if status == 409 {
            assert!(answer.fault().contains(state.as_str()), "{}", answer.fault());
            api.put("/v1/nodes/n/maintenance", json!({})).await.is(202);
            api.delete("/v1/nodes/n").await.is(204);
        }
        assert!(api.store.node(node.uuid).await.is_err());
    }
    let node = api.node("held", ProvisionState::Manageable).await;
    let until = Timestamp(i64::MAX);
    api.store.take_lease(node.uuid, "other-host", Timestamp(0), until).await.unwrap().unwrap();
    let fault = api.delete("/v1/nodes/held").await.is(409).fault();
    assert_eq!(
        fault,
        format!(
            "Node {} is locked by host other-host, please retry after the current operation is completed.",
            node.uuid
        )
    );
    assert_eq!(api.get("/v1/nodes/held").await.body["reservation"], "other-host");
}

#[tokio::test]
async fn two_writers_lose_nothing() {
    let api = std::sync::Arc::new(Api::new());
    let node = api.node("n", ProvisionState::Manageable).await;
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..4 {
        let api = api.clone();
        tasks.spawn(async move {
            let op = json!([{"op": "add", "path": format!("/extra/k{index}"), "value": index}]);
            api.patch("/v1/nodes/n", op).await.is(200);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(api.store.node(node.uuid).await.unwrap().extra.len(), 4);
}

#[tokio::test]
async fn the_current_clean_step_is_shown_in_the_node_and_in_the_detailed_list() {
    let api = Api::new();
    let step = json!({"interface": "deploy", "step": "erase_devices", "priority": 10});
    api.node_with("n", ProvisionState::CleanWait, |node| node.clean_step = Some(step.clone())).await;
    assert_eq!(api.get("/v1/nodes/n").await.is(200).body["clean_step"], step);
    assert_eq!(api.get("/v1/nodes/detail").await.is(200).body["nodes"][0]["clean_step"], step);
    assert_eq!(api.get("/v1/nodes?detail=true").await.is(200).body["nodes"][0]["clean_step"], step);
}

#[tokio::test]
async fn a_node_whose_cleaning_failed_may_be_switched_on_and_off() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::CleanFail).await;
    for target in ["power on", "power off", "rebooting"] {
        api.put("/v1/nodes/n/states/power", json!({"target": target})).await.is(202);
        let stored = api.store.node(node.uuid).await.unwrap();
        assert_eq!(stored.target_power_state.unwrap().as_str(), target);
        assert_eq!(stored.provision_state, ProvisionState::CleanFail);
        // The conductor has carried it out.
        api.update(Node { target_power_state: None, ..stored }).await;
    }
}

#[tokio::test]
async fn the_basis_of_an_available_node_is_shown_under_anneals_own_key_and_by_name() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Available).await;
    let shown = api.get("/v1/nodes/n").await.is(200).body;
    assert_eq!(shown["driver_internal_info"]["anneal"]["basis"], json!({"kind": "not-cleaned"}));
    // Stock clients never meet a field that Ironic does not have.
    assert!(shown.get("anneal_basis").is_none());
    let detail = api.get("/v1/nodes/detail").await.is(200).body;
    assert!(detail["nodes"][0].get("anneal_basis").is_none());
    let basis = async |path: &str| api.get(path).await.is(200).body["nodes"][0]["anneal_basis"].clone();
    assert_eq!(basis("/v1/nodes?fields=name,anneal_basis").await, json!("not-cleaned"));
    assert_eq!(basis("/v1/nodes?fields=anneal_basis&sort_key=anneal_basis").await, json!("not-cleaned"));
    // It is read, not written.
    for name in ["/anneal_basis", "/basis"] {
        let patch = json!([{"op": "add", "path": name, "value": "erased"}]);
        api.patch("/v1/nodes/n", patch).await.is(400);
    }
    let body = json!({"driver": "fake-hardware", "anneal_basis": "erased"});
    api.post("/v1/nodes", body).await.is(400);
    // One that an earlier version made available.
    let unrecorded = Node { basis: None, ..api.store_node(&node).await };
    api.update(unrecorded).await;
    assert_eq!(basis("/v1/nodes?fields=anneal_basis").await, json!("not-recorded"));
    api.node("m", ProvisionState::Manageable).await;
    let other = api.get("/v1/nodes/m?fields=anneal_basis").await.is(200).body;
    assert_eq!(other["anneal_basis"], json!(null));
}

/// The conductor waits for a change that may be the one it needs. What only describes a node at rest is none: each would have
/// the BMC asked.
#[tokio::test]
async fn a_patch_wakes_the_conductor_if_it_may_matter() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let path = format!("/v1/nodes/{}", node.uuid);
    let wakes = async |field: &str, value: &str| {
        let patch = json!([{"op": "add", "path": field, "value": value}]);
        let before = api.store.node(node.uuid).await.unwrap();
        api.patch(&path, patch).await.is(200);
        let after = api.store.node(node.uuid).await.unwrap();
        assert_ne!(after.version, before.version, "it is stored");
        after.next_wake_at != before.next_wake_at
    };
    assert!(!wakes("/extra/rack", "7").await);
    assert!(!wakes("/description", "seven").await);
    assert!(wakes("/driver_info/fake_power", "7").await);
    assert!(wakes("/instance_info/image_source", "http://192.0.2.1/").await);
    let mut busy = api.store.node(node.uuid).await.unwrap();
    busy.target_power_state = Some(model::PowerTarget::On);
    api.store.update_node(busy, Vec::new(), None).await.unwrap();
    assert!(wakes("/extra/rack", "8").await, "it is not at rest");
}
