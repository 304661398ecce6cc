//! Sub-resources of nodes and drivers that reach for the hardware: what the drivers are asked for, what is kept and shown,
//! and what nodes without such hardware are answered, in Ironic's words.

use crate::common::Api;
use model::inventory::Inventory;
use model::{Node, ProvisionState, Timestamp};
use serde_json::{Value, json};

/// A node whose hardware can everything, and one whose cannot.
async fn api_with_nodes() -> (Api, Node, Node) {
    let api = Api::new();
    let able = api
        .node_with("able", ProvisionState::Manageable, |node| {
            node.driver = "redfish".into();
            node.driver_info.insert("redfish_address".into(), "https://bmc".into());
        })
        .await;
    let unable = api.node("unable", ProvisionState::Manageable).await;
    (api, able, unable)
}

fn requests(api: &Api) -> Vec<(&'static str, Value)> {
    std::mem::take(&mut *api.drivers.requests.lock().unwrap())
}

fn unsupported(extension: &str) -> String {
    format!("Driver fake-hardware does not support {extension} (disabled or not implemented).")
}

#[tokio::test]
async fn boot_mode_and_secure_boot_are_set_and_shown() {
    let (api, _, _) = api_with_nodes().await;
    for (what, extension, good, shown, bad, says) in [
        (
            "boot_mode",
            "set_boot_mode",
            json!("uefi"),
            json!("uefi"),
            json!("efi"),
            "Allowed boot modes are: bios, uefi",
        ),
        (
            "secure_boot",
            "set_secure_boot_state",
            json!("on"),
            json!(true),
            json!("perhaps"),
            "Unrecognized value 'perhaps'",
        ),
        (
            "secure_boot",
            "set_secure_boot_state",
            json!(false),
            json!(false),
            Value::Null,
            "Invalid secure_boot None",
        ),
    ] {
        let path = format!("/v1/nodes/able/states/{what}");
        assert_eq!(
            api.at(75, "PUT", &path, Some(json!({"target": good}))).await.is(404).fault(),
            "This endpoint is supported starting with the API version 1.76"
        );
        let answer = api.put(&path, json!({"target": good})).await.is(202);
        assert_eq!(answer.header("location"), Some("http://127.0.0.1:6385/v1/nodes/able/states"));
        assert_eq!(requests(&api), [(extension, shown.clone())]);
        assert_eq!(api.get("/v1/nodes/able/states").await.body[what], shown);
        assert_eq!(api.get("/v1/nodes/able").await.body[what], shown);
        assert!(api.at(74, "GET", "/v1/nodes/able/states", None).await.body.get(what).is_none());

        assert!(api.put(&path, json!({"target": bad})).await.is(400).fault().contains(says));
        api.put(&path, json!({})).await.is(400);
        let refused =
            api.put(&format!("/v1/nodes/unable/states/{what}"), json!({"target": good})).await.is(400);
        assert_eq!(refused.fault(), unsupported(extension));
        assert_eq!(api.get("/v1/nodes/unable").await.body[what], Value::Null);
    }
    let cleaning = api.node("cleaning", ProvisionState::Cleaning).await;
    let fault =
        api.put("/v1/nodes/cleaning/states/boot_mode", json!({"target": "uefi"})).await.is(409).fault();
    assert!(fault.starts_with("Node is in cleaning state."), "{fault}");
    assert_eq!(requests(&api), []);
    drop(cleaning);
}

/// Nothing goes out to the BMC of a node that a conductor works on.
#[tokio::test(start_paused = true)]
async fn a_locked_node_is_left_alone() {
    let (api, able, _) = api_with_nodes().await;
    let until = Timestamp(2_000_000_000_000_000);
    api.store.take_lease(able.uuid, "other-conductor", Timestamp(0), until).await.unwrap();
    for (method, path, body) in [
        ("PUT", "management/boot_device", json!({"boot_device": "pxe"})),
        ("PUT", "states/boot_mode", json!({"target": "uefi"})),
        ("PUT", "states/secure_boot", json!({"target": true})),
        ("PUT", "states/raid", json!({})),
        ("PUT", "management/inject_nmi", json!({})),
        ("PUT", "management/indicators/led@system", json!({"state": "on"})),
        ("POST", "vmedia", json!({"device_type": "cdrom", "image_url": "http://x/y"})),
        ("DELETE", "vmedia", Value::Null),
    ] {
        let body = Some(body).filter(|body| !body.is_null());
        let answer = api.at(115, method, &format!("/v1/nodes/able/{path}"), body).await.is(409);
        assert!(answer.fault().contains("is locked by host other-conductor"), "{path}");
    }
    assert!(requests(&api).iter().all(|(what, _)| what.starts_with("get_")));
}

#[tokio::test]
async fn an_nmi_is_sent() {
    let (api, _, _) = api_with_nodes().await;
    assert_eq!(
        api.at(28, "PUT", "/v1/nodes/able/management/inject_nmi", None).await.is(404).fault(),
        "Resource could not be found."
    );
    api.at(29, "PUT", "/v1/nodes/able/management/inject_nmi", Some(json!({}))).await.is(204);
    assert_eq!(requests(&api), [("inject_nmi", Value::Null)]);
    let fault = api.put("/v1/nodes/unable/management/inject_nmi", json!({})).await.is(400).fault();
    assert_eq!(fault, unsupported("inject_nmi"));
}

#[tokio::test]
async fn indicators() {
    let (api, _, _) = api_with_nodes().await;
    let path = "/v1/nodes/able/management/indicators";
    let list = api.get(path).await.is(200).body;
    assert_eq!(
        list["indicators"][0],
        json!({
            "name": "led@system", "component": "system", "readonly": false, "states": ["blinking", "off", "on"],
            "links": [
                {"href": format!("http://127.0.0.1:6385{path}/led@system"), "rel": "self"},
                {"href": "http://127.0.0.1:6385/nodes/able/management/indicators/led@system", "rel": "bookmark"},
            ],
        })
    );
    assert_eq!(api.get(&format!("{path}/led@system")).await.is(200).body, json!({"state": "on"}));
    requests(&api);
    api.put(&format!("{path}/led@system"), json!({"state": "BLINKING"})).await.is(204);
    assert_eq!(requests(&api).last(), Some(&("set_indicator_state", json!(["system", "led", "blinking"]))));
    for (name, body, says) in [
        ("led", json!({"state": "on"}), "Malformed indicator name \"led\""),
        ("led@moon", json!({"state": "on"}), "Invalid component moon specified."),
        ("lad@system", json!({"state": "on"}), "Invalid indicator lad specified."),
        ("led@system", json!({"state": "green"}), "Invalid indicator state green specified."),
        ("led@system", json!({}), "Missing mandatory parameter: state"),
        ("led-0@chassis", json!({"state": "on"}), "can only be read"),
    ] {
        let fault = api.put(&format!("{path}/{name}"), body).await.is(400).fault();
        assert!(fault.contains(says), "{name}: {fault}");
    }
    assert!(requests(&api).iter().all(|(what, _)| *what != "set_indicator_state"));
    let fault = api.get("/v1/nodes/unable/management/indicators").await.is(400).fault();
    assert_eq!(fault, unsupported("get_supported_indicators"));
}

#[tokio::test]
async fn the_raid_configuration_is_kept_for_the_step_that_makes_it() {
    let (api, _, unable) = api_with_nodes().await;
    let config = json!({"logical_disks": [{"raid_level": "1", "size_gb": "MAX", "is_root_volume": true}]});
    let path = "/v1/nodes/able/states/raid";
    api.put(path, config.clone()).await.is(204);
    assert_eq!(api.get("/v1/nodes/able").await.body["target_raid_config"], config);
    assert_eq!(api.get("/v1/nodes/able/states").await.body["target_raid_config"], config);
    let fault = api.put(path, json!({"logical_disks": [{"raid_level": "7"}]})).await.is(400).fault();
    assert_eq!(fault, "RAID config validation error: 'size_gb' is a required property");
    api.put(path, json!([])).await.is(400);
    assert_eq!(api.get("/v1/nodes/able").await.body["target_raid_config"], config);
    // What a step has made, and what the BMC reports, is kept next to it, and clients cannot write it.
    let made =
        json!({"logical_disks": config["logical_disks"], "last_updated": "2026-11-22 05:10:57.123456"});
    let mut node = api.store.node_by_ident("able").await.unwrap();
    node.other.insert("raid_config".into(), made.clone());
    node.health = Some(model::Health::Warning);
    api.store.update_node(node, Vec::new(), None).await.unwrap();
    for path in ["/v1/nodes/able", "/v1/nodes/able/states"] {
        let shown = api.get(path).await.body;
        assert_eq!((&shown["raid_config"], &shown["target_raid_config"]), (&made, &config), "{path}");
    }
    assert_eq!(api.get("/v1/nodes/able").await.body["health"], "Warning");
    assert_eq!(api.at(108, "GET", "/v1/nodes/able", None).await.body.get("health"), None);
    for field in ["raid_config", "health"] {
        let ops = json!([{"op": "replace", "path": format!("/{field}"), "value": null}]);
        api.patch("/v1/nodes/able", ops).await.is(400);
    }
    api.put(path, json!({})).await.is(204);
    assert_eq!(api.get("/v1/nodes/able").await.body["target_raid_config"], json!({}));

    let mut node = unable;
    node.interfaces.insert("raid_interface".into(), "no-raid".into());
    api.store.update_node(node, Vec::new(), None).await.unwrap();
    let answer = api.put("/v1/nodes/unable/states/raid", config).await.is(404);
    assert_eq!(answer.fault(), unsupported("raid"));

    let path = "/v1/drivers/redfish/raid/logical_disk_properties";
    let properties = api.get(path).await.is(200).body;
    assert_eq!(
        crate::common::keys(&properties),
        [
            "controller",
            "disk_type",
            "interface_type",
            "is_root_volume",
            "number_of_physical_disks",
            "physical_disks",
            "raid_level",
            "share_physical_disks",
            "size_gb",
            "volume_name",
        ]
    );
    api.get("/v1/drivers/nosuch/raid/logical_disk_properties").await.is(404);
}

#[tokio::test]
async fn consoles() {
    let (api, _, _) = api_with_nodes().await;
    let off = json!({"console_enabled": false, "console_info": null});
    for node in ["able", "unable"] {
        assert_eq!(api.get(&format!("/v1/nodes/{node}/states/console")).await.is(200).body, off);
    }
    // `fake` can be switched, `no-console` cannot.
    let path = "/v1/nodes/unable/states/console";
    let answer = api.put(path, json!({"enabled": true})).await.is(202);
    assert_eq!(answer.header("location"), Some(format!("http://127.0.0.1:6385{path}").as_str()));
    assert_eq!(api.get(path).await.is(200).body, json!({"console_enabled": true, "console_info": {}}));
    assert_eq!(api.get("/v1/nodes/unable").await.body["console_enabled"], true);
    let driver = json!([{"op": "replace", "path": "/driver", "value": "redfish"}]);
    let fault = api.patch("/v1/nodes/unable?reset_interfaces=true", driver).await.is(409).fault();
    assert!(fault.contains("can not update the driver while the console is enabled"), "{fault}");
    api.put(path, json!({"enabled": "no"})).await.is(202);
    assert_eq!(api.get(path).await.is(200).body, off);
    api.put(path, json!({})).await.is(400);
    let fault = api.put("/v1/nodes/able/states/console", json!({"enabled": true})).await.is(400).fault();
    assert_eq!(fault, "Driver redfish does not support console (disabled or not implemented).");
}

#[tokio::test]
async fn bios_settings_are_the_bmcs() {
    let (api, able, unable) = api_with_nodes().await;
    let path = "/v1/nodes/unable/bios";
    let list = api.at(40, "GET", path, None).await.is(200).body;
    let pairs: Vec<_> = list["bios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["name"].as_str().unwrap(), &item["value"]))
        .collect();
    assert_eq!(
        pairs,
        [
            ("AdminPassword", &json!("******")),
            ("Asset", &Value::Null),
            ("BootMode", &json!("Uefi")),
            ("Cores", &json!("10")),
            ("Quiet", &json!("True")),
        ]
    );
    assert_eq!(crate::common::keys(&list["bios"][0]), ["created_at", "links", "name", "updated_at", "value"]);
    assert_eq!(list["bios"][2]["links"][0]["href"], "http://127.0.0.1:6385/v1/nodes/unable/bios/BootMode");
    let detail = api.get(&format!("{path}?detail=true")).await.is(200).body;
    assert_eq!(detail["bios"][0].as_object().unwrap().len(), 14);
    let named = api.get(&format!("{path}?fields=name,read_only")).await.is(200).body;
    assert_eq!(
        crate::common::keys(&named["bios"][0]),
        ["created_at", "links", "name", "read_only", "updated_at"]
    );
    api.get(&format!("{path}?fields=colour")).await.is(400);
    api.get(&format!("{path}?fields=name&detail=true")).await.is(400);

    let one = api.at(40, "GET", &format!("{path}/Cores"), None).await.is(200).body;
    assert_eq!(one["Cores"]["value"], "10");
    assert_eq!(one["Cores"].as_object().unwrap().len(), 5);
    assert!(api.get(&format!("{path}/Cores")).await.body["Cores"].get("unique").is_some());
    let fault = api.get(&format!("{path}/Turbo")).await.is(404).fault();
    assert_eq!(fault, format!("Node {} doesn't have a BIOS setting 'Turbo'", unable.uuid));
    // `no-bios`.
    assert_eq!(api.get(&format!("/v1/nodes/{}/bios", able.uuid)).await.is(200).body, json!({"bios": []}));
}

#[tokio::test]
async fn firmware_is_what_the_inspection_found() {
    let (api, able, _) = api_with_nodes().await;
    let path = "/v1/nodes/able/firmware";
    assert_eq!(api.get(path).await.is(200).body, json!({"firmware": []}));
    let inventory = json!({"system_vendor": {"firmware": {"version": "P79 v1.45", "vendor": "ACME"}}});
    let inventory = Inventory {
        inventory,
        plugin_data: Value::Null,
        at: Timestamp(0),
        source: "agent".into(),
        ruled: false,
    };
    api.store.put_inventory(able.uuid, inventory).await.unwrap();
    assert_eq!(
        api.at(113, "GET", path, None).await.is(200).body["firmware"],
        json!([{
            "component": "bios", "current_version": "P79 v1.45", "initial_version": "P79 v1.45",
            "last_version_flashed": null, "created_at": "1970-01-01T00:00:00+00:00", "updated_at": null,
        }])
    );
    assert_eq!(api.get(path).await.is(200).body["firmware"][0]["vendor"], "ACME");
    let fault = api.at(113, "GET", &format!("{path}?fields=vendor"), None).await.is(400).fault();
    assert!(fault.contains("require at least API version 1.114"), "{fault}");
    let some = api.get(&format!("{path}?fields=component,vendor")).await.is(200).body;
    assert_eq!(
        crate::common::keys(&some["firmware"][0]),
        ["component", "created_at", "updated_at", "vendor"]
    );
    api.get(&format!("{path}?fields=colour")).await.is(400);
}

#[tokio::test]
async fn networks_are_noop() {
    let (api, _, _) = api_with_nodes().await;
    let before = api.everything().await;
    let path = "/v1/nodes/able/vifs";
    api.post(path, json!({"id": "v", "anything": 1})).await.is(204);
    assert_eq!(api.get(path).await.is(200).body, json!({"vifs": []}));
    api.delete(&format!("{path}/v")).await.is(204);
    let both = json!({"id": "v", "port_uuid": "p", "portgroup_uuid": "g"});
    api.at(66, "POST", path, Some(both.clone())).await.is(204);
    assert_eq!(
        api.at(67, "POST", path, Some(both)).await.is(400).fault(),
        "Cannot specify both port_uuid and portgroup_uuid"
    );
    for bad in [json!([]), json!({}), json!({"id": 3}), json!({"id": "a b"})] {
        api.post(path, bad).await.is(400);
    }
    assert_eq!(api.everything().await, before);
}

#[tokio::test]
async fn virtual_media() {
    let (api, _, _) = api_with_nodes().await;
    let path = "/v1/nodes/able/vmedia";
    assert_eq!(api.get(path).await.is(200).body[0]["media_types"], json!(["cdrom"]));
    requests(&api);
    api.post(
        path,
        json!({"device_type": "cdrom", "image_url": "HTTPS://x/y.iso", "image_download_source": "http"}),
    )
    .await
    .is(204);
    api.delete(&format!("{path}?device_types=cdrom,floppy")).await.is(204);
    api.delete(path).await.is(204);
    assert_eq!(
        requests(&api),
        [
            ("attach_virtual_media", json!(["cdrom", "HTTPS://x/y.iso"])),
            ("detach_virtual_media", json!(["cdrom", "floppy"])),
            ("detach_virtual_media", Value::Null),
        ]
    );
    for (bad, says) in [
        (json!({}), "'device_type' is a required property"),
        (json!({"device_type": "tape", "image_url": "http://x"}), "'tape' is not one of"),
        (json!({"device_type": "disk", "image_url": "ftp://x"}), "Unsupported or missing URL scheme: ftp"),
        (json!({"device_type": "disk", "image_url": "x"}), "Unsupported or missing URL scheme: "),
        (
            json!({"device_type": "disk", "image_url": "http://x", "password": "p"}),
            "'password' was unexpected",
        ),
        (
            json!({"device_type": "disk", "image_url": "http://x", "image_download_source": "tape"}),
            "'tape' is not one of",
        ),
    ] {
        let fault = api.post(path, bad).await.is(400).fault();
        assert!(fault.contains(says), "{fault}");
    }
    api.delete(&format!("{path}?device_types=tape")).await.is(400);
    assert_eq!(requests(&api), []);
    let fault = api.get("/v1/nodes/unable/vmedia").await.is(400).fault();
    assert_eq!(fault, unsupported("get_virtual_media"));
}

#[tokio::test]
async fn children() {
    let (api, able, _) = api_with_nodes().await;
    let child = api
        .node_with("child", ProvisionState::Enroll, |node| {
            node.other.insert("parent_node".into(), able.uuid.to_string().into());
        })
        .await;
    let href = format!("http://127.0.0.1:6385/v1/nodes/?parent_node={}", able.uuid);
    assert_eq!(
        api.get("/v1/nodes/able/children").await.is(200).body,
        json!({"children": [child.uuid], "links": {"href": href, "rel": "children"}})
    );
    assert_eq!(api.get("/v1/nodes/unable/children").await.is(200).body["children"], json!([]));
}

#[tokio::test]
async fn vendors_add_no_methods() {
    let (api, _, _) = api_with_nodes().await;
    let before = api.everything().await;
    for base in ["/v1/nodes/able/vendor_passthru", "/v1/drivers/redfish/vendor_passthru"] {
        assert_eq!(api.get(&format!("{base}/methods")).await.is(200).body, json!({}));
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let fault =
                api.at(115, method, &format!("{base}?method=send_raw&more=1"), None).await.is(400).fault();
            assert_eq!(fault, "No handler for method send_raw");
        }
        assert_eq!(api.get(base).await.is(400).fault(), "Missing mandatory parameter: method");
    }
    for path in ["/v1/nodes/nosuch/vendor_passthru", "/v1/drivers/nosuch/vendor_passthru"] {
        api.get(&format!("{path}/methods")).await.is(404);
        api.post(&format!("{path}?method=x"), json!({})).await.is(404);
    }
    assert_eq!(api.everything().await, before);
}
