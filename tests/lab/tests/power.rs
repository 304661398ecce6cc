//! A real QEMU behind the lab's BMC: power, and boot overrides that count once.

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::disk::{Bus, DiskSpec};
use lab::machine::Machine;
use lab::net::{Bridge, Netns};
use lab::node::{Firmware, NodeSpec};
use lab::redfish::{BmcConfig, RedfishBmc};
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::timeline::Timeline;
use lab::{fill, signatures, wait};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

const BOOT: Duration = Duration::from_secs(120);

/// Runs a test in a namespace of its own with a bridge and `tap0`.
fn in_namespace(name: &str, test: impl AsyncFnOnce() -> Result<()> + Send) {
    let netns = Netns::create(&format!("an-lab-{name}-{}", std::process::id())).unwrap();
    netns
        .run(|| {
            Bridge::create("br0", "172.22.0.1/24")?.tap("tap0")?;
            tokio::runtime::Runtime::new()?.block_on(test())
        })
        .unwrap();
}

struct Caller {
    client: Client,
    base: String,
}

impl Caller {
    fn new(bmc: &RedfishBmc) -> Self {
        // Taken by another test already: the same provider, then.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().danger_accept_invalid_certs(true).build().unwrap();
        Self { client, base: bmc.url() }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        request = request.basic_auth("admin", Some("secret"));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    async fn system(&self) -> Value {
        self.ask(Method::GET, RedfishBmc::system_id(), None).await.1
    }

    async fn reset(&self, kind: &str) -> StatusCode {
        let path = format!("{}/Actions/ComputerSystem.Reset", RedfishBmc::system_id());
        self.ask(Method::POST, &path, Some(json!({"ResetType": kind}))).await.0
    }

    async fn boot_once(&self, target: &str) -> StatusCode {
        let boot = json!({"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once"});
        let patch = Some(json!({"Boot": boot}));
        self.ask(Method::PATCH, RedfishBmc::system_id(), patch).await.0
    }
}

async fn bmc(machine: &Machine, tls: bool) -> Result<RedfishBmc> {
    let config = BmcConfig {
        address: "127.0.0.1:0".parse()?,
        username: "admin".to_owned(),
        password: "secret".to_owned(),
        tls,
    };
    RedfishBmc::start(machine.clone(), config).await
}

#[test]
#[ignore = "root and QEMU: cargo xtask test"]
fn a_pxe_override_counts_for_one_boot_and_power_off_pulls_the_plug() {
    in_namespace("once", async || {
        let dir = tempfile::tempdir()?;
        let image = dir.path().join("disk.img");
        fill::fill(&image, "once", 16 << 20)?;
        signatures::write(&image, Table::Mbr, Content::Data)?;
        let spec = NodeSpec::new("once", Firmware::Bios, "52:54:00:aa:00:01", "tap0", dir.path())?
            .with_disk(DiskSpec::new(&image, Bus::Virtio, "ONCE"));
        let serial = spec.serial_log();
        let timeline = Timeline::default();
        let machine = Machine::new(spec, timeline.clone());
        let bmc = bmc(&machine, true).await?;
        let caller = Caller::new(&bmc);

        ensure!(caller.system().await["PowerState"] == "Off");
        ensure!(caller.reset("ForceRestart").await == StatusCode::CONFLICT, "reset while off");
        ensure!(caller.boot_once("Pxe").await == StatusCode::OK);
        ensure!(caller.system().await["Boot"]["BootSourceOverrideEnabled"] == "Once");
        ensure!(caller.reset("On").await == StatusCode::NO_CONTENT);
        let system = caller.system().await;
        ensure!(system["PowerState"] == "On");
        ensure!(system["Boot"]["BootSourceOverrideEnabled"] == "Disabled", "used up by the boot");
        wait::for_line(&serial, "Booting from ROM", BOOT).await?;

        // The next boot is from disk again, though no request set it.
        std::fs::write(&serial, "")?;
        ensure!(caller.reset("ForceRestart").await == StatusCode::NO_CONTENT);
        wait::for_line(&serial, OLD_SYSTEM, BOOT).await?;
        let text = wait::tail(&serial, 1 << 20);
        ensure!(!text.contains("Booting from ROM"), "network before disk: {text}");
        wait::until("the reset in the timeline", BOOT, async || Ok(timeline.first("once", "reset"))).await?;

        // Asked for while running, it counts for the next reset.
        std::fs::write(&serial, "")?;
        ensure!(caller.boot_once("Pxe").await == StatusCode::OK);
        ensure!(caller.reset("ForceRestart").await == StatusCode::NO_CONTENT);
        wait::for_line(&serial, "Booting from ROM", BOOT).await?;
        wait::until("the override to be used up", BOOT, async || {
            Ok(machine.boot_choice().await.is_none().then_some(()))
        })
        .await?;

        ensure!(caller.reset("ForceOff").await == StatusCode::NO_CONTENT);
        ensure!(caller.system().await["PowerState"] == "Off");
        ensure!(machine.pid().await.is_none());
        Ok(())
    });
}

#[test]
#[ignore = "root and QEMU: cargo xtask test"]
fn the_bmc_refuses_what_it_should() {
    in_namespace("refuse", async || {
        let dir = tempfile::tempdir()?;
        let spec = NodeSpec::new("refuse", Firmware::Bios, "52:54:00:aa:00:02", "tap0", dir.path())?;
        let machine = Machine::new(spec, Timeline::default());
        let bmc = bmc(&machine, false).await?;
        let caller = Caller::new(&bmc);
        let url = format!("{}{}", bmc.url(), RedfishBmc::system_id());

        let plain = caller.client.get(&url).send().await?;
        ensure!(plain.status() == StatusCode::UNAUTHORIZED);
        ensure!(plain.headers().contains_key("www-authenticate"));
        let wrong = caller.client.get(&url).basic_auth("admin", Some("guess")).send().await?;
        ensure!(wrong.status() == StatusCode::UNAUTHORIZED);
        ensure!(caller.client.get(format!("{}/redfish/v1/", bmc.url())).send().await?.status() == 200);

        let login = json!({"UserName": "admin", "Password": "secret"});
        let sessions = format!("{}/redfish/v1/SessionService/Sessions", bmc.url());
        let session = caller.client.post(&sessions).json(&login).send().await?;
        ensure!(session.status() == StatusCode::CREATED);
        let token = session.headers()["x-auth-token"].clone();
        let place = session.headers()["location"].to_str()?.to_owned();
        let with_token = || caller.client.get(&url).header("x-auth-token", &token);
        ensure!(with_token().send().await?.status() == 200);
        let end = caller.client.delete(format!("{}{place}", bmc.url()));
        ensure!(end.header("x-auth-token", &token).send().await?.status() == 204);
        ensure!(with_token().send().await?.status() == StatusCode::UNAUTHORIZED);

        ensure!(caller.reset("Explode").await == StatusCode::BAD_REQUEST);
        ensure!(caller.boot_once("UefiHttp").await == StatusCode::BAD_REQUEST, "a BIOS node");
        let asset = Some(json!({"AssetTag": "x"}));
        let (status, body) = caller.ask(Method::PATCH, RedfishBmc::system_id(), asset).await;
        ensure!(status == StatusCode::BAD_REQUEST);
        ensure!(body["error"]["message"].as_str().is_some_and(|m| m.contains("AssetTag")));
        ensure!(!machine.is_on().await);
        Ok(())
    });
}
