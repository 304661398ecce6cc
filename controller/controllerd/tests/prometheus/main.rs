//! The metrics, alerts and dashboard, with Debian's Prometheus and promtool.

mod access;
mod controller;
mod faults;
mod redfish;
mod server;

use controller::{Controller, eventually};
use faults::SmallDisk;
use serde_json::Value;
use server::{Prometheus, promtool, shipped};
use std::collections::BTreeSet;

const NOAUTH: &str = "auth_strategy = \"noauth\"";

#[test]
fn promtool_accepts_the_rules_and_their_tests() {
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]] {
        let output = promtool(&arguments, None);
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}

/// The alerts of the shipped file.
fn alerts() -> BTreeSet<String> {
    let text = std::fs::read_to_string(shipped("alerts.yml")).unwrap();
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    named.map(str::to_owned).collect()
}

/// The queries of the shipped dashboard, with a window that the test fills.
fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(shipped("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "2m")).collect()
}

#[test]
fn each_alert_names_the_command_that_helps_and_is_documented() {
    let text = std::fs::read_to_string(shipped("alerts.yml")).unwrap();
    let helping =
        text.lines().filter(|line| line.contains("description: ") && line.contains("Try: ")).count();
    assert_eq!(helping, alerts().len());
    let page = include_str!("../../../../docs/monitoring.md");
    for alert in alerts() {
        assert!(page.contains(&format!("| `{alert}` |")), "{alert} is not in docs/monitoring.md");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_alert_is_raised_by_its_fault_and_the_dashboard_shows_data() {
    let dir = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(&dir.path().join("state"));
    let mut controller = Controller::start(dir.path(), NOAUTH, "").await;
    let prometheus = Prometheus::start(dir.path(), controller.metrics).await;
    eventually("three scrapes", async || prometheus.evaluated().await == 1).await;
    assert_eq!(prometheus.firing().await, BTreeSet::new(), "nothing is wrong yet");

    let mut raised = BTreeSet::new();
    let mut raises = async |names: &[&str]| {
        for name in names {
            prometheus.raises(name).await;
            raised.insert((*name).to_owned());
        }
    };
    faults::an_unknown_machine_boots(&controller).await;
    raises(&["AnnealUnknownMachineBoots"]).await;
    faults::a_step_fails(&controller).await;
    raises(&["AnnealNodesFailed", "AnnealNodesInMaintenance"]).await;
    faults::a_step_takes_long(&controller).await;
    raises(&["AnnealStepsTakeLong"]).await;
    faults::a_bmc_is_slow(&controller).await;
    raises(&["AnnealNodeStuck"]).await;
    faults::a_bmc_is_gone(&controller).await;
    raises(&["AnnealBmcUnreachable"]).await;
    faults::a_machine_is_broken(&controller).await;
    raises(&["AnnealHardwareHealth"]).await;
    faults::an_agent_is_unreachable(&controller).await;
    raises(&["AnnealAgentUnreachable", "AnnealHeartbeatsRefused"]).await;
    faults::nodes_wait_for_their_turn(&controller).await;
    raises(&["AnnealPassesWait"]).await;

    for query in queries() {
        eventually(&format!("data for {query}"), async || prometheus.found(&query).await > 0).await;
    }
    let text = controller.scrape().await;
    accepted(&text);
    documented(&text);
    let failed = "anneal_steps_total{kind=\"clean\",step=\"management.fake_fail\",outcome=\"failed\"} 1\n";
    assert!(text.contains(failed), "{text}");
    let nodes = controller.call("GET", "/v1/nodes", Value::Null).await;
    for node in nodes["nodes"].as_array().unwrap() {
        assert!(!text.contains(node["uuid"].as_str().unwrap()), "a node is in a label");
    }
    assert!(!text.contains("secret-"), "the name of a node is in a label");

    disk.is_full(&controller).await;
    raises(&["AnnealStoreFailures", "AnnealApiFailures"]).await;
    controller.kill();
    raises(&["AnnealControllerDown"]).await;
    assert_eq!(raised, alerts(), "every alert was raised");
}

/// The page names each metric, and no other.
fn documented(text: &str) {
    let page = include_str!("../../../../docs/monitoring.md");
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let written: BTreeSet<&str> = types.collect();
    let rows = page.lines().filter(|line| line.starts_with("| `anneal_") || line.starts_with("| `process_"));
    let named: BTreeSet<&str> = rows
        .flat_map(|row| row.split(" | ").next().unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();
    assert_eq!(named, written);
}

/// What promtool says of metrics: nothing.
fn accepted(text: &str) {
    let output = promtool(&["check", "metrics"], Some(text));
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}
