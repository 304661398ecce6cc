//! The redfish driver against a service with the faults that real BMCs have.

#[path = "support/service.rs"]
mod service;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bmc::{Bmc, BmcError, BootDevice, Builtin, Drivers, ErrorKind, PowerState, PowerTarget, Settings};
use serde_json::{Value, json};
use service::{Answer, Request, Service, answer, ok};

const GET_SYSTEM: &str = "GET /redfish/v1/Systems/1";
const RESET: &str = "POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const LOG_IN: &str = "POST /redfish/v1/SessionService/Sessions";

fn system(power: &str) -> Value {
    json!({"PowerState": power, "Actions": {"#ComputerSystem.Reset": {
        "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
        "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart"]}}})
}

fn root() -> Answer {
    ok(json!({"Systems": {"@odata.id": "/redfish/v1/Systems"},
        "Links": {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}}}))
}

fn not_found() -> Answer {
    answer("404 Not Found", "", "")
}

/// Without credentials, one system.
fn open(service: &Service) -> Arc<dyn Bmc> {
    let info = json!({"redfish_address": service.address, "redfish_system_id": "/redfish/v1/Systems/1"});
    Builtin::default().open("redfish", info.as_object().unwrap(), "n1").unwrap()
}

fn open_as(service: &Service, password: &str) -> Arc<dyn Bmc> {
    let info = json!({"redfish_address": service.address, "redfish_system_id": "/redfish/v1/Systems/1",
        "redfish_username": "root", "redfish_password": password});
    Builtin::default().open("redfish", info.as_object().unwrap(), "n1").unwrap()
}

/// What reading the power state gives when the system resource is answered so.
async fn reading(behave: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Result<PowerState, BmcError> {
    let service = Service::start(move |_, before| behave(before)).await;
    open(&service).power_state().await
}

#[tokio::test]
async fn a_request_ends_after_the_time_that_the_site_allows() {
    let service = Service::start_slow(Duration::from_secs(60), |_, _| ok(system("On"))).await;
    let settings = Settings { request_timeout_s: 1, ..Settings::default() };
    let info = json!({"redfish_address": service.address, "redfish_system_id": "/redfish/v1/Systems/1"});
    let drivers = Builtin::new(settings);
    assert_eq!(drivers.longest_request(), Duration::from_secs(1));
    let bmc = drivers.open("redfish", info.as_object().unwrap(), "n1").unwrap();
    let error = bmc.power_state().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("no answer within 1 s"), "{error}");
}

#[tokio::test]
async fn an_expired_session_is_renewed_once_and_shared() {
    let logins = Arc::new(AtomicUsize::new(0));
    let counter = logins.clone();
    let service = Service::start(move |request, _| match request.line.as_str() {
        "GET /redfish/v1/" => root(),
        LOG_IN => {
            assert_eq!(request.body, json!({"UserName": "root", "Password": "hunter2"}));
            let n = counter.fetch_add(1, Ordering::SeqCst) + 1;
            answer("201 Created", &format!("X-Auth-Token: token-{n}\r\n"), "{}")
        }
        // The first session has expired.
        GET_SYSTEM if request.header("x-auth-token") == Some("token-2") => ok(system("On")),
        _ => answer("401 Unauthorized", "", ""),
    })
    .await;
    let bmc = open_as(&service, "hunter2");
    assert_eq!(bmc.power_state().await.unwrap(), PowerState::On);
    // Opened again, as for another node behind the same BMC: no other session is made.
    open_as(&service, "hunter2").verify().await.unwrap();
    assert_eq!(logins.load(Ordering::SeqCst), 2);
}

/// A node that is off has no operating system to ask: a reboot of it is power-on.
#[tokio::test]
async fn a_reboot_of_a_node_that_is_off_switches_it_on() {
    for (power, state, sent) in [
        (PowerTarget::SoftReboot, "Off", "On"),
        (PowerTarget::Reboot, "Off", "On"),
        (PowerTarget::SoftReboot, "On", "GracefulRestart"),
        (PowerTarget::Reboot, "On", "ForceRestart"),
    ] {
        let service = Service::start(move |request, _| match request.line.as_str() {
            GET_SYSTEM => {
                let mut system = system(state);
                system["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] =
                    json!(["On", "ForceOff", "ForceRestart", "GracefulRestart"]);
                ok(system)
            }
            RESET => answer("204 No Content", "", ""),
            _ => not_found(),
        })
        .await;
        open(&service).set_power(power).await.unwrap();
        let resets: Vec<_> = service.seen().into_iter().filter(|request| request.line == RESET).collect();
        assert_eq!(resets.len(), 1, "{power:?} of a node that is {state}");
        assert_eq!(resets[0].body["ResetType"], sent, "{power:?} of a node that is {state}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_and_not_shown() {
    let service = Service::start(|request, _| match request.line.as_str() {
        "GET /redfish/v1/" => root(),
        LOG_IN => answer("401 Unauthorized", "", r#"{"error": {"message": "no hunter3"}}"#),
        _ => not_found(),
    })
    .await;
    let error = open_as(&service, "hunter3").verify().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(!error.is_retryable() && error.to_string().contains("user 'root'"), "{error}");
    assert!(!format!("{error:?} {error}").contains("hunter3"));
    assert_eq!(service.count(LOG_IN), 1, "more would lock the account");
}

/// Some services repeat what was sent to them in their extended error information.
#[tokio::test]
async fn a_password_that_the_bmc_echoes_is_not_shown() {
    let service = Service::start(|request, _| match request.line.as_str() {
        "GET /redfish/v1/" => root(),
        LOG_IN => not_found(),
        _ => answer("400 Bad Request", "", r#"{"error": {"message": "user root with hunter3 may not"}}"#),
    })
    .await;
    let error = open_as(&service, "hunter3").power_state().await.unwrap_err();
    let text = format!("{error:?} {error}");
    assert!(text.contains("may not") && !text.contains("hunter3"), "{text}");
}

#[tokio::test]
async fn without_sessions_basic_is_used() {
    let service = Service::start(|request, _| match request.line.as_str() {
        "GET /redfish/v1/" => root(),
        LOG_IN => answer("405 Method Not Allowed", "", ""),
        GET_SYSTEM if request.header("authorization") == Some("Basic cm9vdDpodW50ZXIy") => ok(system("Off")),
        _ => answer("401 Unauthorized", "", ""),
    })
    .await;
    assert_eq!(open_as(&service, "hunter2").power_state().await.unwrap(), PowerState::Off);
}

#[tokio::test]
async fn transient_faults_are_tried_again() {
    let busy = |before| match before {
        0 => answer("503 Service Unavailable", "Retry-After: 0\r\n", "busy"),
        // The connection breaks without an answer.
        1 => Answer::new(),
        _ => ok(system("On")),
    };
    assert_eq!(reading(busy).await.unwrap(), PowerState::On);
    let error = reading(|_| answer("503 Service Unavailable", "Retry-After: 0\r\n", "")).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("503"), "{error}");
}

#[tokio::test]
async fn an_action_that_may_have_happened_is_not_repeated() {
    let service = Service::start(|request, _| match request.line.as_str() {
        GET_SYSTEM => ok(system("On")),
        _ => Answer::new(),
    })
    .await;
    let error = open(&service).set_power(PowerTarget::Reboot).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Protocol, true), "{error}");
    assert_eq!(service.count(RESET), 1);
}

#[tokio::test]
async fn nonsense_is_an_error_that_names_the_bmc() {
    type Behave = fn(usize) -> Answer;
    let cases: [(Behave, &str); 8] = [
        (|_| answer("200 OK", "", "<html>login</html>"), "not JSON"),
        (|_| answer("200 OK", "", ""), "not JSON"),
        (|_| answer("200 OK", "", "[1, 2]"), "not a JSON object"),
        (|_| b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"PowerState\": \"On\"".to_vec(), "broke"),
        (|_| b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), "broke"),
        (|_| ok(json!({})), "has no PowerState"),
        (|_| ok(json!({"PowerState": ["On"]})), "not a string"),
        (|_| answer("200 OK", "", &"[".repeat(100_000)), "not JSON"),
    ];
    // At once, as each is tried again a few times.
    let readings = cases.map(|(behave, expected)| (tokio::spawn(reading(behave)), expected));
    for (reading, expected) in readings {
        let error = reading.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        let text = error.to_string();
        assert!(text.contains(expected) && text.contains("BMC http://127.0.0.1:"), "{expected}: {text}");
        assert!(text.contains("read the power state") && text.len() < 600, "{text}");
    }
}

/// Where a BMC reports no power state, the controller goes another way than after an error.
#[tokio::test]
async fn a_bmc_that_reports_no_power_state_is_distinguished() {
    let error = reading(|_| ok(json!({"PowerState": null}))).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::NoPowerState, true), "{error}");
    assert!(error.to_string().contains("does not know the PowerState"), "{error}");
}

#[tokio::test]
async fn a_body_without_end_does_not_fill_the_memory() {
    let error = reading(|_| answer("200 OK", "", &" ".repeat(5 << 20))).await.unwrap_err();
    assert!(error.to_string().contains("larger than"), "{error}");
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_only() {
    let service = Service::start(|request, _| match request.line.as_str() {
        GET_SYSTEM => answer("308 Permanent Redirect", "Location: /redfish/v1/Systems/1/\r\n", ""),
        "GET /redfish/v1/Systems/1/" => ok(system("Off")),
        RESET => answer("307 Temporary Redirect", "Location: /moved\r\n", ""),
        "POST /moved" => {
            assert_eq!(request.body, json!({"ResetType": "On"}));
            answer("204 No Content", "", "")
        }
        _ => not_found(),
    })
    .await;
    open(&service).set_power(PowerTarget::On).await.unwrap();
    assert_eq!(service.count("POST /moved"), 1);

    let thief = Service::start(|_, _| ok(system("On"))).await;
    let target =
        format!("Location: {}/redfish/v1/Systems/1\r\n", thief.address.replace("127.0.0.1", "localhost"));
    let error = reading(move |_| answer("302 Found", &target, "")).await.unwrap_err();
    assert!(error.to_string().contains("another service, http://localhost:"), "{error}");
    assert!(thief.seen().is_empty());

    // The same port of another host.
    let elsewhere = Service::start(|request, _| {
        let host = request.header("host").unwrap_or_default().replace("127.0.0.1", "localhost");
        answer("302 Found", &format!("Location: http://{host}/redfish/v1/Systems/2\r\n"), "")
    })
    .await;
    let error = open(&elsewhere).power_state().await.unwrap_err();
    assert!(error.to_string().contains("another service, http://localhost:"), "{error}");
    assert_eq!(elsewhere.count("GET /redfish/v1/Systems/2"), 0);

    let error =
        reading(|_| answer("302 Found", "Location: /redfish/v1/Systems/1\r\n", "")).await.unwrap_err();
    assert!(error.to_string().contains("circle"), "{error}");
}

#[tokio::test]
async fn a_patch_carries_the_etag_and_tries_the_strong_one() {
    let service = Service::start(|request, _| match request.line.as_str() {
        GET_SYSTEM => answer("200 OK", "ETag: W/\"7\"\r\n", &system("On").to_string()),
        _ if request.header("if-match") == Some("\"7\"") => answer("204 No Content", "", ""),
        _ => answer("412 Precondition Failed", "", ""),
    })
    .await;
    open(&service).set_boot_device(BootDevice::Pxe, false, None).await.unwrap();
    let patches: Vec<Request> =
        service.seen().into_iter().filter(|request| request.line.starts_with("PATCH")).collect();
    let tags: Vec<_> = patches.iter().map(|request| request.header("if-match")).collect();
    assert_eq!(tags, [Some("W/\"7\""), Some("\"7\"")]);
    let expected = json!({"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}});
    assert_eq!(patches[1].body, expected);
}

#[tokio::test]
async fn what_was_changed_by_another_is_a_conflict() {
    let service = Service::start(|request, _| match request.line.as_str() {
        GET_SYSTEM => answer("200 OK", "ETag: \"7\"\r\n", &system("On").to_string()),
        _ => answer("412 Precondition Failed", "", r#"{"error": {"message": "etag"}}"#),
    })
    .await;
    let error = open(&service).set_boot_device(BootDevice::Pxe, false, None).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true), "{error}");
}

#[tokio::test]
async fn reset_types_are_asked_of_the_action_info() {
    let service = Service::start(|request, _| match request.line.as_str() {
        GET_SYSTEM => ok(json!({"PowerState": "On", "Actions": {"#ComputerSystem.Reset": {
            "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
            "@Redfish.ActionInfo": "/redfish/v1/Systems/1/ResetActionInfo"}}})),
        "GET /redfish/v1/Systems/1/ResetActionInfo" => {
            ok(json!({"Parameters": [{"Name": "ResetType", "AllowableValues": ["PowerCycle", "ForceOff"]}]}))
        }
        RESET => {
            assert_eq!(request.body, json!({"ResetType": "PowerCycle"}));
            answer("200 OK", "", "")
        }
        _ => not_found(),
    })
    .await;
    open(&service).set_power(PowerTarget::Reboot).await.unwrap();
    assert_eq!(service.count(RESET), 1);
    let error = open(&service).set_power(PowerTarget::SoftOff).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("PowerCycle, ForceOff"), "{error}");
}

#[tokio::test]
async fn a_failed_task_is_reported() {
    let service = Service::start(|request, _| match request.line.as_str() {
        GET_SYSTEM => ok(system("Off")),
        RESET => answer("202 Accepted", "Location: /redfish/v1/TaskService/TaskMonitors/5\r\n", "{}"),
        "GET /redfish/v1/TaskService/TaskMonitors/5" => {
            ok(json!({"TaskState": "Exception", "Messages": [{"Message": "The power supply is missing."}]}))
        }
        _ => not_found(),
    })
    .await;
    let error = open(&service).set_power(PowerTarget::On).await.unwrap_err();
    assert!(error.to_string().contains("power supply is missing"), "{error}");
}

#[tokio::test]
async fn several_systems_are_listed_when_none_is_configured() {
    let service = Service::start(|request, _| match request.line.as_str() {
        "GET /redfish/v1/" => root(),
        "GET /redfish/v1/Systems" => ok(json!({"Members": [
            {"@odata.id": "/redfish/v1/Systems/A"}, {"@odata.id": "/redfish/v1/Systems/B"}]})),
        _ => not_found(),
    })
    .await;
    let info = json!({"redfish_address": service.address});
    let bmc = Builtin::default().open("redfish", info.as_object().unwrap(), "n1").unwrap();
    let error = bmc.verify().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("/redfish/v1/Systems/A, /redfish/v1/Systems/B"), "{error}");
}

#[tokio::test]
async fn a_bmc_that_does_not_listen_is_unreachable() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let info = json!({"redfish_address": gone});
    let bmc = Builtin::default().open("redfish", info.as_object().unwrap(), "n1").unwrap();
    let error = bmc.power_state().await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unreachable, true));
    assert!(error.to_string().contains("refused"), "{error}");
}

/// The file is opened by the first call, so that no node waits for the file of another; and again after a failure.
#[tokio::test]
async fn the_file_of_certificates_is_read_by_the_first_call_and_again_after_a_failure() {
    let service = Service::start(|_, _| ok(system("On"))).await;
    let directory = tempfile::tempdir().unwrap();
    let info = json!({"redfish_address": service.address, "redfish_system_id": "/redfish/v1/Systems/1",
        "redfish_verify_ca": "bmc.pem"});
    let drivers = Builtin::new(Settings { ca_directory: directory.path().to_owned(), ..Settings::default() });
    let bmc = drivers.open("redfish", info.as_object().unwrap(), "n1").unwrap();
    let place = directory.path().join("bmc.pem");
    let faults = [(None, "there is no such file"), (Some("secret"), "it contains no certificate")];
    for (content, why) in faults {
        content.iter().for_each(|text| std::fs::write(&place, text).unwrap());
        let error = bmc.power_state().await.unwrap_err();
        let expected = format!("redfish_verify_ca 'bmc.pem' in the directory of bmc.ca_directory: {why}");
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Config, expected));
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["bmc".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(&place, certificate.pem()).unwrap();
    assert_eq!(bmc.power_state().await, Ok(PowerState::On));
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn a_name_is_resolved_within_the_networks_of_the_site() {
    let service = Service::start(|_, _| ok(system("On"))).await;
    let reading = async |networks: &[&str]| {
        let networks = networks.iter().map(|text| text.parse().unwrap()).collect();
        let drivers = Builtin::new(Settings { networks, ..Settings::default() });
        let address = service.address.replace("127.0.0.1", "localhost");
        let info = json!({"redfish_address": address, "redfish_system_id": "/redfish/v1/Systems/1"});
        drivers.open("redfish", info.as_object().unwrap(), "n1").unwrap().power_state().await
    };
    let error = reading(&["192.0.2.0/24"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(
        error.to_string().contains("localhost has no address in the networks of bmc.networks"),
        "{error}"
    );
    assert_eq!(service.seen().len(), 0);
    assert_eq!(reading(&["127.0.0.0/8", "::1/128"]).await, Ok(PowerState::On));
}

/// As in a container: rustls looks for the CAs of the system where these variables point.
#[test]
fn plain_http_needs_no_certificate_authority() {
    let empty = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "an_expired_session_is_renewed_once_and_shared"])
        .env("SSL_CERT_DIR", empty.path())
        .env_remove("SSL_CERT_FILE")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}
