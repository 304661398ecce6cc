//! What a Redfish service offers besides power and boot device: boot mode, secure boot, NMI, indicator, virtual media.

#[path = "support/service.rs"]
mod service;

use std::sync::{Arc, Mutex};

use bmc::{Bmc, BmcError, BootMode, Builtin, Drivers, ErrorKind, IndicatorState, MediaKind, PowerState};
use model::Health;
use serde_json::{Value, json};
use service::{Service, answer, ok};

const SYSTEM: &str = "/redfish/v1/Systems/1";

fn open(service: &Service) -> Arc<dyn Bmc> {
    let info = json!({"redfish_address": service.address, "redfish_system_id": SYSTEM, "redfish_username": "admin",
        "redfish_password": "hunter2", "redfish_auth_type": "basic"});
    Builtin::default().open("redfish", info.as_object().unwrap(), "n1").unwrap()
}

fn written(service: &Service) -> Vec<(String, Value)> {
    let written = service.seen().into_iter().filter(|request| !request.line.starts_with("GET"));
    written.map(|request| (request.line, request.body)).collect()
}

fn is_unsupported(result: Result<(), BmcError>, says: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

/// Read with the power state, in one request. A value that Redfish does not define counts as none.
#[tokio::test]
async fn health() {
    let status = Arc::new(Mutex::new(Value::Null));
    let reported = status.clone();
    let system = move |_: &service::Request, _| {
        let mut system = json!({"PowerState": "On"});
        let status = reported.lock().unwrap().clone();
        if !status.is_null() {
            system["Status"] = status;
        }
        ok(system)
    };
    let service = Service::start(system).await;
    let bmc = open(&service);
    for (says, health) in [
        (json!({"State": "Enabled", "Health": "OK", "HealthRollup": "Critical"}), Some(Health::Ok)),
        (json!({"Health": "Warning"}), Some(Health::Warning)),
        (json!({"Health": null, "HealthRollup": "Critical"}), Some(Health::Critical)),
        (json!({"Health": "Sick"}), None),
        (json!({"State": "Enabled"}), None),
        (json!("OK"), None),
        (Value::Null, None),
    ] {
        *status.lock().unwrap() = says.clone();
        let before = service.seen().len();
        assert_eq!(bmc.state().await.unwrap(), (PowerState::On, health), "{says}");
        assert_eq!(service.seen().len() - before, 1);
    }
    let fake = Builtin::default().open("fake-hardware", &serde_json::Map::new(), "no-health").unwrap();
    assert_eq!(fake.state().await.unwrap().1, None);
}

/// A system in this boot mode that offers these resets, without virtual media.
async fn booting(mode: &'static str, resets: [&'static str; 2]) -> Service {
    Service::start(move |request, _| match request.line.as_str() {
        "GET /redfish/v1/Systems/1" => ok(json!({
            "PowerState": "On", "Boot": {"BootSourceOverrideMode": mode},
            "SecureBoot": {"@odata.id": "/redfish/v1/Systems/1/SecureBoot"},
            "Actions": {"#ComputerSystem.Reset": {"target": "/redfish/v1/Systems/1/Reset",
                "ResetType@Redfish.AllowableValues": resets}},
        })),
        "GET /redfish/v1/Systems/1/SecureBoot" => ok(json!({"SecureBootEnable": false})),
        _ => answer("204 No Content", "", ""),
    })
    .await
}

#[tokio::test]
async fn boot_mode_secure_boot_and_nmi() {
    let service = booting("UEFI", ["On", "Nmi"]).await;
    let bmc = open(&service);
    bmc.set_boot_mode(BootMode::Uefi).await.unwrap();
    bmc.set_secure_boot(false).await.unwrap();
    assert_eq!(written(&service), [], "all is as it is to be");
    bmc.set_boot_mode(BootMode::Bios).await.unwrap();
    bmc.set_secure_boot(true).await.unwrap();
    bmc.inject_nmi().await.unwrap();
    assert_eq!(
        written(&service),
        [
            (format!("PATCH {SYSTEM}"), json!({"Boot": {"BootSourceOverrideMode": "Legacy"}})),
            (format!("PATCH {SYSTEM}/SecureBoot"), json!({"SecureBootEnable": true})),
            (format!("POST {SYSTEM}/Reset"), json!({"ResetType": "Nmi"})),
        ]
    );
}

#[tokio::test]
async fn a_missing_resource_is_reported_and_nothing_is_written() {
    let service = booting("Legacy", ["On", "ForceOff"]).await;
    let bmc = open(&service);
    is_unsupported(bmc.set_secure_boot(true).await, "secure boot needs boot mode uefi");
    is_unsupported(bmc.inject_nmi().await, "it offers only On, ForceOff");
    is_unsupported(bmc.insert_media(MediaKind::Cdrom, "http://x/y.iso").await, "no virtual media");
    is_unsupported(bmc.set_indicator("system", "1", IndicatorState::On).await, "no such indicator");
    assert_eq!(bmc.indicators().await.unwrap(), []);
    assert_eq!(written(&service), []);
    // A driver that has no such thing with any BMC says so without an address.
    let fake = Builtin::default().open("fake-hardware", &Default::default(), "extras").unwrap();
    let error = fake.inject_nmi().await.unwrap_err();
    assert_eq!((error.address(), error.to_string()), ("", "the driver cannot inject an NMI".to_owned()));
}

#[tokio::test]
async fn the_indicator_led_is_read_and_set() {
    let service = Service::start(|request, _| match request.line.as_str() {
        "GET /redfish/v1/Systems/1" => ok(json!({"UUID": "u-1", "IndicatorLED": "Off"})),
        _ => answer("204 No Content", "", ""),
    })
    .await;
    let bmc = open(&service);
    let found = bmc.indicators().await.unwrap();
    assert_eq!((found.len(), found[0].component, found[0].name.as_str()), (1, "system", "u-1"));
    assert_eq!(bmc.indicator("system", "u-1").await.unwrap(), IndicatorState::Off);
    bmc.set_indicator("system", "u-1", IndicatorState::Blinking).await.unwrap();
    assert_eq!(written(&service), [(format!("PATCH {SYSTEM}"), json!({"IndicatorLED": "Blinking"}))]);
}

/// A service of the older kind: media below the manager. What lies in the drive is taken out first, also what bears the same
/// URL: services show it for a while after it was ejected.
#[tokio::test]
async fn virtual_media_are_changed_and_ejected() {
    let inside = Mutex::new(("http://me:hunter2@x/old.iso".to_owned(), String::new()));
    let service = Service::start(move |request, _| {
        let mut inside = inside.lock().unwrap();
        let shown = |url: &str| if url.is_empty() { Value::Null } else { json!(url) };
        let url = request.body["Image"].as_str().unwrap_or_default().to_owned();
        match request.line.as_str() {
            "GET /redfish/v1/Systems/1" => {
                ok(json!({"Links": {"ManagedBy": [{"@odata.id": "/redfish/v1/Managers/1"}]}}))
            }
            "GET /redfish/v1/Managers/1" => {
                ok(json!({"VirtualMedia": {"@odata.id": "/redfish/v1/Managers/1/VM"}}))
            }
            "GET /redfish/v1/Managers/1/VM" => ok(json!({"Members": [
                {"@odata.id": "/redfish/v1/Managers/1/VM/Floppy"}, {"@odata.id": "/redfish/v1/Managers/1/VM/Cd"}]})),
            "GET /redfish/v1/Managers/1/VM/Floppy" => ok(json!({"MediaTypes": ["Floppy", "USBStick"],
                "Inserted": !inside.1.is_empty(), "WriteProtected": true, "Image": shown(&inside.1)})),
            "GET /redfish/v1/Managers/1/VM/Cd" => ok(json!({"MediaTypes": ["CD", "DVD"],
                "Inserted": !inside.0.is_empty(), "Image": shown(&inside.0), "Actions": {
                    "#VirtualMedia.InsertMedia": {"target": "/redfish/v1/Managers/1/VM/Cd/Insert"},
                    "#VirtualMedia.EjectMedia": {"target": "/redfish/v1/Managers/1/VM/Cd/Eject"}}})),
            "POST /redfish/v1/Managers/1/VM/Cd/Insert" if url == "http://me:wrong@x/" => answer(
                "400 Bad Request",
                "",
                r#"{"error": {"message": "cannot fetch http://me:wrong@x/ now"}}"#,
            ),
            line => {
                match line {
                    "POST /redfish/v1/Managers/1/VM/Cd/Insert" => inside.0 = url,
                    "POST /redfish/v1/Managers/1/VM/Cd/Eject" => inside.0.clear(),
                    _ => inside.1 = url,
                }
                answer("204 No Content", "", "")
            }
        }
    })
    .await;
    let bmc = open(&service);
    let drives = bmc.virtual_media().await.unwrap();
    assert_eq!(
        serde_json::to_value(&drives).unwrap(),
        json!([
            {"media_types": ["Floppy", "USBStick"], "inserted": false, "image": null},
            {"media_types": ["CD", "DVD"], "inserted": true, "image": "http://x/old.iso"},
        ])
    );
    bmc.insert_media(MediaKind::Cdrom, "http://me:hunter2@x/old.iso").await.unwrap();
    bmc.insert_media(MediaKind::Disk, "http://x/stick.img").await.unwrap();
    bmc.eject_media(&[MediaKind::Floppy]).await.unwrap();
    bmc.eject_media(MediaKind::ALL).await.unwrap();
    let insert = |url: &str| json!({"Image": url});
    let cd = |verb: &str| format!("POST /redfish/v1/Managers/1/VM/Cd/{verb}");
    let stick = json!({"Image": "http://x/stick.img", "Inserted": true, "WriteProtected": true});
    let floppy = "PATCH /redfish/v1/Managers/1/VM/Floppy".to_owned();
    assert_eq!(
        written(&service),
        [
            (cd("Eject"), json!({})),
            (cd("Insert"), insert("http://me:hunter2@x/old.iso")),
            (floppy.clone(), stick),
            (floppy, json!({"Image": null, "Inserted": false})),
            (cd("Eject"), json!({})),
        ]
    );
    let error = bmc.insert_media(MediaKind::Cdrom, "http://me:wrong@x/").await.unwrap_err().to_string();
    assert!(error.contains("cannot fetch *** now") && !error.contains("wrong"), "{error}");
}

/// That the settings for the next boot cannot be read is no reason to leave a URL of ours that is in force.
#[tokio::test]
async fn a_url_in_force_is_not_taken_for_none_where_the_settings_for_the_next_boot_are_not_shown() {
    const BIOS: &str = "/redfish/v1/Systems/1/Bios";
    for (url, kind) in [
        ("http://h/boot/media/anneal-7-x.efi", ErrorKind::Auth),
        ("http://h/boot/media/anneal-8-x.efi", ErrorKind::Unsupported),
        ("", ErrorKind::Unsupported),
    ] {
        let service = Service::start(move |request, _| match request.line.as_str() {
            "GET /redfish/v1/Systems/1" => ok(json!({"Bios": {"@odata.id": BIOS}})),
            "GET /redfish/v1/Systems/1/Bios" => ok(json!({"Attributes": {"HttpDev1Uri": url},
                "@Redfish.Settings": {"SettingsObject": {"@odata.id": "/redfish/v1/Systems/1/Bios/Settings"}}})),
            _ => answer("403 Forbidden", "", ""),
        })
        .await;
        let error = open(&service).clear_http_boot("anneal-7").await.unwrap_err();
        assert_eq!(error.kind(), kind, "{url}: {error}");
    }
}

/// BMCs repeat what they are asked to change, and the name of a boot medium opens it.
#[tokio::test]
async fn what_is_taken_back_is_in_no_error() {
    const MARK: &str = "anneal-00000000-0000-0000-0000-000000000007";
    let url = format!("http://192.0.2.1/boot/media/{MARK}-5ec2e7.iso");
    let refusal =
        json!({"error": {"message": format!("{url} stays, and {MARK}-5ec2e7.iso too")}}).to_string();
    for by_bios in [false, true] {
        let (url, refusal) = (url.clone(), refusal.clone());
        let service = Service::start(move |request, _| match request.line.as_str() {
            "GET /redfish/v1/Systems/1" => {
                let boot = if by_bios { json!({}) } else { json!({"HttpBootUri": url}) };
                ok(json!({"Boot": boot, "Bios": {"@odata.id": "/redfish/v1/Systems/1/Bios"},
                    "VirtualMedia": {"@odata.id": "/redfish/v1/Systems/1/VM"}}))
            }
            "GET /redfish/v1/Systems/1/Bios" => ok(json!({"Attributes": {"HttpDev1Uri": url}})),
            "GET /redfish/v1/Systems/1/VM" => {
                ok(json!({"Members": [{"@odata.id": "/redfish/v1/Systems/1/VM/1"}]}))
            }
            "GET /redfish/v1/Systems/1/VM/1" => {
                ok(json!({"MediaTypes": ["CD"], "Inserted": true, "Image": url}))
            }
            _ => answer("400 Bad Request", "", &refusal),
        })
        .await;
        let bmc = open(&service);
        for error in [bmc.eject_boot_medium(MARK).await, bmc.clear_http_boot(MARK).await] {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("stays, and ***") && !text.contains("5ec2e7"), "{text}");
        }
        let shown = bmc.virtual_media().await.unwrap().remove(0).image.unwrap();
        assert_eq!(shown, format!("http://192.0.2.1/boot/media/{MARK}-***"));
    }
}

/// Drives that cannot be read hold no medium of ours; a BMC that is broken at the moment is asked again.
#[tokio::test]
async fn drives_that_are_not_shown_are_none() {
    for (status, kind) in
        [("403 Forbidden", ErrorKind::Unsupported), ("500 Internal Server Error", ErrorKind::Protocol)]
    {
        let service = Service::start(move |request, _| match request.line.as_str() {
            "GET /redfish/v1/Systems/1" => {
                ok(json!({"VirtualMedia": {"@odata.id": "/redfish/v1/Systems/1/VM"}}))
            }
            _ => answer(status, "", ""),
        })
        .await;
        let error = open(&service).eject_boot_medium("anneal-7").await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (kind, kind == ErrorKind::Protocol), "{error}");
    }
}
