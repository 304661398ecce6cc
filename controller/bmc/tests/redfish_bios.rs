//! BIOS steps against Redfish services as vendors make them.

#[path = "support/call.rs"]
mod call;
#[path = "support/service.rs"]
mod service;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bmc::ErrorKind;
use call::Node;
use model::StepKind;
use serde_json::{Value, json};
use service::{Answer, Request, Service, answer, ok};

const SYSTEM: &str = "/redfish/v1/Systems/1";
const BIOS: &str = "GET /redfish/v1/Systems/1/Bios";
const SETTINGS: &str = "/redfish/v1/Systems/1/Bios/Settings";
const RESET: &str = "POST /redfish/v1/Systems/1/Bios/Actions/Bios.ResetBios";

fn system() -> Answer {
    ok(json!({"PowerState": "On", "Bios": {"@odata.id": "/redfish/v1/Systems/1/Bios"}}))
}

fn bios(attributes: &Value, settings: Value) -> Answer {
    ok(json!({"@odata.id": "/redfish/v1/Systems/1/Bios", "Attributes": attributes,
        "@Redfish.Settings": settings, "Actions": {"#Bios.ResetBios": {
            "target": "/redfish/v1/Systems/1/Bios/Actions/Bios.ResetBios"}}}))
}

fn patches(service: &Service) -> Vec<Request> {
    service.seen().into_iter().filter(|request| request.line.starts_with("PATCH")).collect()
}

fn settings(list: &[(&str, Value)]) -> Value {
    let list: Vec<Value> = list.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({ "settings": list })
}

#[tokio::test]
async fn what_differs_is_written_to_the_settings_object_and_waits_for_the_reboot() {
    let service = Service::start(|request, _| match request.line.as_str() {
        "GET /redfish/v1/Systems/1" => system(),
        BIOS => bios(
            &json!({"BootMode": "Bios", "NumCores": 10, "QuietBoot": true, "AdminPassword": null}),
            json!({"SettingsObject": {"@odata.id": SETTINGS}, "SupportedApplyTimes": ["Immediate", "OnReset"]}),
        ),
        line if line == format!("GET {SETTINGS}") => {
            answer("200 OK", "ETag: \"s7\"\r\n", &json!({"Attributes": {}}).to_string())
        }
        line if line == format!("PATCH {SETTINGS}") => answer("204 No Content", "", ""),
        _ => answer("404 Not Found", "", ""),
    })
    .await;
    let node = Node::redfish(&service.address, SYSTEM);
    let wanted = settings(&[
        ("BootMode", json!("Uefi")),
        ("NumCores", json!(10)),
        ("QuietBoot", json!(false)),
        ("AdminPassword", json!("hunter2")),
    ]);
    let result = node.done(StepKind::Clean, "bios.apply_configuration", wanted).await;
    assert_eq!(
        result,
        json!({"in_force": ["NumCores"], "after_reboot": ["AdminPassword", "BootMode", "QuietBoot"]}),
        "names only: a value may be a password"
    );
    let patches = patches(&service);
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0].header("if-match"), Some("\"s7\""));
    assert_eq!(
        patches[0].body,
        json!({"Attributes": {"BootMode": "Uefi", "QuietBoot": false, "AdminPassword": "hunter2"},
            "@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}})
    );
}

/// The time at which a change is put in force is sent only to services that list it: others reject it.
#[tokio::test]
async fn an_apply_time_is_sent_to_services_that_know_it() {
    for (times, expected) in [
        (json!(["OnReset"]), json!({"ApplyTime": "OnReset"})),
        (json!(["AtMaintenanceWindowStart", "OnReset"]), json!({"ApplyTime": "OnReset"})),
        (json!(["Immediate"]), Value::Null),
        (json!([]), Value::Null),
        (Value::Null, Value::Null),
    ] {
        let service = Service::start(move |request, _| match request.line.as_str() {
            "GET /redfish/v1/Systems/1" => system(),
            BIOS => bios(
                &json!({"BootMode": "Bios"}),
                json!({"SettingsObject": {"@odata.id": SETTINGS}, "SupportedApplyTimes": times}),
            ),
            line if line == format!("GET {SETTINGS}") => ok(json!({"Attributes": {}})),
            line if line == format!("PATCH {SETTINGS}") => answer("204 No Content", "", ""),
            _ => answer("404 Not Found", "", ""),
        })
        .await;
        let node = Node::redfish(&service.address, SYSTEM);
        let wanted = settings(&[("BootMode", json!("Uefi"))]);
        node.done(StepKind::Clean, "bios.apply_configuration", wanted).await;
        let patches = patches(&service);
        assert_eq!(patches.len(), 1);
        assert_eq!(patches[0].body["@Redfish.SettingsApplyTime"], expected);
        assert_eq!(patches[0].body["Attributes"], json!({"BootMode": "Uefi"}));
    }
}

/// A service that has no settings object and puts changes in force at once.
#[tokio::test]
async fn run_again_it_finds_its_work_done() {
    let attributes = Arc::new(Mutex::new(json!({"BootMode": "Bios"})));
    let service = Service::start(move |request, _| match request.line.as_str() {
        "GET /redfish/v1/Systems/1" => system(),
        BIOS => bios(&attributes.lock().unwrap(), Value::Null),
        "PATCH /redfish/v1/Systems/1/Bios" => {
            attributes.lock().unwrap()["BootMode"] = request.body["Attributes"]["BootMode"].clone();
            answer("200 OK", "", "{}")
        }
        _ => answer("404 Not Found", "", ""),
    })
    .await;
    let node = Node::redfish(&service.address, SYSTEM);
    for _ in 0..2 {
        let wanted = settings(&[("BootMode", json!("Uefi"))]);
        let result = node.done(StepKind::Deploy, "bios.apply_configuration", wanted).await;
        assert_eq!(result, json!({"in_force": ["BootMode"], "after_reboot": []}));
    }
    let bodies: Vec<Value> = patches(&service).into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [json!({"Attributes": {"BootMode": "Uefi"}})], "written once");
}

#[tokio::test]
async fn an_unknown_setting_is_named_and_nothing_is_written() {
    let service = Service::start(|request, _| match request.line.as_str() {
        "GET /redfish/v1/Systems/1" => system(),
        BIOS => bios(&json!({"BootMode": "Bios"}), Value::Null),
        _ => answer("200 OK", "", "{}"),
    })
    .await;
    let node = Node::redfish(&service.address, SYSTEM);
    let wanted = settings(&[("BootMode", json!("Uefi")), ("Turbo", json!("hunter2")), ("Boots", json!(1))]);
    let error = node.refused(StepKind::Clean, "bios.apply_configuration", wanted).await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Step, false));
    let text = error.to_string();
    assert!(text.starts_with("clean step bios.apply_configuration: argument settings: "), "{text}");
    assert!(text.contains("Boots, Turbo") && !text.contains("hunter2"), "{text}");
    assert!(patches(&service).is_empty());
}

#[tokio::test]
async fn a_setting_that_the_bmc_rejects_is_reported_in_its_words_without_the_value() {
    let service = Service::start(|request, _| match request.line.as_str() {
        "GET /redfish/v1/Systems/1" => system(),
        BIOS => bios(&json!({"BootMode": "Bios", "AdminPassword": null}), Value::Null),
        RESET => answer("202 Accepted", "Location: /redfish/v1/TaskService/Tasks/5\r\n", "{}"),
        "GET /redfish/v1/TaskService/Tasks/5" => {
            ok(json!({"TaskState": "Exception", "Messages": [{"Message": "The flash is locked."}]}))
        }
        // As BMCs do: they repeat what they refuse.
        _ => answer(
            "400 Bad Request",
            "",
            r#"{"error": {"message": "value hunter2 of BootMode is not allowed"}}"#,
        ),
    })
    .await;
    let node = Node::redfish(&service.address, SYSTEM);
    let wanted = settings(&[("BootMode", json!("Uefi")), ("AdminPassword", json!("hunter2"))]);
    let error = node.refused(StepKind::Service, "bios.apply_configuration", wanted).await;
    let text = error.to_string();
    assert!(text.contains("400") && text.contains("BootMode is not allowed"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let error = node.refused(StepKind::Clean, "bios.factory_reset", json!({})).await;
    assert!(error.to_string().contains("The flash is locked"), "{error}");
    assert_eq!(service.count(RESET), 1);
}

#[tokio::test]
async fn a_service_without_bios_settings_says_so() {
    let service = Service::start(|_, _| ok(json!({"PowerState": "On"}))).await;
    let node = Node::redfish(&service.address, SYSTEM);
    for (label, args) in
        [("bios.apply_configuration", settings(&[("A", json!(1))])), ("bios.factory_reset", json!({}))]
    {
        let error = node.refused(StepKind::Clean, label, args).await;
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    // Nonsense in their place.
    for (bios, words) in [
        (json!({"Attributes": [1]}), "has no Attributes"),
        (
            json!({"Attributes": {"A": 0}, "@Redfish.Settings": {"SettingsObject": {"@odata.id": "//evil/x"}}}),
            "names no settings resource",
        ),
    ] {
        let service = Service::start(move |request, _| match request.line.as_str() {
            "GET /redfish/v1/Systems/1" => system(),
            _ => ok(bios.clone()),
        })
        .await;
        let node = Node::redfish(&service.address, SYSTEM);
        let error =
            node.refused(StepKind::Clean, "bios.apply_configuration", settings(&[("A", json!(1))])).await;
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(patches(&service).is_empty());
    }
}

/// Each answer takes 25 seconds of a paused clock, and the step needs more than two.
#[tokio::test(start_paused = true)]
async fn a_step_is_given_up_after_a_minute() {
    let started = tokio::time::Instant::now();
    let service = Service::start_slow(Duration::from_secs(25), |request, _| match request.line.as_str() {
        "GET /redfish/v1/Systems/1" => system(),
        BIOS => bios(&json!({"BootMode": "Bios"}), Value::Null),
        _ => answer("204 No Content", "", ""),
    })
    .await;
    let node = Node::redfish(&service.address, SYSTEM);
    let error = node.refused(StepKind::Clean, "bios.factory_reset", json!({})).await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Step, true));
    assert_eq!(error.to_string(), "clean step bios.factory_reset has not ended within 60 s");
    assert!(started.elapsed() < Duration::from_secs(65), "{:?}", started.elapsed());
}
