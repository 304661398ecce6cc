//! The redfish driver and answers of real BMCs that sushy, the Redfish library of the OpenStack people, keeps as samples for its own
//! tests: error bodies that ask for more, and settings objects. They are read from its wheel on PyPI.

#[path = "support/call.rs"]
mod call;
#[path = "support/service.rs"]
mod service;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bmc::{Bmc, BootDevice, BootMode, Builtin, Drivers, MediaKind};
use call::Node;
use contract::peers::{Part, Peers};
use model::StepKind;
use serde_json::{Value, json};
use service::{Answer, Request, Service, answer, ok};

const SAMPLES: Part = ("sushy-samples", "sushy==5.14.0", "sushy/tests/unit/json_samples/");

const SYSTEM: &str = "/redfish/v1/Systems/437XR1138R2";
const DRIVES: &str = "/redfish/v1/Managers/BMC/VirtualMedia";
const DRIVE: &str = "/redfish/v1/Managers/BMC/VirtualMedia/CD1";
const INSERT: &str = "/redfish/v1/Managers/BMC/VirtualMedia/CD1/Actions/VirtualMedia.InsertMedia";

fn samples() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let peers = Peers::install(&target.join("peers"), &[]).unwrap();
    peers.part(SAMPLES).unwrap().join(SAMPLES.2)
}

fn sample(name: &str) -> Value {
    let file = samples().join(name);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap()
}

/// The driver for the sample system.
fn driver(service: &Service) -> Arc<dyn Bmc> {
    let info = json!({"redfish_address": service.address, "redfish_system_id": SYSTEM});
    Builtin::default().open("redfish", info.as_object().unwrap(), "n1").unwrap()
}

fn sent(service: &Service, method: &str) -> Vec<Request> {
    let prefix = format!("{method} ");
    service.seen().into_iter().filter(|request| request.line.starts_with(&prefix)).collect()
}

fn missing() -> Answer {
    answer("404 Not Found", "", "")
}

/// A virtual CD drive that refuses the first insertion with this body.
async fn refusing(body: Value) -> Service {
    Service::start(move |request, before| {
        let is_inserted = before > 4;
        match request.line.as_str() {
            line if line == format!("GET {SYSTEM}") => {
                ok(json!({"PowerState": "Off", "VirtualMedia": {"@odata.id": DRIVES}}))
            }
            line if line == format!("GET {DRIVES}") => ok(json!({"Members": [{"@odata.id": DRIVE}]})),
            line if line == format!("GET {DRIVE}") => ok(json!({
                "MediaTypes": ["CD"],
                "Inserted": is_inserted,
                "Image": if is_inserted { Some("http://192.0.2.1/x.iso") } else { None },
                "Actions": {"#VirtualMedia.InsertMedia": {"target": INSERT}},
            })),
            line if line == format!("POST {INSERT}") && before == 3 => {
                answer("400 Bad Request", "Content-Type: application/json\r\n", &body.to_string())
            }
            line if line == format!("POST {INSERT}") => answer("204 No Content", "", ""),
            _ => missing(),
        }
    })
    .await
}

#[tokio::test]
async fn what_an_error_body_asks_for_is_sent_with_the_second_request() {
    let protocol = json!({"TransferProtocolType": "HTTP"});
    let cases = [
        ("transfer_proto_required_error.json", protocol.clone()),
        ("transfer_proto_required_error2.json", protocol.clone()),
        ("transfer_proto_required_error3.json", protocol.clone()),
        ("transfer_proto_required_error4.json", protocol),
        ("transfer_method_required_error.json", json!({"TransferMethod": "Stream"})),
        ("credentials_required_error.json", json!({"UserName": "none", "Password": "none"})),
    ];
    for (name, more) in cases {
        let service = refusing(sample(name)).await;
        let inserted = driver(&service).insert_media(MediaKind::Cdrom, "http://192.0.2.1/x.iso").await;
        inserted.unwrap_or_else(|error| panic!("{name}: {error}"));
        let posts = sent(&service, "POST");
        assert_eq!(posts.len(), 2, "{name}");
        assert_eq!(posts[0].body, json!({"Image": "http://192.0.2.1/x.iso"}), "{name}");
        let mut second = more;
        second["Image"] = json!("http://192.0.2.1/x.iso");
        assert_eq!(posts[1].body, second, "{name}");
    }
}

#[tokio::test]
async fn an_error_has_the_words_of_every_message_of_the_body() {
    let cases: [(&str, &[&str]); 5] = [
        (
            "error.json",
            &[
                "Red for the property IndicatorLED is not in the list",
                "SKU is a read only property",
                "malformed JSON",
            ],
        ),
        ("error_single_ext_info.json", &["See Resolution for information"]),
        ("session_error.json", &["no valid session established"]),
        ("transfer_method_required_error.json", &["'TransferMethod' property which is mandatory"]),
        ("credentials_required_error.json", &["the parameter UserName"]),
    ];
    for (name, words) in cases {
        let body = sample(name).to_string();
        let service = Service::start(move |request, _| match request.line.split_once(' ') {
            Some(("GET", path)) if path == SYSTEM => ok(json!({"PowerState": "On", "Boot": {}})),
            Some(("PATCH", _)) => answer("400 Bad Request", "Content-Type: application/json\r\n", &body),
            _ => missing(),
        })
        .await;
        let error = driver(&service).set_boot_device(BootDevice::Pxe, false, None).await.unwrap_err();
        for words in words {
            assert!(error.to_string().contains(words), "{name}: {error}");
        }
    }
}

/// The sample system with a settings object of another sample.
async fn with_settings(settings: &str, body: &str) -> (Service, String) {
    let mut system = sample("system.json");
    system["@Redfish.Settings"] = sample(settings)["@Redfish.Settings"].clone();
    let object = system["@Redfish.Settings"]["SettingsObject"]["@odata.id"].as_str().unwrap().to_owned();
    let (path, body) = (object.clone(), sample(body));
    let service = Service::start(move |request, _| match request.line.split_once(' ') {
        Some(("GET", asked)) if asked == SYSTEM => ok(system.clone()),
        Some(("GET", asked)) if asked == path => ok(body.clone()),
        Some(("PATCH", _)) => answer("204 No Content", "", ""),
        _ => missing(),
    })
    .await;
    (service, object)
}

#[tokio::test]
async fn a_settings_object_gets_the_properties_that_it_holds() {
    let once = json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"});
    let of = |request: &Request| {
        let path = request.line.split_once(' ').unwrap().1.to_owned();
        (path, request.body["Boot"].clone())
    };

    let (nokia, object) = with_settings("settings-nokia.json", "settings-body-nokia.json").await;
    driver(&nokia).set_boot_device(BootDevice::Cdrom, false, None).await.unwrap();
    let patches = sent(&nokia, "PATCH");
    assert_eq!(patches.iter().map(of).collect::<Vec<_>>(), [(object, once.clone())]);
    assert_eq!(patches[0].header("if-match"), Some("\"1660209630\""), "the tag of the settings object");
    assert_eq!(patches[0].body.get("@Redfish.SettingsApplyTime"), None, "it names no times");

    // It holds the boot order alone.
    let (lenovo, _) = with_settings("settings-lenovo-se450.json", "settings-body-lenovo-se450.json").await;
    driver(&lenovo).set_boot_device(BootDevice::Cdrom, false, None).await.unwrap();
    let patches: Vec<_> = sent(&lenovo, "PATCH").iter().map(of).collect();
    assert_eq!(patches, [(SYSTEM.to_owned(), once.clone())]);

    // It holds the mode, and not the device.
    let body = "settings-body-bootsourceoverridemode-only.json";
    let (split, object) = with_settings("settings-lenovo-se450.json", body).await;
    driver(&split).set_boot_device(BootDevice::Cdrom, false, Some(BootMode::Bios)).await.unwrap();
    let patches = sent(&split, "PATCH");
    let mode = json!({"BootSourceOverrideMode": "Legacy"});
    assert_eq!(patches.iter().map(of).collect::<Vec<_>>(), [(object, mode), (SYSTEM.to_owned(), once)]);
    assert_eq!(patches[0].body["@Redfish.SettingsApplyTime"], json!({"ApplyTime": "OnReset"}));
}

#[tokio::test]
async fn bios_settings_go_to_the_settings_object_of_the_sample() {
    let bios = sample("bios.json");
    let object = bios["@Redfish.Settings"]["SettingsObject"]["@odata.id"].as_str().unwrap().to_owned();
    let settings = sample("bios_settings.json");
    let path = bios["@odata.id"].as_str().unwrap().to_owned();
    let asked_object = object.clone();
    let service = Service::start(move |request, _| match request.line.split_once(' ') {
        Some(("GET", asked)) if asked == SYSTEM => {
            ok(json!({"PowerState": "On", "Bios": {"@odata.id": path}}))
        }
        Some(("GET", asked)) if asked == path => ok(bios.clone()),
        Some(("GET", asked)) if asked == asked_object => ok(settings.clone()),
        Some(("PATCH", _)) => answer("204 No Content", "", ""),
        _ => missing(),
    })
    .await;
    let node = Node::redfish(&service.address, SYSTEM);
    let turbo = json!({"settings": [{"name": "ProcTurboMode", "value": "Never"}]});
    node.done(StepKind::Clean, "bios.apply_configuration", turbo).await;
    let patches = sent(&service, "PATCH");
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0].line, format!("PATCH {object}"));
    assert_eq!(patches[0].body["Attributes"], json!({"ProcTurboMode": "Never"}));
}

#[tokio::test]
async fn drives_are_shown_as_the_samples_have_them() {
    let drives = ["virtual_media.json", "virtual_mediav1_6.json"].map(sample);
    let expected: Vec<Value> = drives
        .iter()
        .map(|drive| {
            json!({"media_types": drive["MediaTypes"], "inserted": drive["Inserted"], "image": drive["Image"]})
        })
        .collect();
    let service = Service::start(move |request, _| match request.line.split_once(' ') {
        Some(("GET", asked)) if asked == SYSTEM => {
            ok(json!({"PowerState": "On", "VirtualMedia": {"@odata.id": DRIVES}}))
        }
        Some(("GET", asked)) if asked == DRIVES => ok(
            json!({"Members": [{"@odata.id": format!("{DRIVES}/0")}, {"@odata.id": format!("{DRIVES}/1")}]}),
        ),
        Some(("GET", asked)) if asked.starts_with(DRIVES) => {
            ok(drives[usize::from(asked.ends_with("/1"))].clone())
        }
        _ => missing(),
    })
    .await;
    let shown = driver(&service).virtual_media().await.unwrap();
    assert_eq!(serde_json::to_value(shown).unwrap(), Value::from(expected));
}
