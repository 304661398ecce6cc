//! The ipmi driver (and so `ipmitool`) against ipmi_sim, the BMC simulator of OpenIPMI.
//!
//! ipmi_sim knows cipher suite 3 only: the fall back from 17 is exercised by each test. Needs Debian's
//! `openipmi` and `ipmitool`; without them the tests fail.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bmc::{Bmc, BootDevice, Builtin, Drivers, ErrorKind, PowerState, PowerTarget, Settings};
use serde_json::json;
use support::{Process, free_udp_port, info, until_power};

struct Sim {
    _process: Process,
    dir: tempfile::TempDir,
    port: u16,
}

/// The program that ipmi_sim asks for power and boot device; it keeps them in files.
const CHASSIS: &str = r#"#!/bin/sh
dir=$(dirname "$0"); shift; verb=$1; shift
case $verb in
get) for what in "$@"; do
        case $what in
        power) echo "power:$(cat "$dir/power" 2>/dev/null || echo 0)";;
        boot) echo "boot:$(cat "$dir/boot" 2>/dev/null || echo none)";;
        esac
     done;;
set) echo "$1 $2" >> "$dir/log"; echo "$2" > "$dir/$1";;
esac
"#;

const EMULATOR: &str =
    "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n";

async fn sim() -> Sim {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let port = free_udp_port();
    fs::write(path("chassis"), CHASSIS).unwrap();
    fs::set_permissions(path("chassis"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(path("emu"), EMULATOR).unwrap();
    let auths = ["callback", "user", "operator", "admin"]
        .map(|level| format!("    allowed_auths_{level} none md2 md5 straight\n"))
        .concat();
    fs::write(
        path("lan.conf"),
        format!(
            "name \"sim\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 {port}\n    priv_limit admin\n\
             {auths}    guid a123456789abcdefa123456789abcdef\n  endlan\n  chassis_control \"{} 0x20\"\n\
             \x20 user 1 true \"\" \"test\" user 10 none md2 md5 straight\n\
             \x20 user 2 true \"admin\" \"hunter2\" admin 10 none md2 md5 straight\n",
            path("chassis").display()
        ),
    )
    .unwrap();
    let log = fs::File::create(path("out")).unwrap();
    let mut process = Process::start(
        Command::new("ipmi_sim")
            .arg("-n")
            .arg("-c")
            .arg(path("lan.conf"))
            .arg("-f")
            .arg(path("emu"))
            .arg("-s")
            .arg(path("state"))
            .stdout(log.try_clone().unwrap())
            .stderr(log),
    );
    let sim = Sim {
        dir,
        port,
        _process: {
            process.assert_running();
            process
        },
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    let socket = format!(":{port:04X} ");
    while !fs::read_to_string("/proc/net/udp").unwrap().contains(&socket) {
        assert!(Instant::now() < deadline, "ipmi_sim does not listen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    sim
}

fn open(sim: &Sim, password: &str) -> Arc<dyn Bmc> {
    let info = info(json!({"ipmi_address": "127.0.0.1", "ipmi_port": sim.port, "ipmi_username": "admin",
        "ipmi_password": password}));
    Builtin::default().open("ipmi", &info, "n1").unwrap()
}

#[tokio::test]
async fn power_and_boot_device() {
    let sim = sim().await;
    let bmc = open(&sim, "hunter2");
    assert_eq!(bmc.power_state().await.unwrap(), PowerState::Off);
    bmc.set_power(PowerTarget::Reboot).await.unwrap();
    until_power(&bmc, PowerState::On).await;
    bmc.set_power(PowerTarget::On).await.unwrap();
    bmc.set_power(PowerTarget::Reboot).await.unwrap();
    for (device, name) in
        [(BootDevice::Pxe, "pxe"), (BootDevice::Disk, "default"), (BootDevice::Cdrom, "cdrom")]
    {
        bmc.set_boot_device(device, false, None).await.unwrap();
        assert_eq!(bmc.boot_device().await.unwrap().device, Some(device));
        assert_eq!(fs::read_to_string(sim.dir.path().join("boot")).unwrap().trim(), name);
    }
    bmc.set_power(PowerTarget::Off).await.unwrap();
    until_power(&bmc, PowerState::Off).await;
    bmc.set_power(PowerTarget::SoftOff).await.unwrap();
    let log = fs::read_to_string(sim.dir.path().join("log")).unwrap();
    let power: Vec<&str> = log.lines().filter(|line| !line.starts_with("boot")).collect();
    assert_eq!(power, ["power 1", "reset 1", "power 0"], "what holds already is not asked for");
    let error = bmc.set_power(PowerTarget::SoftReboot).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let error = bmc.set_boot_device(BootDevice::UefiHttp, false, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_wrong_password_is_distinguished_from_an_absent_bmc() {
    let sim = sim().await;
    let error = open(&sim, "wrong-one").verify().await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Auth, false), "{error}");
    assert!(!format!("{error} {error:?}").contains("wrong-one"));

    let stranger =
        info(json!({"ipmi_address": "127.0.0.1", "ipmi_port": sim.port, "ipmi_username": "stranger"}));
    let error = Builtin::default().open("ipmi", &stranger, "n1").unwrap().verify().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth, "{error}");

    let absent = info(json!({"ipmi_address": "127.0.0.1", "ipmi_port": free_udp_port()}));
    let error = Builtin::default().open("ipmi", &absent, "n1").unwrap().verify().await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unreachable, true), "{error}");
}

/// A run of ipmitool that outlives the controller ends by itself before a successor acts.
#[tokio::test]
async fn ipmitool_gives_a_silent_bmc_up_within_the_time_that_the_site_allows() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let info = info(json!({"ipmi_address": "127.0.0.1", "ipmi_port": silent.local_addr().unwrap().port(),
        "ipmi_username": "admin", "ipmi_password": "hunter2"}));
    let settings = Settings { request_timeout_s: 10, ..Settings::default() };
    let bmc = Builtin::new(settings).open("ipmi", &info, "n1").unwrap();
    let error = bmc.power_state().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "it was not killed: {error}");
}

#[tokio::test]
async fn a_cipher_suite_that_is_configured_is_not_weakened() {
    let sim = sim().await;
    let strict = info(json!({"ipmi_address": "127.0.0.1", "ipmi_port": sim.port, "ipmi_username": "admin",
        "ipmi_password": "hunter2", "ipmi_cipher_suite": 17}));
    let error = Builtin::default().open("ipmi", &strict, "n1").unwrap().verify().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("cipher suite 17; set ipmi_cipher_suite"), "{error}");
}
