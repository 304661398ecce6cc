//! Nouns over collections against the real API: every option writes its field, and every verb does what it says.

use crate::common;
use crate::controller;

use controller::Controller;
use model::ProvisionState;
use serde_json::{Value, json};

/// What is typed for a noun, and what it then has.
struct Case {
    noun: &'static [&'static str],
    create: Vec<&'static str>,
    made: Value,
    set: &'static [&'static str],
    changed: Value,
    unset: &'static [&'static str],
    left: Value,
    /// Words of its row in the list.
    row: &'static [&'static str],
}

/// Whether `whole` has every field of `part` with its value.
#[track_caller]
fn has(whole: &Value, part: &Value) {
    for (key, value) in part.as_object().unwrap() {
        assert_eq!(&whole[key], value, "{key} of {whole}");
    }
}

fn ports_and_chassis() -> [Case; 3] {
    let chassis = Case {
        noun: &["chassis"],
        create: vec!["--description", "rack 1", "--extra", "a=1"],
        made: json!({"description": "rack 1", "extra": {"a": 1}}),
        set: &["--description", "rack 2", "--extra", "b=x"],
        changed: json!({"description": "rack 2", "extra": {"a": 1, "b": "x"}}),
        unset: &["--description", "--extra", "a"],
        left: json!({"description": null, "extra": {"b": "x"}}),
        row: &["-"],
    };
    let port = Case {
        noun: &["port"],
        create: "52-54-00-AA-BB-01 --node n1 --name p1 --pxe-enabled false --port-group g1 --physical-network net1 \
                 --local-link port_id=1 --local-link switch_id=aa --smart-nic false --description d --vendor v \
                 --category c --dynamic-port-group false --extra a=1"
            .split_whitespace()
            .collect(),
        made: json!({"address": "52:54:00:aa:bb:01", "name": "p1", "pxe_enabled": false, "physical_network": "net1",
                     "local_link_connection": {"port_id": "1", "switch_id": "aa"}, "is_smartnic": false, "description": "d",
                     "vendor": "v", "category": "c", "available_for_dynamic_portgroup": false, "extra": {"a": 1}}),
        set: &["--local-link", "port_id=2", "--description", "e"],
        changed: json!({"local_link_connection": {"port_id": "2", "switch_id": "aa"}, "description": "e"}),
        unset: &["--port-group", "--local-link", "switch_id", "--name"],
        left: json!({"portgroup_uuid": null, "local_link_connection": {"port_id": "2"}, "name": null}),
        row: &["52:54:00:aa:bb:01", "false"],
    };
    let group = Case {
        noun: &["port-group"],
        create: "--node n1 --name g2 --mac 52:54:00:aa:bb:99 --mode 802.3ad --property miimon=100 --standalone-ports true \
                 --physical-network net2 --category c --extra a=1"
            .split_whitespace()
            .collect(),
        made: json!({"name": "g2", "address": "52:54:00:aa:bb:99", "mode": "802.3ad", "properties": {"miimon": 100},
                     "standalone_ports_supported": true, "physical_network": "net2", "category": "c", "extra": {"a": 1}}),
        set: &["--mode", "balance-rr", "--property", "xmit=layer2"],
        changed: json!({"mode": "balance-rr", "properties": {"miimon": 100, "xmit": "layer2"}}),
        unset: &["--property", "miimon", "--category"],
        left: json!({"properties": {"xmit": "layer2"}, "category": null}),
        row: &["g2", "52:54:00:aa:bb:99", "balance-rr", "net2"],
    };
    [chassis, port, group]
}

const PRIORITY_STEPS: &str =
    r#"[{"interface": "bios", "step": "apply_configuration", "args": {}, "priority": 150}]"#;
const ORDERED_STEPS: &str =
    r#"[{"interface": "raid", "step": "create_configuration", "args": {}, "order": 1}]"#;
const ACTIONS: &str = r#"[{"op": "set-attribute", "args": {"path": "/extra/a", "value": "1"}}]"#;
const CONDITIONS: &str = r#"[{"op": "eq", "args": {"values": [1, 1]}}]"#;

fn steps_and_rules() -> [Case; 3] {
    let template = Case {
        noun: &["deploy-template"],
        create: vec!["CUSTOM_X", "--steps", PRIORITY_STEPS, "--description", "d", "--extra", "a=1"],
        made: json!({"name": "CUSTOM_X", "description": "d", "extra": {"a": 1}}),
        set: &["--name", "CUSTOM_Y", "--extra", "b=2"],
        changed: json!({"name": "CUSTOM_Y", "extra": {"a": 1, "b": 2}}),
        unset: &["--extra", "a"],
        left: json!({"extra": {"b": 2}}),
        row: &["CUSTOM_Y", "bios.apply_configuration (150)"],
    };
    let runbook = Case {
        noun: &["runbook"],
        create: "rb1 --disable-ramdisk true --public true --description d --extra a=1 --steps"
            .split(' ')
            .chain([ORDERED_STEPS])
            .collect(),
        made: json!({"name": "rb1", "disable_ramdisk": true, "public": true, "description": "d", "extra": {"a": 1}}),
        set: &["--name", "rb2", "--public", "false", "--owner", "p"],
        changed: json!({"name": "rb2", "public": false, "owner": "p"}),
        unset: &["--owner", "--disable-ramdisk"],
        left: json!({"owner": null, "disable_ramdisk": false}),
        row: &["rb2", "raid.create_configuration"],
    };
    let rule = Case {
        noun: &["inspection-rule"],
        create: "--priority 5 --description d --phase main --sensitive false --actions"
            .split(' ')
            .chain([ACTIONS, "--conditions", CONDITIONS])
            .collect(),
        made: json!({"priority": 5, "description": "d", "phase": "main", "sensitive": false,
                     "conditions": serde_json::from_str::<Value>(CONDITIONS).unwrap()}),
        set: &["--priority", "7"],
        changed: json!({"priority": 7}),
        unset: &["--description", "--conditions"],
        left: json!({"description": null, "conditions": []}),
        row: &["7", "set-attribute"],
    };
    [template, runbook, rule]
}

fn volumes_and_allocations() -> [Case; 3] {
    let connector = Case {
        noun: &["volume", "connector"],
        create: "--node n1 --type iqn --connector-id iqn.1 --extra a=1".split(' ').collect(),
        made: json!({"type": "iqn", "connector_id": "iqn.1", "extra": {"a": 1}}),
        set: &["--connector-id", "iqn.2"],
        changed: json!({"connector_id": "iqn.2"}),
        unset: &["--extra", "a"],
        left: json!({"extra": {}}),
        row: &["iqn", "iqn.2"],
    };
    let target = Case {
        noun: &["volume", "target"],
        create: "--node n1 --type iscsi --boot-index 0 --volume-id v1 --property target_lun=1 --property auth_password=0123"
            .split(' ')
            .collect(),
        made: json!({"volume_type": "iscsi", "boot_index": 0, "volume_id": "v1",
                     "properties": {"target_lun": 1, "auth_password": "******"}}),
        set: &["--boot-index", "1"],
        changed: json!({"boot_index": 1}),
        unset: &["--property", "target_lun"],
        left: json!({"properties": {"auth_password": "******"}}),
        row: &["iscsi", "1", "v1"],
    };
    let allocation = Case {
        noun: &["allocation"],
        create: "--resource-class large --name a1 --trait CUSTOM_A --trait CUSTOM_B --candidate-node n1 --owner p --extra a=1"
            .split(' ')
            .collect(),
        made: json!({"resource_class": "large", "name": "a1", "traits": ["CUSTOM_A", "CUSTOM_B"], "owner": "p",
                     "extra": {"a": 1}, "state": "allocating"}),
        set: &["--name", "a2"],
        changed: json!({"name": "a2", "state": "error"}),
        unset: &["--extra", "a"],
        left: json!({"extra": {}}),
        row: &["a2", "error", "large", "p"],
    };
    [connector, target, allocation]
}

#[test]
fn every_noun_is_made_shown_changed_listed_and_removed() {
    let controller = Controller::new();
    let node = controller.with_node("n1", ProvisionState::Enroll).to_string();
    let group = controller.json(&["port-group", "create", "--node", "n1", "--name", "g1"]);
    let cases = ports_and_chassis().into_iter().chain(steps_and_rules()).chain(volumes_and_allocations());
    for Case { noun, create, made, set, changed, unset, left, row } in cases {
        let line = |words: &[&'static str]| [noun, words].concat();
        let new = controller.json(&line(&[&["create"], &create[..]].concat()));
        has(&new, &made);
        if create.contains(&"n1") && noun != ["allocation"] {
            assert_eq!(new["node_uuid"], node.as_str(), "a name is enough");
        }
        if noun == ["port"] {
            assert_eq!(new["portgroup_uuid"], group["uuid"]);
        }
        let uuid: &str = new["uuid"].as_str().unwrap();
        let on = |verb: &'static str, words: &[&'static str]| [noun, &[verb, uuid], words].concat();
        has(&controller.json(&on("set", set)), &changed);
        has(&controller.json(&on("unset", unset)), &left);
        has(&controller.json(&on("show", &[])), &left);
        let (code, out, err) = controller.run(&line(&["list"]));
        assert_eq!(code, 0, "{noun:?}: {err}");
        let found =
            out.lines().find(|line| line.starts_with(uuid)).unwrap_or_else(|| panic!("{noun:?}: {out}"));
        assert!(row.iter().all(|word| found.contains(word)), "{noun:?}: {found}");
        let listed = controller.json(&line(&["list", "--fields", "uuid"]));
        assert!(listed.as_array().unwrap().iter().any(|one| one["uuid"] == uuid), "{noun:?}: {listed}");
        assert_eq!(controller.run(&on("set", &[])).0, 2, "{noun:?}: nothing to change");
        assert_eq!(controller.run(&on("delete", &[])).0, 0);
        assert_eq!(controller.run(&on("show", &[])).0, 1, "{noun:?} is gone");
    }
}

#[test]
fn ports_and_groups_go_by_their_addresses_and_lists_by_their_filters() {
    let controller = Controller::new();
    controller.with_node("n1", ProvisionState::Enroll);
    controller.with_node("n2", ProvisionState::Enroll);
    controller.json(&["port-group", "create", "--node", "n1", "--name", "g1", "--mac", "52:54:00:aa:bb:00"]);
    controller.json(&["port", "create", "52:54:00:aa:bb:01", "--node", "n1", "--port-group", "g1"]);
    controller.json(&["port", "create", "52:54:00:aa:bb:02", "--node", "n2"]);
    let count = |words: &[&str]| controller.json(words).as_array().unwrap().len();
    for (words, expected) in [
        (&["port", "list"][..], 2),
        (&["port", "list", "--node", "n2"], 1),
        (&["port", "list", "--port-group", "g1"], 1),
        (&["port-group", "list", "--node", "n2"], 0),
        (&["port-group", "list", "--node", "n1"], 1),
    ] {
        assert_eq!(count(words), expected, "{words:?}");
    }
    has(&controller.json(&["port-group", "show", "52-54-00-AA-BB-00"]), &json!({"name": "g1"}));
    has(&controller.json(&["port", "set", "52:54:00:aa:bb:02", "--name", "x"]), &json!({"name": "x"}));
    let (code, out, _) = controller.run(&["port", "delete", "52:54:00:AA:BB:02"]);
    assert_eq!((code, out.as_str()), (0, "deleted port 52:54:00:AA:BB:02\n"));
    let (code, _, err) = controller.run(&["port", "show", "52:54:00:aa:bb:02"]);
    assert_eq!(
        (code, err.as_str()),
        (1, "anneal: No port has the MAC address 52:54:00:aa:bb:02. (HTTP 404)\n")
    );
    assert_eq!(controller.run(&["port", "list", "--node", "nowhere"]).0, 1);
}

#[test]
fn traits_of_a_runbook_and_its_use() {
    let controller = Controller::new();
    controller.with_node("n1", ProvisionState::Manageable);
    controller.json(&["runbook", "create", "rb1", "--steps", ORDERED_STEPS]);
    let clean = ["node", "clean", "n1", "--runbook", "rb1"];
    let (code, _, err) = controller.run(&clean);
    assert!(code == 1 && err.contains("no traits configured"), "{err}");
    assert_eq!(controller.run(&["runbook", "trait", "add", "rb1", "CUSTOM_A"]).1, "CUSTOM_A\n");
    assert_eq!(controller.run(&["runbook", "trait", "set", "rb1", "CUSTOM_B"]).1, "CUSTOM_B\n");
    let (code, _, err) = controller.run(&clean);
    assert!(code == 1 && err.contains("has not been approved"), "{err}");
    assert_eq!(controller.run(&["node", "trait", "add", "n1", "CUSTOM_B"]).0, 0);
    let (code, out, err) = controller.run(&clean);
    assert_eq!((code, out.as_str()), (0, "n1: cleaning\n"), "{err}");
    assert_eq!(controller.run(&["runbook", "trait", "remove", "rb1", "--all"]).1, "no traits\n");
    let both = [&clean[..], &["--clean-steps", "[]"]].concat();
    assert_eq!(controller.run(&both).0, 2, "steps, or a runbook");
}

#[test]
fn all_inspection_rules_go_only_when_that_is_meant() {
    let controller = Controller::new();
    for _ in 0..2 {
        controller.json(&["inspection-rule", "create", "--actions", ACTIONS]);
    }
    let (code, _, err) = controller.run(&["inspection-rule", "delete-all"]);
    assert!(code == 2 && err.contains("2 inspection rules are removed") && err.contains("--yes"), "{err}");
    assert_eq!(controller.json(&["inspection-rule", "list"]).as_array().unwrap().len(), 2);
    let (code, out, _) = controller.run(&["inspection-rule", "delete-all", "--yes"]);
    assert_eq!((code, out.as_str()), (0, "deleted 2 inspection rules\n"));
    assert_eq!(controller.json(&["inspection-rule", "list"]), json!([]));
}

#[test]
fn wrong_values_are_not_sent() {
    let server = common::serve(|_, _| (200, json!({})));
    for bad in [
        "port create 52:54:00 --node n1",
        "port create 52:54:00:aa:bb:01",
        "port create 52:54:00:aa:bb:01 --node n1 --pxe-enabled maybe",
        "port create 52:54:00:aa:bb:01 --node n1 --extra a=1 --extra a=2",
        "port set p1",
        "port unset p1 --node",
        "port-group create --name g1",
        "volume target create --node n1 --type iscsi --boot-index first --volume-id v",
        "inspection-rule create --actions {}",
        "inspection-rule create --actions /nonexistent",
        "runbook create rb1 --steps []",
        "allocation set a1 --resource-class x",
    ] {
        let (code, _, err) = server.run(&bad.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 2, "{bad}: {err}");
    }
    assert_eq!(server.lines(), Vec::<String>::new());
}
