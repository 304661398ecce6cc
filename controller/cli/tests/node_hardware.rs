//! What the BMC of a node is asked by `anneal node …`, and the fields of a node, against the real API.

use crate::controller;

use controller::Controller;
use model::ProvisionState;
use serde_json::{Value, json};

#[test]
fn every_field_of_a_node_is_set_and_unset() {
    let controller = Controller::new();
    controller.with_node("n1", ProvisionState::Enroll);
    let parent = controller.with_node("p1", ProvisionState::Enroll).to_string();
    let chassis = controller.json(&["chassis", "create"]);
    let chassis = chassis["uuid"].as_str().unwrap();
    let instance = "11111111-1111-4111-8111-111111111111";
    let network = r#"{"links": [], "networks": [], "services": []}"#;
    let fields = [
        ("shard", "shard", "s1", json!("s1"), json!(null)),
        ("conductor-group", "conductor_group", "east", json!("east"), json!("")),
        ("chassis", "chassis_uuid", chassis, json!(chassis), json!(null)),
        ("parent-node", "parent_node", "p1", json!(parent), json!(null)),
        ("instance-uuid", "instance_uuid", instance, json!(instance), json!(null)),
        ("instance-name", "instance_name", "web", json!("web"), json!(null)),
        ("network-data", "network_data", network, serde_json::from_str(network).unwrap(), json!({})),
        ("disable-power-off", "disable_power_off", "true", json!(true), json!(false)),
        ("resource-class", "resource_class", "large", json!("large"), json!(null)),
        ("automated-clean", "automated_clean", "false", json!(false), json!(null)),
    ];
    for (option, field, typed, value, empty) in fields {
        let option = format!("--{option}");
        assert_eq!(controller.json(&["node", "set", "n1", &option, typed])[field], value, "{option}");
        if field == "shard" {
            let shards = controller.json(&["shard", "list"]);
            assert!(shards.as_array().unwrap().contains(&json!({"name": "s1", "count": 1})), "{shards}");
        }
        if field == "parent_node" {
            let children = controller.json(&["node", "children", "p1"]);
            assert_eq!(children["children"].as_array().unwrap().len(), 1, "{children}");
        }
        assert_eq!(controller.json(&["node", "unset", "n1", &option])[field], empty, "{option}");
    }
    let info = controller.json(&["node", "set", "n1", "--instance-info", "a=1"]);
    assert_eq!(info["instance_info"], json!({"a": 1}));
    let made = controller.json(&[
        "node",
        "create",
        "--driver",
        "redfish",
        "--shard",
        "s2",
        "--instance-info",
        "b=2",
        "--network-data",
        network,
    ]);
    assert_eq!((&made["shard"], &made["instance_info"]), (&json!("s2"), &json!({"b": 2})));
}

#[test]
fn the_bmc_is_asked_for_what_is_typed() {
    let controller = Controller::new();
    controller.with_node("n1", ProvisionState::Manageable);
    controller.json(&["node", "create", "--driver", "fake-hardware", "--name", "f1"]);
    let run = |words: &[&str]| {
        let (code, out, err) = controller.run(&[&["node"], words].concat());
        assert_eq!(code, 0, "{words:?}: {err}");
        out
    };
    assert_eq!(run(&["boot-device", "supported", "n1"]), "pxe\ndisk\ncdrom\nbios\n");
    assert_eq!(
        run(&["boot-device", "set", "n1", "disk", "--persistent"]),
        "boot_device  disk\npersistent   true\n"
    );
    assert_eq!(run(&["boot-device", "show", "n1"]), "boot_device  disk\npersistent   true\n");
    assert_eq!(run(&["boot-mode", "n1", "uefi"]), "n1: boot mode uefi, secure boot -\n");
    assert_eq!(run(&["secure-boot", "n1", "on"]), "n1: boot mode uefi, secure boot true\n");
    assert!(run(&["bios", "f1"]).contains("\nCores          10\n"), "{}", run(&["bios", "f1"]));
    assert_eq!(run(&["bios", "f1", "Quiet"]), "NAME   VALUE\nQuiet  True\n");
    assert!(run(&["firmware", "n1"]).starts_with("COMPONENT  VERSION  VENDOR  SEEN\n"));
    let lamps = run(&["indicator", "list", "n1"]);
    assert!(lamps.contains("\nled@system     false      blinking, off, on\n"), "{lamps}");
    assert_eq!(run(&["indicator", "show", "n1", "led@system"]), "state  on\n");
    run(&["indicator", "set", "n1", "led@system", "blinking"]);
    run(&["inject-nmi", "n1"]);
    assert!(run(&["virtual-media", "show", "n1"]).contains("cdrom"));
    assert_eq!(
        run(&["virtual-media", "attach", "n1", "--device", "cdrom", "--image", "http://m/x.iso"]),
        "n1: done\n"
    );
    assert_eq!(
        run(&["virtual-media", "detach", "n1", "--device", "cdrom", "--device", "disk"]),
        "n1: done\n"
    );
    run(&["virtual-media", "detach", "n1"]);
    let asked = controller.drivers.requests.lock().unwrap().clone();
    let asked: Vec<_> = asked.into_iter().filter(|(what, _)| !what.starts_with("get_")).collect();
    assert_eq!(
        asked,
        [
            ("set_boot_mode", json!("uefi")),
            ("set_secure_boot_state", json!(true)),
            ("set_indicator_state", json!(["system", "led", "blinking"])),
            ("inject_nmi", Value::Null),
            ("attach_virtual_media", json!(["cdrom", "http://m/x.iso"])),
            ("detach_virtual_media", json!(["cdrom", "disk"])),
            ("detach_virtual_media", json!(null)),
        ]
    );
    let (code, _, err) = controller.run(&["node", "boot-device", "set", "n1", "tape"]);
    assert!(code == 1 && err.contains("Invalid boot device tape"), "{err}");
}

#[test]
fn consoles_conductors_drivers_and_single_events() {
    let controller = Controller::new();
    controller.json(&["node", "create", "--driver", "fake-hardware", "--name", "f1"]);
    for (verb, expected) in [("show", false), ("enable", true), ("disable", false)] {
        assert_eq!(controller.json(&["node", "console", verb, "f1"])["console_enabled"], expected, "{verb}");
    }
    let (code, out, err) = controller.run(&["conductor", "list"]);
    assert!(code == 0 && out.contains("c1           true"), "{out}{err}");
    assert_eq!(controller.json(&["conductor", "show", "c1"])["alive"], true);
    assert_eq!(controller.run(&["conductor", "show", "c2"]).0, 1);
    let (_, out, _) = controller.run(&["driver", "properties", "redfish"]);
    assert_eq!(out, "redfish_address  URL of the BMC. Required.\n");
    assert_eq!(controller.json(&["driver", "show", "redfish"])["name"], "redfish");
    assert!(controller.run(&["driver", "raid-properties", "redfish"]).1.contains("raid_level"));
    let events = controller.json(&["node", "history", "f1"]);
    let uuid = events[0]["uuid"].as_str().unwrap();
    assert_eq!(controller.json(&["node", "history", "f1", "--event", uuid])["uuid"], uuid);
}
