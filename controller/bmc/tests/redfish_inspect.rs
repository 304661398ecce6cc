//! Inspection against Redfish services that report too much, too little, or nonsense.

#[path = "support/service.rs"]
mod service;

use std::time::Duration;

use bmc::{BmcError, Builtin, Drivers, ErrorKind};
use proptest::prelude::*;
use serde_json::{Value, json};
use service::{Answer, Request, Service, answer, ok};

const SYSTEM: &str = "/redfish/v1/Systems/1";

fn system() -> Value {
    json!({"UUID": "38947555-7742-3448-3784-823347823834", "PowerState": "Off",
        "MemorySummary": {"TotalSystemMemoryGiB": 8},
        "Processors": {"@odata.id": "/redfish/v1/Systems/1/Processors"},
        "EthernetInterfaces": {"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces"},
        "Storage": {"@odata.id": "/redfish/v1/Systems/1/Storage"},
        "SimpleStorage": {"@odata.id": "/redfish/v1/Systems/1/SimpleStorage"}})
}

fn links(paths: &[impl AsRef<str>]) -> Value {
    paths.iter().map(|path| json!({"@odata.id": path.as_ref()})).collect()
}

fn members(paths: &[impl AsRef<str>]) -> Answer {
    ok(json!({ "Members": links(paths) }))
}

fn not_found() -> Answer {
    answer("404 Not Found", "", "")
}

async fn inspect(
    behave: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static,
) -> (Result<Value, BmcError>, Service) {
    let service = Service::start(behave).await;
    (ask(&service).await, service)
}

async fn inspect_slowly(
    each: Duration,
    behave: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> (Result<Value, BmcError>, Service) {
    let service = Service::start_slow(each, move |request, _| behave(request)).await;
    (ask(&service).await, service)
}

async fn ask(service: &Service) -> Result<Value, BmcError> {
    let info = json!({"redfish_address": service.address, "redfish_system_id": SYSTEM});
    Builtin::default().inspect("redfish", info.as_object().unwrap(), "n1").await
}

/// The path of a GET, below the system.
fn below(request: &Request) -> &str {
    request.line.strip_prefix("GET /redfish/v1/Systems/1").unwrap_or("elsewhere")
}

fn notes(report: &Value) -> String {
    report["plugin_data"]["redfish"]["notes"].to_string()
}

#[tokio::test]
async fn a_whole_tree_is_read_and_each_resource_once() {
    let (report, service) = inspect(|request, _| match below(request) {
        "" => ok(system()),
        "/Processors" => members(&["/redfish/v1/Systems/1/Processors/CPU1"]),
        "/Processors/CPU1" => ok(json!({"ProcessorType": "CPU", "TotalThreads": 16})),
        // Two pages; the second lists one of the first again.
        "/EthernetInterfaces" => {
            ok(json!({"Members": links(&["/redfish/v1/Systems/1/EthernetInterfaces/1"]),
            "Members@odata.nextLink": "/redfish/v1/Systems/1/EthernetInterfaces?$skip=1"}))
        }
        "/EthernetInterfaces?$skip=1" => members(&[
            "/redfish/v1/Systems/1/EthernetInterfaces/1",
            "/redfish/v1/Systems/1/EthernetInterfaces/2",
        ]),
        "/EthernetInterfaces/1" => ok(json!({"Id": "1", "MACAddress": "52:54:00:00:00:01"})),
        "/EthernetInterfaces/2" => ok(json!({"Id": "2", "MACAddress": "52:54:00:00:00:02"})),
        "/Storage" => members(&["/redfish/v1/Systems/1/Storage/A"]),
        "/Storage/A" => ok(json!({"Drives": links(&["/redfish/v1/Systems/1/Storage/A/Drives/0"])})),
        "/Storage/A/Drives/0" => ok(json!({"Name": "bay 0", "CapacityBytes": 1_000_000})),
        _ => not_found(),
    })
    .await;
    let report = report.unwrap();
    let inventory = &report["inventory"];
    assert_eq!(inventory["cpu"]["count"], 16);
    assert_eq!(inventory["memory"]["physical_mb"], 8192);
    assert_eq!(
        inventory["interfaces"],
        json!([{"name": "1", "mac_address": "52:54:00:00:00:01"}, {"name": "2", "mac_address": "52:54:00:00:00:02"}])
    );
    assert_eq!(inventory["disks"], json!([{"name": "bay 0", "size": 1_000_000}]));
    assert_eq!(inventory["bmc_address"], "127.0.0.1");
    assert_eq!(report["plugin_data"]["redfish"]["system"], SYSTEM);
    assert_eq!(notes(&report), "[]");
    let mut lines: Vec<String> = service.seen().into_iter().map(|request| request.line).collect();
    let all = lines.len();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), all, "{lines:?}");
}

#[tokio::test]
async fn without_drives_the_devices_of_simple_storage_are_reported() {
    let (report, _) = inspect(|request, _| match below(request) {
        "" => ok(system()),
        "/SimpleStorage" => members(&["/redfish/v1/Systems/1/SimpleStorage/1"]),
        "/SimpleStorage/1" => ok(json!({"Devices": [
            {"Name": "SATA Bay 1", "Model": "3000GT8", "CapacityBytes": 8_000_000_000_000_u64},
            {"Name": "SATA Bay 2", "Status": {"State": "Absent"}}]})),
        _ => not_found(),
    })
    .await;
    let report = report.unwrap();
    let expected = json!([{"name": "SATA Bay 1", "model": "3000GT8", "size": 8_000_000_000_000_u64}]);
    assert_eq!(report["inventory"]["disks"], expected);
    // What it links to and does not have.
    for path in ["Processors", "EthernetInterfaces", "Storage"] {
        assert!(notes(&report).contains(&format!("{SYSTEM}/{path}")), "{}", notes(&report));
    }
}

#[tokio::test]
async fn wrong_types_are_left_out_with_a_note() {
    let (report, _) = inspect(|request, _| match below(request) {
        "" => ok(system()),
        "/Processors" => ok(json!({"Members": {"@odata.id": "/redfish/v1/Systems/1/Processors/1"}})),
        "/EthernetInterfaces" => ok(json!({"Members": [7, null, {"@odata.id": 5}, {"@odata.id": "//evil/x"},
            {"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces/list"},
            {"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces/odd"},
            {"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces/broken"}],
            "Members@odata.nextLink": ["x"]})),
        "/EthernetInterfaces/list" => ok(json!([1])),
        "/EthernetInterfaces/odd" => ok(json!({"Id": {"x": 1}, "MACAddress": 5, "Status": "Absent"})),
        "/EthernetInterfaces/broken" => answer("500 Internal Server Error", "", "<html>"),
        "/Storage" => members(&["/redfish/v1/Systems/1/Storage/A"]),
        "/Storage/A" => ok(json!({"Drives": "none"})),
        _ => not_found(),
    })
    .await;
    let report = report.unwrap();
    assert_eq!(report["inventory"]["interfaces"], json!([]));
    assert_eq!(report["inventory"]["disks"], json!([]));
    for words in ["list is not a JSON object", "interface unnamed has no MAC", "broken: it answered 500"] {
        assert!(notes(&report).contains(words), "{words} in {}", notes(&report));
    }
}

#[tokio::test]
async fn a_circle_of_links_is_walked_once() {
    let (report, service) = inspect(|request, _| match below(request) {
        "" => ok(system()),
        "/EthernetInterfaces" => {
            ok(json!({"Members": links(&[SYSTEM, "/redfish/v1/Systems/1/EthernetInterfaces"]),
            "Members@odata.nextLink": "/redfish/v1/Systems/1/EthernetInterfaces"}))
        }
        "/Storage" => members(&["/redfish/v1/Systems/1/Storage"]),
        _ => not_found(),
    })
    .await;
    assert_eq!(report.unwrap()["inventory"]["interfaces"], json!([]));
    assert!(service.seen().len() < 10, "{:?}", service.seen());

    // Pages without end, each another.
    let (report, service) = inspect(|request, before| match below(request) {
        "" => ok(system()),
        path if path.starts_with("/EthernetInterfaces") => {
            let next = format!("/redfish/v1/Systems/1/EthernetInterfaces?page={before}");
            ok(json!({"Members": [], "Members@odata.nextLink": next}))
        }
        _ => not_found(),
    })
    .await;
    assert!(notes(&report.unwrap()).contains("EthernetInterfaces has more than 32 pages"));
    assert!(service.seen().len() < 50);
}

#[tokio::test]
async fn a_list_without_end_is_cut_off() {
    let (report, service) = inspect(|request, before| match below(request) {
        "" => ok(system()),
        "/EthernetInterfaces" => {
            let paths = (0..20_000).map(|n| json!({"@odata.id": format!("{SYSTEM}/EthernetInterfaces/{n}")}));
            ok(json!({ "Members": paths.collect::<Value>() }))
        }
        path if path.starts_with("/EthernetInterfaces/") => {
            let mac = format!("52:54:00:00:{:02x}:{:02x}", before / 256, before % 256);
            ok(json!({"Id": "n".repeat(100_000), "MACAddress": mac}))
        }
        _ => not_found(),
    })
    .await;
    let report = report.unwrap();
    assert_eq!(report["inventory"]["interfaces"].as_array().unwrap().len(), 256);
    assert!(notes(&report).contains("more than 256 EthernetInterfaces"), "{}", notes(&report));
    assert!(report.to_string().len() < 200_000 && service.seen().len() < 300);
}

#[tokio::test]
async fn a_busy_moment_is_an_error_and_no_inventory_without_disks() {
    let (report, _) = inspect(|request, _| match below(request) {
        "" => ok(system()),
        "/Storage" => answer("503 Service Unavailable", "Retry-After: 0\r\n", "busy"),
        _ => not_found(),
    })
    .await;
    let error = report.unwrap_err();
    assert!(
        error.is_retryable() && error.to_string().contains("Systems/1/Storage: it answered 503"),
        "{error}"
    );

    let (report, _) = inspect(|request, _| match below(request) {
        "" => ok(system()),
        "/Storage" => answer("403 Forbidden", "", "{}"),
        _ => not_found(),
    })
    .await;
    assert_eq!(report.unwrap_err().kind(), ErrorKind::Auth);
}

#[tokio::test]
async fn a_resource_that_is_no_computer_system_is_rejected() {
    let (report, _) = inspect(|_, _| ok(json!({"Members": []}))).await;
    let error = report.unwrap_err();
    assert!(error.to_string().contains("/redfish/v1/Systems/1 is not a ComputerSystem"), "{error}");
    let ipmi = json!({"ipmi_address": "127.0.0.1"});
    let error = Builtin::default().inspect("ipmi", ipmi.as_object().unwrap(), "n1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("inspect_interface 'agent'"), "{error}");
}

/// Each answer takes five seconds (of a paused clock), and there are hundreds to wait for.
#[tokio::test(start_paused = true)]
async fn a_service_that_takes_its_time_does_not_take_ours() {
    let started = tokio::time::Instant::now();
    let (report, _) = inspect_slowly(Duration::from_secs(5), |request| match below(request) {
        "" => ok(system()),
        path => members(&(0..200).map(|n| format!("{SYSTEM}{path}/{n}")).collect::<Vec<_>>()),
    })
    .await;
    let error = report.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true), "{error}");
    assert!(error.to_string().contains("not read within 110 s"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(120), "{:?}", started.elapsed());
}

/// JSON made of the words that an inspection looks for, links in all directions included.
fn any_resource() -> impl Strategy<Value = Value> {
    let paths = (0..6).map(|n| Value::from(format!("/redfish/v1/Systems/1/{n}"))).collect::<Vec<_>>();
    let leaf = prop_oneof![
        prop::sample::select(paths.clone()).prop_map(|path| json!({ "@odata.id": path })),
        prop::sample::select(paths),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
        prop::sample::select(vec!["CPU", "Absent", "52:54:00:00:00:01", "/redfish/v1/Systems/1", "//evil"])
            .prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "PowerState",
        "UUID",
        "Processors",
        "EthernetInterfaces",
        "Storage",
        "SimpleStorage",
        "Members",
        "Members@odata.nextLink",
        "Drives",
        "Devices",
        "MemorySummary",
        "MACAddress",
        "@odata.id",
    ]);
    leaf.prop_recursive(3, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..8)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a system's resources are, the inspection ends with an inventory, after few requests.
    #[test]
    fn no_service_makes_an_inspection_panic_or_run_without_end(
        resources in prop::collection::vec((any_resource(), 0..8_u8), 6), system in any_resource()
    ) {
        let link = |n: u8| json!({"@odata.id": format!("{SYSTEM}/{n}")});
        let whole = json!({"UUID": "x", "Processors": link(0), "EthernetInterfaces": link(1), "Storage": link(2),
            "SimpleStorage": link(3), "Boot": system});
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (report, requests) = runtime.block_on(async {
            let (report, service) = inspect(move |request, _| {
                if below(request).is_empty() {
                    return ok(whole.clone());
                }
                let digit = request.line.chars().last().and_then(|c| c.to_digit(10)).unwrap_or(0);
                match &resources[digit as usize % 6] {
                    (_, 0) => not_found(),
                    (_, 1) => answer("500 Internal Server Error", "", "<html>"),
                    (resource, _) => ok(resource.clone()),
                }
            })
            .await;
            (report, service.seen().len())
        });
        prop_assert!(requests < 12, "{requests} requests for 7 resources");
        let report = report.unwrap();
        prop_assert!(report["inventory"]["interfaces"].is_array(), "{report}");
    }
}
