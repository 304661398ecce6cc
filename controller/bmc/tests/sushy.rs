//! The redfish driver against sushy-emulator, the Redfish service of the OpenStack people.
//!
//! It comes from PyPI into a virtual environment: `ANNEAL_SUSHY_EMULATOR` names the program when the
//! caller has one; otherwise the test makes its own under the target directory. Without network the test
//! fails, it does not skip.

#[path = "support/call.rs"]
mod call;
#[path = "support/service.rs"]
mod service;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bmc::{
    BootDevice, BootMode, Builtin, Drivers, ErrorKind, IndicatorState, MediaKind, PowerState, PowerTarget,
    Settings,
};
use call::Node;
use model::{Health, StepKind};
use serde_json::{Value, json};
use service::{Service, answer};
use support::{Process, info, until_power};

const SYSTEM: &str = "27946b59-9e44-4fa7-8e91-f3527a1ef094";
const PACKAGE: &str = "sushy-tools==2.2.0";

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
}

/// The emulator's program, installed once per target directory.
fn emulator() -> PathBuf {
    if let Some(program) = std::env::var_os("ANNEAL_SUSHY_EMULATOR") {
        return program.into();
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let venv = target.join(PACKAGE.replace("==", "-"));
    let program = venv.join("bin/sushy-emulator");
    let lock = fs::File::create(target.join("sushy.lock")).unwrap();
    lock.lock().unwrap();
    let done = venv.join("installed");
    if !done.exists() {
        let _ = fs::remove_dir_all(&venv);
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        run(Command::new(venv.join("bin/pip")).args(["install", "--quiet", PACKAGE]));
        fs::write(done, PACKAGE).unwrap();
    }
    program
}

struct Sushy {
    _process: Process,
    _dir: tempfile::TempDir,
    address: String,
}

/// Starts the emulator with its `fake` driver, one node that is off, and the settings added.
async fn sushy(settings: &str, scheme: &str) -> Sushy {
    let program = emulator();
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("emulator.conf");
    let state = dir.path().display();
    fs::write(
        &config,
        format!(
            "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = 0\n\
             SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_STATE_DIR = '{state}'\n\
             SUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': '{SYSTEM}', 'name': 'n1', 'power_state': 'Off', \
             'external_notifier': False, 'nics': [{{'mac': '52:54:00:00:00:01', 'ip': '172.22.0.100'}}]}}]\n\
             {settings}\n"
        )
        .replace("{dir}", &dir.path().display().to_string()),
    )
    .unwrap();
    let log_path = dir.path().join("log");
    let log = fs::File::create(&log_path).unwrap();
    let mut process = Process::start(
        Command::new(program)
            .arg("--config")
            .arg(&config)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .env("TMPDIR", dir.path())
            .env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/sushy")),
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    // It says which port the system gave it: one that a test drew for it could be another's by then.
    let says = format!("Running on {scheme}://");
    let address = loop {
        let log = fs::read_to_string(&log_path).unwrap();
        if let Some(address) =
            log.lines().find_map(|line| line.split_once(&says)).map(|(_, address)| address.trim())
        {
            break format!("{scheme}://{address}");
        }
        process.assert_running();
        assert!(Instant::now() < deadline, "sushy-emulator does not listen: {log}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    Sushy { _process: process, _dir: dir, address }
}

fn open(driver_info: Value) -> std::sync::Arc<dyn bmc::Bmc> {
    Builtin::default().open("redfish", &info(driver_info), "n1").unwrap()
}

#[tokio::test]
async fn power_and_boot_device() {
    let sushy = sushy("", "http").await;
    // No system id: there is one system only.
    let bmc = open(json!({"redfish_address": sushy.address}));
    bmc.verify().await.unwrap();
    assert_eq!(bmc.power_state().await.unwrap(), PowerState::Off);
    assert_eq!(bmc.state().await.unwrap(), (PowerState::Off, Some(Health::Ok)));

    bmc.set_power(PowerTarget::SoftOff).await.unwrap();
    bmc.set_power(PowerTarget::On).await.unwrap();
    until_power(&bmc, PowerState::On).await;
    bmc.set_power(PowerTarget::On).await.unwrap();
    bmc.set_power(PowerTarget::Reboot).await.unwrap();
    until_power(&bmc, PowerState::On).await;
    bmc.set_power(PowerTarget::Off).await.unwrap();
    until_power(&bmc, PowerState::Off).await;
    bmc.set_power(PowerTarget::Reboot).await.unwrap();
    until_power(&bmc, PowerState::On).await;
    bmc.set_power(PowerTarget::SoftOff).await.unwrap();
    until_power(&bmc, PowerState::Off).await;

    for device in [BootDevice::Pxe, BootDevice::Disk, BootDevice::Cdrom] {
        // sushy answers 500 to mode Legacy; the mode in force need not be sent.
        let mode = bmc.boot_device().await.unwrap().mode;
        bmc.set_boot_device(device, false, mode).await.unwrap();
        assert_eq!(bmc.boot_device().await.unwrap().device, Some(device));
    }
    bmc.set_boot_device(BootDevice::Pxe, true, None).await.unwrap();
    assert_eq!(bmc.boot_device().await.unwrap().persistent, Some(true));
    bmc.set_boot_device(BootDevice::Disk, true, Some(BootMode::Uefi)).await.unwrap();
    let error = bmc.set_boot_device(BootDevice::Safe, false, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn secure_boot_boot_mode_indicator_and_virtual_media() {
    let sushy = sushy("", "http").await;
    let bmc = open(json!({"redfish_address": sushy.address}));
    let read = async |path: &str, pointer: &str| {
        let url = format!("{}/redfish/v1/Systems/{SYSTEM}{path}", sushy.address);
        let body = reqwest::get(url).await.unwrap().json::<Value>().await.unwrap();
        body.pointer(pointer).unwrap().clone()
    };
    bmc.set_secure_boot(true).await.unwrap();
    assert_eq!(read("/SecureBoot", "/SecureBootEnable").await, true);
    bmc.set_boot_mode(BootMode::Bios).await.unwrap();
    assert_eq!(read("", "/Boot/BootSourceOverrideMode").await, "Legacy");

    let indicator = bmc.indicators().await.unwrap().remove(0);
    assert_eq!((indicator.component, indicator.name.as_str()), ("system", SYSTEM));
    for state in [IndicatorState::Blinking, IndicatorState::Off, IndicatorState::On] {
        bmc.set_indicator(indicator.component, &indicator.name, state).await.unwrap();
        assert_eq!(bmc.indicator(indicator.component, &indicator.name).await.unwrap(), state);
    }

    // The emulator fetches what is inserted.
    let images = Service::start(|_, _| answer("200 OK", "", "an image")).await;
    let (first, second) = (format!("{}/a.iso", images.address), format!("{}/b.iso", images.address));
    for url in [&first, &second] {
        bmc.insert_media(MediaKind::Cdrom, url).await.unwrap();
        let cd = bmc.virtual_media().await.unwrap().remove(0);
        assert_eq!(
            (cd.media_types, cd.inserted, cd.image.as_ref()),
            (vec!["CD".to_owned(), "DVD".to_owned()], true, Some(url))
        );
    }
    assert_eq!(images.count("GET /b.iso"), 1);
    bmc.eject_media(MediaKind::ALL).await.unwrap();
    assert!(bmc.virtual_media().await.unwrap().iter().all(|drive| !drive.inserted && drive.image.is_none()));
}

#[tokio::test]
async fn a_system_that_is_not_there_is_named() {
    let sushy = sushy("", "http").await;
    let bmc =
        open(json!({"redfish_address": sushy.address, "redfish_system_id": "/redfish/v1/Systems/nope"}));
    let error = bmc.verify().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    assert!(error.to_string().contains("404") && error.to_string().contains(&sushy.address), "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn tls_and_basic_auth() {
    let pem = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["bmc.example".to_owned()]).unwrap();
    // As BMCs have it: self-signed, marked as a CA, with another name.
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let (cert_file, key_file) = (pem.path().join("cert.pem"), pem.path().join("key.pem"));
    fs::write(&cert_file, certificate.pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    // htpasswd of user admin, password hunter2 (bcrypt, cost 4: sushy-tools takes bcrypt only).
    let users = pem.path().join("htpasswd");
    fs::write(&users, include_str!("support/htpasswd")).unwrap();
    let settings = format!(
        "SUSHY_EMULATOR_SSL_CERT = '{}'\nSUSHY_EMULATOR_SSL_KEY = '{}'\nSUSHY_EMULATOR_AUTH_FILE = '{}'",
        cert_file.display(),
        key_file.display(),
        users.display()
    );
    let sushy = sushy(&settings, "https").await;
    let with = |password: &str, verify: Value| {
        let info = info(json!({"redfish_address": sushy.address, "redfish_username": "admin",
            "redfish_password": password, "redfish_verify_ca": verify,
            "redfish_system_id": format!("/redfish/v1/Systems/{SYSTEM}")}));
        let settings = Settings { ca_directory: pem.path().to_owned(), ..Settings::default() };
        Builtin::new(settings).open("redfish", &info, "n1").unwrap()
    };
    let file = json!("cert.pem");
    with("hunter2", json!(false)).verify().await.unwrap();
    with("hunter2", file.clone()).verify().await.unwrap();

    let error = with("hunter2", json!(true)).verify().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(!error.is_retryable() && error.to_string().contains("certificate"), "{error}");

    for password in ["wrong-one", ""] {
        let error = with(password, file.clone()).verify().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Auth, "{error}");
        assert!(error.to_string().contains("'admin'") && !error.to_string().contains("wrong-one"), "{error}");
    }
}

#[tokio::test]
async fn bios_settings() {
    let sushy = sushy("", "http").await;
    let node = Node::redfish(&sushy.address, &format!("/redfish/v1/Systems/{SYSTEM}"));
    let apply = async |value: &str| {
        let settings = json!({"settings": [{"name": "ProcTurboMode", "value": value}]});
        node.done(StepKind::Clean, "bios.apply_configuration", settings).await
    };
    let now = async || {
        let url = format!("{}/redfish/v1/Systems/{SYSTEM}/BIOS", sushy.address);
        reqwest::get(url).await.unwrap().json::<Value>().await.unwrap()["Attributes"].clone()
    };
    // Unlike a real BIOS, the emulator puts settings in force at once, and the step says so.
    assert_eq!(apply("Disabled").await, json!({"in_force": ["ProcTurboMode"], "after_reboot": []}));
    assert_eq!(now().await, json!({"BootMode": "Uefi", "NumCores": "10", "ProcTurboMode": "Disabled"}));
    assert_eq!(apply("Disabled").await, json!({"in_force": ["ProcTurboMode"], "after_reboot": []}));
    node.done(StepKind::Clean, "bios.factory_reset", json!({})).await;
    assert_eq!(now().await["ProcTurboMode"], "Enabled");
    let unknown = json!({"settings": [{"name": "Nope", "value": "1"}]});
    let error = node.refused(StepKind::Clean, "bios.apply_configuration", unknown).await;
    assert!(error.to_string().contains("the BIOS has no Nope"), "{error}");
}

#[tokio::test]
async fn inspection() {
    let inspect = async |sushy: &Sushy| {
        let info = info(json!({"redfish_address": sushy.address}));
        Builtin::default().inspect("redfish", &info, "n1").await.unwrap()
    };
    let drives = format!(
        "SUSHY_EMULATOR_STORAGE = {{'{SYSTEM}': [{{'Id': '1', 'Name': 'Local', 'StorageControllers': [], \
         'Drives': ['32ADF365C6C1B7BD']}}]}}\n\
         SUSHY_EMULATOR_DRIVES = {{('{SYSTEM}', '1'): [{{'Id': '32ADF365C6C1B7BD', 'Name': 'Drive Sample', \
         'CapacityBytes': 899527000000, 'Protocol': 'SAS'}}]}}"
    );
    let report = inspect(&sushy(&drives, "http").await).await;
    assert_eq!(
        report["inventory"],
        json!({
            "cpu": {"count": 8, "model_name": "C86", "architecture": "x86_64"},
            "memory": {"physical_mb": 16384, "total": 17_179_869_184_u64},
            "interfaces": [{"name": "52:54:00:00:00:01", "mac_address": "52:54:00:00:00:01"}],
            "disks": [{"name": "Drive Sample", "size": 899_527_000_000_u64, "model": "C123",
                "vendor": "Contoso", "serial": "1234570", "rotational": true}],
            "system_vendor": {"manufacturer": "Sushy Emulator"},
            "boot": {"current_boot_mode": "uefi"},
            "bmc_address": "127.0.0.1",
        })
    );
    assert_eq!(report["plugin_data"]["redfish"]["uuid"], SYSTEM);
    assert_eq!(report["plugin_data"]["redfish"]["notes"], json!([]));

    // Without storage it links to what it then answers with 500.
    let report = inspect(&sushy("", "http").await).await;
    assert_eq!(report["inventory"]["disks"], json!([]));
    assert!(
        report["plugin_data"]["redfish"]["notes"][0].as_str().unwrap().contains("/Storage: it answered 500")
    );
}
