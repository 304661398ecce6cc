//! The steps of the redfish driver for keys of Secure Boot, and the lab's BMC, which writes them into a store of OVMF's variables.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bmc::{BmcError, Builtin, Drivers, Settings, StepCall, StepEnd};
use lab::key_lists::KeyLists;
use lab::machine::Machine;
use lab::node::{Firmware, NodeSpec};
use lab::redfish::{BmcConfig, RedfishBmc};
use lab::timeline::Timeline;
use lab::uefi_variables::SecureBoot;
use model::StepKind;
use serde_json::{Map, Value, json};

struct Room {
    lab: RedfishBmc,
    machine: Machine,
    dir: tempfile::TempDir,
}

async fn room(secure_boot: Option<SecureBoot>) -> Room {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = NodeSpec::new("n", Firmware::Uefi, "52:54:00:00:00:01", "tap0", dir.path()).unwrap();
    spec.secure_boot = secure_boot;
    let machine = Machine::new(spec, Timeline::default());
    let config = BmcConfig {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        username: "admin".to_owned(),
        password: "secret".to_owned(),
        tls: false,
    };
    let lab = RedfishBmc::start(machine.clone(), config).await.unwrap();
    Room { lab, machine, dir }
}

impl Room {
    fn info(&self) -> Map<String, Value> {
        let info = json!({"redfish_address": self.lab.url(), "redfish_username": "admin", "redfish_password": "secret"});
        info.as_object().unwrap().clone()
    }

    fn builtin(&self) -> Builtin {
        let directory = self.dir.path().join("keys");
        Builtin::new(Settings { secure_boot_keys_directory: directory, ..Settings::default() })
    }

    async fn step(&self, step: &str, args: Value) -> Result<Value, BmcError> {
        let call = StepCall {
            driver: "redfish",
            driver_info: &self.info(),
            interfaces: &BTreeMap::new(),
            node_uuid: "n",
            properties: &Map::new(),
            kind: StepKind::Clean,
            interface: "management",
            step,
            args: args.as_object().unwrap(),
            command_id: "c",
            polling: false,
        };
        match self.builtin().run_step(&call).await? {
            StepEnd::Done(result) => Ok(result),
            StepEnd::Running(text) => panic!("{step} runs: {text}"),
        }
    }

    async fn lists(&self) -> KeyLists {
        self.machine.key_lists().await.unwrap()
    }
}

fn made(name: &str) -> rcgen::CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed([name.to_owned()]).unwrap()
}

#[tokio::test]
async fn keys_are_enrolled_in_setup_mode_and_deleted() {
    let room = room(Some(SecureBoot::Setup)).await;
    let keys = room.dir.path().join("keys");
    std::fs::create_dir(&keys).unwrap();
    let own = ["PK", "KEK", "db"].map(|name| (name, made(name)));
    for (name, key) in &own {
        std::fs::write(keys.join(format!("{name}.crt")), key.cert.pem()).unwrap();
    }
    let result = room.step("enroll_secure_boot_keys", json!({})).await.unwrap();
    assert_eq!(result["added"], json!({"db": 1, "KEK": 1, "PK": 1}));
    assert_eq!(result["secure_boot_enabled"], true);
    for (name, key) in &own {
        assert_eq!(room.lists().await.certificates(name), [key.cert.der().to_vec()], "{name}");
    }
    let again = room.step("enroll_secure_boot_keys", json!({})).await.unwrap();
    assert_eq!(again["already_there"], json!({"db": 1, "KEK": 1, "PK": 1}));
    let more = room.step("enroll_secure_boot_keys", json!({"db": made("more").cert.pem()})).await.unwrap();
    assert_eq!((&more["added"]["db"], room.lists().await.certificates("db").len()), (&json!(1), 2));

    let bmc = room.builtin().open("redfish", &room.info(), "n").unwrap();
    bmc.set_secure_boot(false).await.unwrap();
    assert!(!room.lists().await.is_on());
    bmc.set_secure_boot(true).await.unwrap();
    assert!(room.lists().await.is_on());

    let error =
        room.step("enroll_secure_boot_keys", json!({"PK": made("other").cert.pem()})).await.unwrap_err();
    assert!(error.to_string().contains("another platform key"), "{error}");
    room.step("clear_secure_boot_keys", json!({})).await.unwrap();
    let none = room.lists().await;
    assert!(!none.has_platform_key() && none.certificates("db").is_empty());
    let error = bmc.set_secure_boot(true).await.unwrap_err();
    assert!(error.to_string().contains("Secure Boot needs a platform key"), "{error}");
}

#[tokio::test]
async fn the_keys_of_the_factory_give_way_and_come_back() {
    let room = room(Some(SecureBoot::Microsoft)).await;
    let factory = room.lists().await;
    assert!(factory.is_on() && factory.certificates("db").len() > 1);
    let args = json!({"PK": made("PK").cert.pem(), "db": made("db").cert.pem(), "delete_existing": true});
    room.step("enroll_secure_boot_keys", args).await.unwrap();
    let own = room.lists().await;
    assert_eq!((own.certificates("PK").len(), own.certificates("db").len()), (1, 1));
    assert_ne!(own.certificates("PK"), factory.certificates("PK"));
    room.step("reset_secure_boot_keys_to_default", json!({})).await.unwrap();
    assert_eq!(room.lists().await.certificates("db"), factory.certificates("db"));
}

#[tokio::test]
async fn a_machine_without_secure_boot_is_named() {
    let room = room(None).await;
    for (step, args) in [
        ("enroll_secure_boot_keys", json!({"db": made("db").cert.pem()})),
        ("clear_secure_boot_keys", json!({})),
        ("reset_secure_boot_keys_to_default", json!({})),
    ] {
        let error = room.step(step, args).await.unwrap_err();
        assert!(error.to_string().contains("it offers no secure boot"), "{step}: {error}");
    }
}
