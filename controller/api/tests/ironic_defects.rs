//! Defects of the real Ironic that live in its API (05-experiments): none of them is ours.

use crate::common::Api;
use model::{ProvisionState, Timestamp};
use serde_json::{Value, json};

/// Experiment 6: Ironic answers 500 to steps without `step` or `interface` and to steps that are texts.
#[tokio::test]
async fn defect_6_malformed_steps_are_400_and_named() {
    let api = Api::new();
    for (verb, state, field) in [
        ("clean", ProvisionState::Manageable, "clean_steps"),
        ("service", ProvisionState::Active, "service_steps"),
        ("active", ProvisionState::Available, "deploy_steps"),
        ("rebuild", ProvisionState::Active, "deploy_steps"),
    ] {
        let name = format!("{verb}-{field}");
        api.node(&name, state).await;
        let before = api.everything().await;
        for (step, says) in [
            (json!({"interface": "deploy"}), "'step' is a required property"),
            (json!({"step": "x"}), "'interface' is a required property"),
            (json!({}), "is a required property"),
            (json!("x"), "'x' is not of type 'object'"),
            (json!(5), "5 is not of type 'object'"),
            (json!(null), "None is not of type 'object'"),
            (json!(["interface", "step"]), "is not of type 'object'"),
        ] {
            let body = json!({"target": verb, field: [step]});
            let fault =
                api.put(&format!("/v1/nodes/{name}/states/provision"), body.clone()).await.is(400).fault();
            assert!(
                fault.starts_with(&format!("Invalid {field}: ")) && fault.contains(says),
                "{body}: {fault}"
            );
        }
        assert_eq!(api.everything().await, before);
    }
}

/// Experiment 7: Ironic answers 500 "type object 'Node' has no attribute 'nosuch'".
#[tokio::test]
async fn defect_7_unknown_fields_are_400_and_named() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    api.port(&node, "52:54:00:aa:bb:01").await;
    let steps = json!([{"interface": "bios", "step": "x", "args": {}, "priority": 1}]);
    api.post("/v1/deploy_templates", json!({"name": "CUSTOM_A", "steps": steps})).await.is(201);
    for path in [
        "/v1/nodes",
        "/v1/nodes/n",
        "/v1/ports",
        "/v1/nodes/n/ports",
        "/v1/deploy_templates",
        "/v1/deploy_templates/CUSTOM_A",
    ] {
        for fields in ["nosuch", "uuid,nosuch", "NOSUCH", "__class__"] {
            let fault = api.get(&format!("{path}?fields={fields}")).await.is(400).fault();
            let unknown = fields.rsplit(',').next().unwrap().to_lowercase();
            assert!(fault.contains(&unknown), "{path} {fields}: {fault}");
        }
    }
}

/// Experiment 8: some rebuilds are 500 "cannot access local variable 'auto_lessee'".
#[tokio::test]
async fn defect_8_a_rebuild_is_taken_or_refused_and_never_500() {
    let steps = json!([{"interface": "deploy", "step": "erase", "args": {}, "priority": 10}]);
    for state in ProvisionState::ALL {
        for instance_info in
            [json!({}), json!({"image_source": "http://192.0.2.1/i", "image_type": "whole-disk"})]
        {
            for extra in
                [json!({}), json!({"deploy_steps": steps}), json!({"configdrive": {"meta_data": {}}})]
            {
                let api = Api::new();
                let node = api
                    .node_with("n", state, |node| {
                        node.instance_info = instance_info.as_object().unwrap().clone()
                    })
                    .await;
                let mut body = extra;
                body["target"] = json!("rebuild");
                let answer = api.put("/v1/nodes/n/states/provision", body.clone()).await;
                // 01-state-machine.md: active, error, deploy failed.
                let takes = matches!(
                    state,
                    ProvisionState::Active | ProvisionState::Error | ProvisionState::DeployFail
                );
                let context = format!("{state:?} {body}: {} {}", answer.status, answer.text);
                let after = api.store.node(node.uuid).await.unwrap();
                if takes {
                    assert_eq!(answer.status, 202, "{context}");
                    assert_eq!(after.provision_state, ProvisionState::Deploying, "{context}");
                } else {
                    assert!(matches!(answer.status, 400 | 409), "{context}");
                    assert_eq!(after, node, "{context}");
                }
            }
        }
    }
}

/// Experiment 13: in `cleaning` an abort and a patch are 409, which clients take for "ask again": the state lasts
/// for one action of the conductor. The abort that is asked for again in `clean wait` is taken.
#[tokio::test]
async fn defect_13_an_abort_and_a_patch_in_cleaning_are_409_until_it_waits() {
    let api = Api::new();
    for (state, waits) in [
        (ProvisionState::Cleaning, ProvisionState::CleanWait),
        (ProvisionState::Servicing, ProvisionState::ServiceWait),
        (ProvisionState::Deploying, ProvisionState::DeployWait),
        (ProvisionState::Inspecting, ProvisionState::InspectWait),
        (ProvisionState::Rescuing, ProvisionState::RescueWait),
    ] {
        let name = state.as_str();
        let node = api.node(name, state).await;
        let path = format!("/v1/nodes/{name}/states/provision");
        let patch = json!([{"op": "add", "path": "/extra/a", "value": 1}]);
        for (lease, host) in [(false, "probe-conductor"), (true, "other-host")] {
            if lease {
                let until = Timestamp(i64::MAX);
                api.store.take_lease(node.uuid, host, Timestamp(0), until).await.unwrap().unwrap();
            }
            let fault = api.put(&path, json!({"target": "abort"})).await.is(409).fault();
            let says = format!("Node {} is locked by host {host}, please retry", node.uuid);
            assert!(fault.starts_with(&says), "{fault}");
            api.patch(&format!("/v1/nodes/{name}"), patch.clone()).await.is(409);
            assert_eq!(api.store.node(node.uuid).await.unwrap(), node);
        }
        let mut waiting = node;
        waiting.enter(waits, None, Timestamp(1));
        api.store.update_node(waiting, Vec::new(), None).await.unwrap();
        api.put(&path, json!({"target": "abort"})).await.is(202);
    }
    // Where there is nothing to abort, asking again would not help.
    for state in [ProvisionState::Verifying, ProvisionState::Deleting, ProvisionState::Manageable] {
        api.node(state.as_str(), state).await;
        let path = format!("/v1/nodes/{}/states/provision", state.as_str());
        api.put(&path, json!({"target": "abort"})).await.is(400);
    }
}

/// Experiment 24: `PATCH remove /retired` makes it null in Ironic.
#[tokio::test]
async fn defect_24_a_flag_that_is_removed_is_false() {
    let api = Api::new();
    api.node_with("n", ProvisionState::Active, |node| {
        (node.retired, node.protected, node.maintenance) = (true, true, true);
        node.retired_reason = Some("old".into());
    })
    .await;
    for flag in ["retired", "protected", "maintenance"] {
        for patch in [
            json!({"op": "remove", "path": format!("/{flag}")}),
            json!({"op": "replace", "path": format!("/{flag}"), "value": null}),
        ] {
            api.patch("/v1/nodes/n", json!([{"op": "add", "path": format!("/{flag}"), "value": true}]))
                .await
                .is(200);
            let shown = api.patch("/v1/nodes/n", json!([patch])).await.is(200).body;
            assert_eq!(shown[flag], json!(false), "{patch}");
            assert_eq!(shown.get(format!("{flag}_reason")), Some(&Value::Null), "{patch}");
        }
    }
    let found = |query: &'static str| {
        let api = &api;
        async move { api.get(&format!("/v1/nodes?{query}")).await.is(200).body["nodes"].as_array().unwrap().len() }
    };
    assert_eq!((found("retired=False").await, found("retired=True").await), (1, 0));
}
