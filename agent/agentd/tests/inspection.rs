//! In-band inspection on loopback: before the lookup, as ironic-python-agent, and never in its way.

use crate::controller;
use crate::life;

use controller::{Controller, Script, UUID};
use life::Life;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const POSTED: &str = "POST /v1/continue_inspection";

fn live(controller: &Controller, flags: &[&str]) -> Life {
    let mut config = life::config(controller, flags);
    config.inspection.as_mut().expect("asked for").first_wait = Duration::from_millis(10);
    Life::start(config, &Arc::default())
}

/// Every path in a value, `inventory.cpu.count`.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    found.insert(at.to_owned());
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(key, value)| paths(value, &format!("{at}.{key}"), found))
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{at}[]"), found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inventory_is_posted_before_the_lookup_in_the_form_of_ipa() {
    let mut controller = Controller::start(Script::default()).await;
    let flags = [
        "--api-url=API",
        "--inspection-callback-url=API/v1/continue_inspection",
        "--inspection-collectors=default,numa-topology,pci-devices,lldp,logs",
        "--collect-lldp",
        "--lldp-timeout=0.1",
    ];
    let life = live(&controller, &flags);
    controller.heartbeat().await;
    assert_eq!(controller.requests()[..3], [POSTED, "GET /", "GET /v1/lookup"]);
    assert!(controller.lookups()[0].ends_with(&format!("&node_uuid={UUID}")), "{:?}", controller.lookups());

    let [ours] = &controller.inspected()[..] else { panic!("posted once") };
    assert_eq!(ours["configuration"]["collectors"], json!(["default", "pci-devices", "lldp", "logs"]));
    assert_eq!(
        ours["anneal"],
        json!({
            "managers": {"ProbeHardwareManager": {"firmware": [{"component": "probe", "current_version": "7"}]}},
            "problems": {"generic_hardware_manager": "sysfs is gone"},
        })
    );
    // The interface of this machine that is none has no neighbours; this machine's PCI functions are listed.
    assert_eq!(ours["lldp_raw"], json!({}));
    let functions = std::fs::read_dir("/sys/bus/pci/devices").map_or(0, Iterator::count);
    assert_eq!(ours["pci_devices"].as_array().map(Vec::len), Some(functions));
    assert_eq!(ours["configuration"]["managers"][1]["name"], "ProbeHardwareManager");
    assert!(ours["logs"].as_str().is_some_and(|logs| logs.starts_with("H4sI")));
    let theirs: Value = serde_json::from_str(include_str!("fixtures/ipa_inspection.json")).expect("fixture");
    let of = |value: &Value| {
        let mut found = BTreeSet::new();
        paths(value, "", &mut found);
        found
    };
    let (ours, theirs) = (of(ours), of(&theirs));
    let missing: Vec<&String> = theirs.difference(&ours).collect();
    let optional = |path: &&&String| {
        // What this inventory has none of; what Ironic asks for by `.get`.
        ["[].client_id", "[].biosdevname", "[].driver", "[].pci_address", ".cpu.socket_count"]
            .iter()
            .any(|end| path.ends_with(end))
            || path.starts_with(".inventory.disks[]")
            || path.starts_with(".inventory.cpu.flags[]")
    };
    let missing: Vec<&&String> = missing.iter().filter(|path| !optional(path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    life.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_inspection_is_tried_five_times_and_then_the_lookup_goes_on() {
    for (answers, posts) in [(vec![503, 409, 500, 503, 503, 503], 5), (vec![503, 400], 2), (vec![500], 2)] {
        let delivered = answers.len() < posts;
        let mut controller = Controller::start(Script { inspections: answers, ..Script::default() }).await;
        // Collectors alone: to the API itself.
        let flags = ["--api-url=API", "--inspection-collectors=default"];
        let life = live(&controller, &flags);
        controller.heartbeat().await;
        assert_eq!(controller.requests().iter().filter(|line| *line == POSTED).count(), posts);
        assert_eq!(controller.lookups()[0].contains("node_uuid"), delivered);
        life.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_with_another_certificate_gets_no_inventory() {
    let mut controller = Controller::start(Script::default()).await;
    let other = Controller::start(Script::default()).await;
    let callback = format!("--inspection-callback-url={}/v1/continue_inspection", other.url);
    let life = live(&controller, &["--api-url=API", &callback]);
    controller.heartbeat().await;
    assert!(other.requests().is_empty(), "something was sent to an unknown controller");
    life.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boot_for_inspection_alone_posts_and_looks_nothing_up() {
    let controller = Controller::start(Script::default()).await;
    let flags = ["--inspection-callback-url=API/v1/continue_inspection"];
    let life = live(&controller, &flags);
    assert!(matches!(life.end().await, Ok(None)));
    assert_eq!(controller.requests(), [POSTED]);
}
