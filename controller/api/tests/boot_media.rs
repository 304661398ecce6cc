//! What a verb needs whose run boots the ramdisk, and what `validate` says of that.

use crate::common::Api;
use api::Settings;
use model::fast_track::KeptRamdisk;
use model::{Cursor, Node, ProvisionState, Run, RunKind};
use serde_json::{Value, json};

const PATH: &str = "/v1/nodes/n/states/provision";

/// A node for whose boot medium there are no loaders.
fn without_loaders(node: &mut Node) {
    node.driver = "redfish".to_owned();
    for (interface, name) in
        [("boot", "redfish-virtual-media"), ("rescue", "agent"), ("inspect", "agent"), ("deploy", "fake")]
    {
        node.interfaces.insert(format!("{interface}_interface"), name.to_owned());
    }
    node.extra.insert("medium".to_owned(), json!("none"));
}

fn steps(verb: &str, steps: Value) -> Value {
    json!({"target": verb, format!("{verb}_steps"): steps})
}

#[tokio::test]
async fn a_node_that_cannot_boot_the_ramdisk_is_refused_before_it_is_touched() {
    use ProvisionState::{Active, Available, Manageable};
    let in_band = json!([{"interface": "deploy", "step": "erase_devices"}]);
    for (state, verb, what) in [
        (Active, json!({"target": "rescue", "rescue_password": "correct horse"}), "rescue"),
        (Active, steps("service", in_band.clone()), "boot"),
        (Active, json!({"target": "rebuild"}), "deploy or power"),
        (Available, json!({"target": "active"}), "deploy or power"),
        (Manageable, json!({"target": "provide"}), "boot"),
        (Manageable, json!({"target": "inspect"}), "boot"),
        (Manageable, steps("clean", in_band), "boot"),
    ] {
        let api = Api::demanding_nonce();
        let node = api.node_with("n", state, without_loaders).await;
        let fault = api.put(PATH, verb.clone()).await.is(400).fault();
        assert_eq!(
            fault,
            format!("Failed to validate {what} info for node {}: no loaders", node.uuid),
            "{verb}"
        );
        assert_eq!(api.store_node(&node).await, node, "{verb}");

        let mut sound = node.clone();
        sound.extra.clear();
        api.update(sound).await;
        api.put(PATH, verb).await.is(202);
    }
}

#[tokio::test]
async fn a_verb_that_boots_no_ramdisk_is_not_refused() {
    use ProvisionState::{Active, CleanWait, Manageable, Rescue};
    let reset = json!([{"interface": "management", "step": "reset", "args": {"hard": true}}]);
    let mut disabled = steps("service", json!([{"interface": "deploy", "step": "hold"}]));
    disabled["disable_ramdisk"] = json!(true);
    for (state, verb) in [
        (Active, json!({"target": "deleted"})),
        (Active, disabled),
        (Manageable, steps("clean", reset)),
        (CleanWait, json!({"target": "abort"})),
        (Rescue, json!({"target": "unrescue"})),
    ] {
        let api = Api::demanding_nonce();
        api.node_with("n", state, without_loaders).await;
        api.put(PATH, verb).await.is(202);
    }
    let api = Api::demanding_nonce();
    let uncleaned = |node: &mut Node| {
        without_loaders(node);
        node.automated_clean = Some(false);
    };
    api.node_with("n", Manageable, uncleaned).await;
    api.put(PATH, json!({"target": "provide"})).await.is(202);
}

/// Its agent is used; without an answer the node is booted, and that fails in the run.
#[tokio::test]
async fn a_deployment_in_a_kept_ramdisk_is_not_refused() {
    let api = Api::demanding_nonce();
    let kept = |node: &mut Node| {
        without_loaders(node);
        let at = node.created_at;
        node.run = Some(Run {
            cursor: Cursor::Done,
            ramdisk_kept: Some(KeptRamdisk::Since(at)),
            ..Run::new(RunKind::AutomatedClean, at)
        });
    };
    api.node_with("n", ProvisionState::Available, kept).await;
    api.put(PATH, json!({"target": "active"})).await.is(202);
}

/// A boot by PXE proves nothing: the node would be booted until the time limit of its run.
#[tokio::test]
async fn a_proof_that_the_node_cannot_give_is_named_before_it_is_touched() {
    for (configured, own) in [(true, Value::Null), (false, json!(true)), (false, json!("perhaps"))] {
        let api = Api::having(Settings { require_tpm: configured, ..Settings::default() });
        let by_pxe = |node: &mut Node| {
            without_loaders(node);
            node.interfaces.insert("boot_interface".to_owned(), "ipxe".to_owned());
            node.driver_info.insert("require_tpm".to_owned(), own.clone());
        };
        let node = api.node_with("n", ProvisionState::Active, by_pxe).await;
        let rescue = json!({"target": "rescue", "rescue_password": "correct horse"});
        let fault = api.put(PATH, rescue.clone()).await.is(400).fault();
        assert!(fault.contains("require_tpm"), "{fault}");
        assert_eq!(api.store_node(&node).await, node);
        let judged = api.get("/v1/nodes/n/validate").await.is(200).body["boot"].clone();
        assert_eq!(judged["result"], false, "{judged}");
        assert!(fault.ends_with(judged["reason"].as_str().unwrap()), "{fault}: {judged}");
        api.put(PATH, json!({"target": "deleted"})).await.is(202);
    }
}

/// The setting that accepts agents without a nonce hides no other finding.
#[tokio::test]
async fn validate_judges_the_boot_also_where_agents_need_no_nonce() {
    let api = Api::having(Settings { lookup_without_nonce: true, ..Settings::default() });
    let without_loaders = |node: &mut Node| {
        without_loaders(node);
        node.interfaces.retain(|interface, _| interface == "boot_interface");
    };
    api.node_with("n", ProvisionState::Manageable, without_loaders).await;
    let boot = async |changes: Value| {
        api.patch("/v1/nodes/n", changes).await.is(200);
        let boot = api.get("/v1/nodes/n/validate").await.is(200).body["boot"].clone();
        (boot["result"].clone(), boot["reason"].as_str().unwrap().to_owned())
    };
    let set = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]);
    let says = "lookup_without_nonce is set";
    let without = boot(set("/extra/medium", json!("none"))).await;
    assert_eq!(without, (json!(false), "no loaders".to_owned()));
    let (result, unsigned) = boot(set("/extra/medium", json!("unsigned"))).await;
    assert!(result == true && unsigned.starts_with("identity: a nonce on a boot medium"), "{unsigned}");
    assert!(unsigned.contains(&format!(". agent.{says}")), "{unsigned}");
    let (result, proved) =
        boot(set("/driver_info", json!({"require_tpm": true, "redfish_address": "x"}))).await;
    assert!(result == false && proved.contains("nothing is known of what a boot"), "{proved}");
    let (result, shim) = boot(set("/extra/medium", json!("shim"))).await;
    assert!(result == true && !shim.contains(says), "no agent without a proof takes its place: {shim}");
    let (result, network) = boot(set("/boot_interface", json!("ipxe"))).await;
    assert!(result == false && network.contains("is done for the boot interfaces"), "{network}");
}
