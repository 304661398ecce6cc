//! The manager keeps the rules of `PROTOCOL.md`, also with steps that destroy.

use crate::rig::Rig;
use hwm_conformance::{Plan, Rule, examine};
use serde_json::{Value, json};

#[test]
fn the_manager_keeps_every_rule_that_it_has_to_do_with() {
    let rig = Rig::new();
    let program = env!("CARGO_BIN_EXE_hwm-raidtool").to_owned();
    let mut plan = Plan::new(vec![program, rig.tool().display().to_string()]);
    // A machine that is busy with other tests is not what is examined.
    plan.deadlines.hello *= 5;
    plan.deadlines.detect *= 5;
    plan.deadlines.steps *= 5;
    let volumes = json!({"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]});
    for (step, args) in [
        ("apply_configuration", json!({"raid_config": volumes, "delete_existing": true})),
        ("delete_configuration", json!({})),
        ("apply_controller_settings", json!({"settings": [{"name": "c0.patrol_read", "value": "off"}]})),
    ] {
        let Value::Object(args) = args else { unreachable!("written above") };
        plan.runs.insert(step.to_owned(), args);
    }
    let report = examine(&plan).expect("starts");
    assert!(report.passed(), "{report}");
    // It erases no disk and asks the agent for nothing.
    assert_eq!(report.unseen().collect::<Vec<_>>(), [Rule::Erase, Rule::Services], "{report}");
}
