//! The generic manager behind the protocol keeps its rules, as any other.

use hwm_conformance::{Plan, Rule, examine};
use serde_json::Map;

#[test]
fn the_generic_manager_keeps_every_rule_of_the_protocol() {
    // It is given no disk, and so may run everything.
    let mut plan = Plan::new(vec![env!("CARGO_BIN_EXE_hwm-generic").into()]);
    plan.in_tree = true;
    for step in ["erase_devices", "erase_devices_metadata"] {
        plan.runs.insert(step.into(), Map::new());
    }
    let report = examine(&plan).expect("starts");
    assert!(report.passed(), "{report}");
    // It erases disks by its step, asks the agent for nothing, and saves nothing.
    let unseen: Vec<Rule> = report.unseen().collect();
    let expected = [Rule::ResultSchema, Rule::Checkpoint, Rule::Resume, Rule::Erase, Rule::Services];
    assert_eq!(unseen, expected, "{report}");
}
