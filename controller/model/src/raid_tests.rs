use super::*;
use crate::time::Timestamp;
use serde_json::json;
use uuid::Uuid;

const AT: &str = "2026-11-22 05:10:57.123456";

fn step(name: &str, given: Value) -> PlannedStep {
    let step = json!({"interface": "raid", "step": name, "priority": 0, "given": given});
    serde_json::from_value(step).unwrap()
}

fn node() -> Node {
    let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    node.other.insert(TARGET.into(), json!({"logical_disks": [disk(true), disk(false)]}));
    node.properties.insert("capabilities".into(), "boot_mode:uefi,raid_level:5".into());
    node.properties.insert("local_gb".into(), 7.into());
    node
}

fn disk(root: bool) -> Value {
    let mut disk = json!({"raid_level": if root { "1" } else { "0" }, "size_gb": 100});
    if root {
        disk["is_root_volume"] = true.into();
    }
    disk
}

#[test]
fn configurations() {
    let check = |config: Value| check(config.as_object().unwrap());
    let disk = |more: Value| {
        let mut disk = json!({"raid_level": "1", "size_gb": 100});
        disk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"logical_disks": [disk]})
    };
    for sound in [
        disk(json!({})),
        disk(json!({"size_gb": "MAX", "is_root_volume": true, "disk_type": "ssd", "interface_type": "sas"})),
        disk(json!({"controller": "c", "physical_disks": ["a"], "number_of_physical_disks": 2})),
        disk(json!({"controller": "software", "physical_disks": [{"size": "> 100"}, {"size": "> 100"}]})),
    ] {
        assert_eq!(check(sound.clone()), Ok(()), "{sound}");
    }
    let root = json!({"raid_level": "1", "size_gb": 1, "is_root_volume": true});
    for (bad, says) in [
        (json!({"disks": []}), "'logical_disks' is a required property"),
        (json!({"logical_disks": [], "x": 1}), "'x' was unexpected"),
        (json!({"logical_disks": []}), "should be non-empty"),
        (json!({"logical_disks": [3]}), "not of type 'object'"),
        (json!({"logical_disks": [{"raid_level": "1"}]}), "'size_gb' is a required"),
        (json!({"logical_disks": [root, root]}), "2 root volumes"),
        (disk(json!({"raid_level": "7"})), "'7' is not a valid raid_level"),
        (disk(json!({"size_gb": -1})), "size_gb"),
        (disk(json!({"number_of_physical_disks": 0})), "number_of"),
        (disk(json!({"physical_disks": ["a"]})), "'controller' is a dependency"),
        (disk(json!({"physical_disks": [{}], "controller": "c"})), "physical_disks"),
        (disk(json!({"controller": {"password": "hunter2"}})), "an object is not a valid controller"),
        (disk(json!({"colour": "red"})), "'colour' was unexpected"),
    ] {
        let why = check(bad.clone()).unwrap_err();
        assert!(why.contains(says), "{bad}: {why}");
    }
}

#[test]
fn flags_leave_out_what_is_not_to_be_made() {
    let wanted = |node: &Node, given: Value| wanted(node, &step("create_configuration", given));
    let disks = |given: Value| wanted(&node(), given).unwrap().unwrap()["logical_disks"].clone();
    assert_eq!(disks(json!({})), json!([disk(true), disk(false)]));
    assert_eq!(disks(json!({"create_root_volume": false})), json!([disk(false)]));
    assert_eq!(
        disks(json!({"create_nonroot_volumes": false, "create_root_volume": true})),
        json!([disk(true)])
    );
    let nothing = json!({"create_root_volume": false, "create_nonroot_volumes": false});
    let why = wanted(&node(), nothing).unwrap_err();
    assert!(why.ends_with("after skipping root volume and skipping non-root volumes."), "{why}");
    assert!(wanted(&node(), json!({"create_root_volume": "no"})).unwrap_err().contains("true or false"));
    let bare = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    let why = wanted(&bare, json!({})).unwrap_err();
    assert_eq!(why, format!("Node {} has no target RAID configuration.", Uuid::nil()));

    // A manager that takes the configuration as an argument needs no target, and steps of the controller take theirs.
    let mut own = step("create_configuration", json!({}));
    own.step.args.insert("raid_config".into(), serde_json::from_value(json!({})).unwrap());
    assert_eq!(super::wanted(&bare, &own), Ok(None));
    let mut outside = step("create_configuration", json!({}));
    outside.step.in_band = false;
    assert_eq!(super::wanted(&bare, &outside), Ok(None));
    assert_eq!(super::wanted(&bare, &step("delete_configuration", json!({}))), Ok(None));
}

#[test]
fn an_argument_that_is_no_configuration_is_refused() {
    let applied = |given: Value| wanted(&node(), &step("apply_configuration", given));
    assert_eq!(applied(json!({"raid_config": {"logical_disks": [disk(true)]}})), Ok(None));
    for bad in [json!({}), json!({"raid_config": []}), json!({"raid_config": {"logical_disks": []}})] {
        assert!(applied(bad).unwrap_err().starts_with("RAID config validation error: "));
    }
}

#[test]
fn what_was_made_is_written_down_with_the_root_volume() {
    let mut made = node();
    let hint = json!({"wwn": "0x600508b1001c1"});
    let reported = json!({"logical_disks": [
        {"raid_level": "1+0", "size_gb": 930, "is_root_volume": true, "root_device_hint": hint, "id": "3"},
        {"raid_level": "0", "size_gb": "MAX"},
    ]});
    record_result(&mut made, &step("create_configuration", json!({})), &reported, AT).unwrap();
    let mut expected = reported.clone();
    expected["last_updated"] = AT.into();
    assert_eq!(made.other[CURRENT], expected);
    assert_eq!(
        Value::Object(made.properties.clone()),
        json!({"local_gb": 930, "root_device": hint, "capabilities": "boot_mode:uefi,raid_level:1+0"})
    );

    // MAX says no size, no hint leaves the one before, and without a root volume nothing is said of it.
    let rest = json!({"logical_disks": [{"raid_level": "0", "size_gb": "MAX", "is_root_volume": true}]});
    record_result(&mut made, &step("apply_configuration", json!({})), &rest, AT).unwrap();
    assert_eq!(made.properties["local_gb"], 930);
    assert_eq!(made.properties["root_device"], hint);
    assert_eq!(made.properties["capabilities"], "boot_mode:uefi,raid_level:0");
    let before = made.properties.clone();
    record_result(&mut made, &step("apply_configuration", json!({})), &json!({"logical_disks": []}), AT)
        .unwrap();
    assert_eq!((&made.properties, &made.other[CURRENT]["logical_disks"]), (&before, &json!([])));

    record_result(&mut made, &step("delete_configuration", json!({})), &Value::Null, AT).unwrap();
    assert_eq!((made.other.get(CURRENT), made.properties.get("root_device")), (None, None));
    assert_eq!(made.properties["local_gb"], 930);
    assert!(made.other.contains_key(TARGET));
}

#[test]
fn a_result_that_reports_nothing_changes_nothing() {
    let root = |more: Value| {
        let mut disk = json!({"raid_level": "1", "size_gb": 5, "is_root_volume": true});
        disk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"logical_disks": [disk]})
    };
    let mut odd = node();
    odd.properties.insert("capabilities".into(), "boot_mode".into());
    for (before, reported, expected) in [
        (node(), Value::Null, "has no list \"logical_disks\""),
        (node(), json!({}), "has no list \"logical_disks\""),
        (node(), json!("done"), "has no list \"logical_disks\""),
        (node(), json!({"logical_disks": {}}), "has no list \"logical_disks\""),
        (node(), json!({"logical_disks": ["c0v1"]}), "a logical disk that is none: 'c0v1'"),
        (node(), json!({"logical_disks": [disk(true), disk(true)]}), "2 root volumes"),
        (node(), root(json!({"size_gb": -5})), "whose size_gb is -5"),
        (node(), root(json!({"raid_level": null})), "whose raid_level is null"),
        (node(), root(json!({"root_device_hint": "/dev/sda"})), "whose root_device_hint is '/dev/sda'"),
        (odd, root(json!({})), "while properties/capabilities of the node are 'boot_mode'"),
    ] {
        let mut after = before.clone();
        let why =
            record_result(&mut after, &step("create_configuration", json!({})), &reported, AT).unwrap_err();
        assert!(why.contains(expected), "{reported}: {why}");
        assert_eq!(after, before, "{reported}");
    }
    let mut other = node();
    let mut step = step("create_configuration", json!({}));
    step.step.interface = "deploy".into();
    record_result(&mut other, &step, &Value::Null, AT).unwrap();
    assert_eq!(other, node());
}
