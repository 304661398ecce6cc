//! The example keeps every rule.

use hwm_conformance::{Plan, examine};
use serde_json::{Map, json};

#[test]
fn the_example_keeps_every_rule() {
    let mut plan = Plan::new(vec![env!("CARGO_BIN_EXE_hwm-example-external").into()]);
    plan.runs.insert("set_boot_mode".into(), Map::from_iter([("mode".into(), json!("Bios"))]));
    plan.erases = vec!["/dev/nvme0n1".into()];
    let report = examine(&plan).expect("starts");
    assert!(report.passed() && report.unseen().count() == 0, "{report}");
}

#[test]
fn started_by_hand_it_says_what_it_is() {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_hwm-example-external")).output().expect("runs");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("hwm-conformance"), "{output:?}");
}
