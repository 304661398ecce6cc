//! The redfish driver and the lab's BMC: each of what real BMCs do differently with virtual media, as data. Both were written
//! from the specification, and share no code.

use axum::http::StatusCode;
use bmc::{Bmc, Builtin, Drivers, ErrorKind, MediaKind};
use lab::machine::{Lasting, Machine};
use lab::node::{Boot, Firmware, NodeSpec};
use lab::redfish::media::{DriveQuirks, MediaQuirks};
use lab::redfish::{BmcConfig, RedfishBmc};
use lab::timeline::Timeline;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const MARK: &str = "anneal-7";

struct Room {
    lab: RedfishBmc,
    bmc: Arc<dyn Bmc>,
    machine: Machine,
    _dir: tempfile::TempDir,
}

async fn room(quirks: MediaQuirks) -> Room {
    room_of(Firmware::Bios, quirks).await
}

async fn room_of(firmware: Firmware, quirks: MediaQuirks) -> Room {
    let dir = tempfile::tempdir().unwrap();
    let spec = NodeSpec::new("n", firmware, "52:54:00:00:00:01", "tap0", dir.path()).unwrap();
    let machine = Machine::new(spec, Timeline::default());
    let config = BmcConfig {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        username: "admin".to_owned(),
        password: "secret".to_owned(),
        tls: false,
    };
    let lab = RedfishBmc::start_with(machine.clone(), config, quirks).await.unwrap();
    let info =
        json!({"redfish_address": lab.url(), "redfish_username": "admin", "redfish_password": "secret"});
    let info: Map<String, Value> = info.as_object().unwrap().clone();
    let bmc = Builtin::default().open("redfish", &info, "node").unwrap();
    Room { lab, bmc, machine, _dir: dir }
}

impl Room {
    fn inserted(&self) -> Vec<(String, String)> {
        self.lab.inserted_media().into_iter().collect()
    }
}

/// A server with one image under any name, by HEAD and ranges.
async fn images() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap_or(0);
            let head = request[..length].starts_with(b"HEAD");
            let status = if head { "200 OK" } else { "206 Partial Content" };
            let body = if head { "" } else { "image" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\nConnection: close\r\n\r\n{body}");
            // The BMC may have gone.
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/boot/media/{MARK}")
}

/// Names and ways.
fn ways() -> Vec<(&'static str, MediaQuirks)> {
    let default = MediaQuirks::default;
    vec![
        ("plain", default()),
        ("below the manager", MediaQuirks { below_manager: true, ..default() }),
        (
            "below the manager, and none below the system",
            MediaQuirks { below_manager: true, empty_below_system: true, ..default() },
        ),
        (
            "refuses",
            MediaQuirks { refuses: &["Inserted", "WriteProtected", "TransferProtocolType"], ..default() },
        ),
        ("demands a protocol", MediaQuirks { demands: &["TransferProtocolType"], ..default() }),
        (
            "demands a method",
            MediaQuirks { demands: &["TransferProtocolType", "TransferMethod"], ..default() },
        ),
        ("demands a user", MediaQuirks { demands: &["UserName", "Password"], ..default() }),
        (
            "names its parameters",
            MediaQuirks {
                action_info: &["Image", "Inserted", "WriteProtected", "TransferProtocolType"],
                demands: &["Inserted", "WriteProtected", "TransferProtocolType"],
                ..default()
            },
        ),
        (
            "names what it refuses",
            MediaQuirks {
                action_info: &["Image", "WriteProtected"],
                refuses: &["WriteProtected"],
                ..default()
            },
        ),
        ("by PATCH", MediaQuirks { by_patch: true, demands: &["Inserted"], ..default() }),
        ("by PATCH with ETags", MediaQuirks { by_patch: true, etags: true, ..default() }),
        ("shows what was ejected", MediaQuirks { lingers: 3, ..default() }),
        (
            "several drives",
            MediaQuirks {
                drives: vec![
                    DriveQuirks { types: &["USBStick"], ..DriveQuirks::cd("0") },
                    DriveQuirks { foreign: Some("http://192.0.2.1/other.iso"), ..DriveQuirks::cd("EXT1") },
                    DriveQuirks { takes_no_url: true, ..DriveQuirks::cd("RDOC1") },
                    DriveQuirks { types: &["DVD"], ..DriveQuirks::cd("EXT2") },
                ],
                ..default()
            },
        ),
    ]
}

#[tokio::test]
async fn a_boot_medium_is_inserted_twice_and_ejected_twice_in_every_way() {
    let url = images().await;
    for (name, quirks) in ways() {
        let room = room(quirks).await;
        let before = room.inserted();
        for round in ["first.iso", "second.iso", "second.iso"] {
            // A controller that was killed inserts again, and another boot has another URL.
            let url = format!("{url}-{round}");
            room.bmc.insert_boot_medium(&url, MARK).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            let media = room.inserted();
            assert_eq!(media.len(), before.len() + 1, "{name}: {media:?}");
            assert!(media.iter().any(|(_, inside)| *inside == url), "{name}: {media:?}");
        }
        for _ in 0..2 {
            room.bmc.eject_boot_medium(MARK).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(room.inserted(), before, "{name}");
        }
    }
}

#[tokio::test]
async fn a_foreign_medium_stays_and_is_named() {
    let foreign =
        DriveQuirks { foreign: Some("http://me:hunter2@192.0.2.1/other.iso"), ..DriveQuirks::cd("1") };
    let room = room(MediaQuirks { drives: vec![foreign], ..MediaQuirks::default() }).await;
    let before = room.inserted();
    let url = images().await;
    let error = room.bmc.insert_boot_medium(&url, MARK).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("192.0.2.1/other.iso") && !text.contains("hunter2"), "{text}");
    assert!(!error.is_retryable(), "{text}");
    room.bmc.eject_boot_medium(MARK).await.unwrap();
    assert_eq!(room.inserted(), before);
    // An operator who asks for it by hand replaces it, as in Ironic.
    room.bmc.insert_media(MediaKind::Cdrom, &url).await.unwrap();
    assert_eq!(room.inserted(), [("1".to_owned(), url)]);
}

/// Whose medium it is could not be known later.
#[tokio::test]
async fn a_drive_that_does_not_show_its_medium_is_left_empty() {
    let room = room(MediaQuirks { hides_url: true, ..MediaQuirks::default() }).await;
    let text = room.bmc.insert_boot_medium(&images().await, MARK).await.unwrap_err().to_string();
    assert!(text.contains("does not show the URL"), "{text}");
    assert!(room.inserted().is_empty());
    room.bmc.insert_media(MediaKind::Cdrom, &images().await).await.unwrap();
    room.bmc.eject_boot_medium(MARK).await.unwrap();
    assert_eq!(room.inserted().len(), 1, "it may be a foreign one");
}

/// As is one that shows a part of it. What another client has inserted meanwhile stays.
#[tokio::test]
async fn a_drive_that_cuts_the_name_of_its_medium_is_left_empty() {
    fn cut_url(url: &str) -> String {
        url[..url.len() - "anneal-7-x.iso".len()].to_owned()
    }
    fn cut_name(url: &str) -> String {
        url.rsplit('/').next().unwrap()[.."anneal".len()].to_owned()
    }
    fn another(_: &str) -> String {
        "http://192.0.2.9/other.iso".to_owned()
    }
    let url = format!("{}-x.iso", images().await);
    let media_after = async |shows: fn(&str) -> String| {
        let room = room(MediaQuirks { shows: Some(shows), ..MediaQuirks::default() }).await;
        let text = room.bmc.insert_boot_medium(&url, MARK).await.unwrap_err().to_string();
        assert!(text.contains("does not show the URL") && !text.contains("x.iso"), "{text}");
        room.inserted().len()
    };
    let after = tokio::join!(media_after(cut_url), media_after(cut_name), media_after(another));
    assert_eq!(after, (0, 0, 1));
}

#[tokio::test]
async fn an_image_that_the_bmc_cannot_read_is_an_error_that_keeps_the_url() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/boot/media/{MARK}-secret.iso", listener.local_addr().unwrap());
    drop(listener);
    let refusing = room(MediaQuirks::default()).await;
    let text = refusing.bmc.insert_boot_medium(&url, MARK).await.unwrap_err().to_string();
    assert!(text.contains("cannot be read") && !text.contains("secret"), "{text}");
    let none = room(MediaQuirks { drives: Vec::new(), ..MediaQuirks::default() }).await;
    let text = none.bmc.insert_boot_medium(&url, MARK).await.unwrap_err().to_string();
    assert!(text.contains("no virtual media"), "{text}");
}

#[tokio::test]
async fn virtual_media_are_booted_by_usb_where_that_is_offered() {
    for (sources, boots) in [(&["Cd"][..], "Cd"), (&["Cd", "UsbCd"], "UsbCd"), (&["UsbCd"], "UsbCd")] {
        let room = room(MediaQuirks { sources, ..MediaQuirks::default() }).await;
        room.bmc.set_boot_device(bmc::BootDevice::Cdrom, false, None).await.unwrap();
        let choice = room.machine.boot_choice().await;
        assert_eq!(choice.map(|(boot, _)| boot), Some(lab::node::Boot::Cd), "{boots}");
        assert_eq!(room.bmc.boot_device().await.unwrap().device, Some(bmc::BootDevice::Cdrom), "{boots}");
    }
}

/// UEFI HTTP boot: a URL is set, and taken back if it is ours. What cannot be done is named, without the URL.
#[tokio::test]
async fn a_url_is_set_and_taken_back() {
    let url = format!("http://192.0.2.1/boot/media/{MARK}-x.iso");
    let room = room_of(Firmware::Uefi, MediaQuirks::default()).await;
    room.bmc.set_http_boot(&url, MARK).await.unwrap();
    assert_eq!(room.machine.http_url().await.as_deref(), Some(url.as_str()));
    assert_eq!(room.machine.boot_choice().await, Some((Boot::Http, Lasting::Once)));
    room.bmc.clear_http_boot("anneal-8").await.unwrap();
    assert!(room.machine.http_url().await.is_some(), "it is not the medium of that node");
    room.bmc.clear_http_boot(MARK).await.unwrap();
    assert_eq!((room.machine.http_url().await, room.machine.boot_choice().await), (None, None));
    room.bmc.clear_http_boot(MARK).await.unwrap();

    // After the boot the override is used up, and another one stays.
    room.bmc.set_http_boot(&url, MARK).await.unwrap();
    room.machine.choose_boot(Some((Boot::Pxe, Lasting::Always))).await.unwrap();
    room.bmc.clear_http_boot(MARK).await.unwrap();
    assert_eq!(room.machine.boot_choice().await, Some((Boot::Pxe, Lasting::Always)));

    let forgetful = MediaQuirks { forgets_urls: true, ..MediaQuirks::default() };
    for (firmware, quirks, says) in [
        (Firmware::Uefi, forgetful, "passes no URL to its firmware"),
        (Firmware::Bios, MediaQuirks::default(), "cannot boot from uefihttp"),
    ] {
        let error = room_of(firmware, quirks).await.bmc.set_http_boot(&url, MARK).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains(says) && !text.contains("x.iso"), "{text}");
    }
}

/// As with media: what an operator has set stays.
#[tokio::test]
async fn a_foreign_url_stays_and_is_named() {
    let room = room_of(Firmware::Uefi, MediaQuirks::default()).await;
    let foreign = "http://192.0.2.9/other-secret.efi";
    room.machine.set_http_url(Some(foreign.to_owned())).await;
    let url = format!("http://192.0.2.1/boot/media/{MARK}-x.iso");
    let error = room.bmc.set_http_boot(&url, MARK).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(
        text.contains("HttpBootUri holds a URL that is not Anneal's") && !text.contains("secret"),
        "{text}"
    );
    room.bmc.clear_http_boot(MARK).await.unwrap();
    assert_eq!(room.machine.http_url().await.as_deref(), Some(foreign));
    assert_eq!(room.machine.boot_choice().await, None);
}

/// The URL of a boot is taken back wherever a BMC may have it. One that refuses for good to show its BIOS settings cannot have got any
/// there; one that is busy is asked again.
#[tokio::test]
async fn bios_settings_that_are_not_shown_hold_no_url() {
    let clear = async |bios_refused| {
        let quirks = MediaQuirks { lacks_url: true, bios_refused, ..MediaQuirks::default() };
        let room = room_of(Firmware::Uefi, quirks).await;
        room.bmc.eject_boot_medium(MARK).await.unwrap();
        room.bmc.clear_http_boot(MARK).await
    };
    clear([None, None]).await.unwrap();
    for refused in [
        [Some(StatusCode::FORBIDDEN), None],
        [Some(StatusCode::NOT_FOUND), None],
        [None, Some(StatusCode::FORBIDDEN)],
        [None, Some(StatusCode::NOT_FOUND)],
    ] {
        let error = clear(refused).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{refused:?}: {error}");
        assert!(error.to_string().contains("does not show its BIOS settings"), "{refused:?}: {error}");
    }
    for broken in
        [[Some(StatusCode::INTERNAL_SERVER_ERROR), None], [None, Some(StatusCode::INTERNAL_SERVER_ERROR)]]
    {
        let error = clear(broken).await.unwrap_err();
        assert!(error.is_retryable() && error.kind() != ErrorKind::Unsupported, "{broken:?}: {error}");
    }
}
