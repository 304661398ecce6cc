//! Real firmware boots the ramdisk from our own DHCP, TFTP and HTTP, with nothing else installed.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use boot::dhcp::{Dhcp, DhcpConfig, Mode, Pool};
use boot::http::{Http, HttpConfig};
use boot::medium::{MediumConfig, RamdiskFiles};
use boot::tftp::{Tftp, TftpConfig};
use boot::{BootAnswer, BootDirectory, CancellationToken, Mac, RamdiskParams, ramdisk_cmdline};
use http_server::{Clients, Limits, Places, Timeouts};
use lab::machine::{Lasting, Machine};
use lab::net::{Bridge, Netns};
use lab::node::{Boot, Firmware, NodeSpec};
use lab::timeline::Timeline;
use lab::wait;

const HERE: Ipv4Addr = Ipv4Addr::new(172, 22, 0, 1);
const MAC: &str = "52:54:00:bb:00:01";
/// Two cores shared with a compiler: many times what it takes on a quiet machine.
const BOOT: Duration = Duration::from_secs(180);

/// Every node boots the ramdisk; what is fetched goes to the timeline.
struct Directory(Timeline);

#[async_trait]
impl BootDirectory for Directory {
    async fn boot_for(&self, _mac: Mac, _from: std::net::IpAddr) -> BootAnswer {
        let params = RamdiskParams {
            api_urls: vec![format!("http://{HERE}:6385")],
            consoles: vec!["ttyS0".to_owned()],
            ..RamdiskParams::default()
        };
        match ramdisk_cmdline(&params) {
            Ok(kernel_args) => BootAnswer::Ramdisk { kernel_args, rescue: false, firmware: Vec::new() },
            Err(_) => BootAnswer::Unknown,
        }
    }

    async fn first_byte(&self, mac: Option<&str>, file: &str) {
        self.0.note(mac.unwrap_or("-"), file);
    }
}

async fn serve(timeline: &Timeline, image: PathBuf, stop: CancellationToken) -> Result<()> {
    let loader_dir = PathBuf::from(boot::loaders::DEFAULT_DIR);
    let base_url = format!("http://{HERE}:8080");
    let http = Http::bind(
        HttpConfig {
            listen: (HERE, 8080).into(),
            base_url: base_url.clone(),
            ramdisk: RamdiskFiles {
                kernel: image.join("vmlinuz"),
                initramfs: image.join("initramfs"),
                rescue: image.join("rescue"),
                firmware: None,
            },
            loader_dir: loader_dir.clone(),
            medium: MediumConfig {
                loader_dir: image.join("medium"),
                arguments: String::new(),
                signed_uki: None,
            },
        },
        Arc::new(Directory(timeline.clone())),
        Clients {
            timeouts: Timeouts::default(),
            places: Places::new("boot", Limits { total: 64, per_address: 16 }),
            operators: None,
        },
    )
    .await?;
    let tftp = Tftp::bind(TftpConfig { listen: (HERE, 69).into(), loader_dir }).await?;
    let dhcp = Dhcp::bind(DhcpConfig {
        interface: "br0".to_owned(),
        server: HERE,
        boot_url: base_url,
        mode: Mode::Server(Pool {
            first: Ipv4Addr::new(172, 22, 0, 100),
            last: Ipv4Addr::new(172, 22, 0, 200),
            prefix: 24,
            router: None,
            dns: Vec::new(),
            lease: Duration::from_secs(3600),
        }),
    })
    .await?;
    let serving = async {
        http.run(stop.clone()).await;
        Ok(())
    };
    tokio::try_join!(
        serving,
        tftp.run(stop.clone()),
        dhcp.run(stop.clone()),
        boot::ra::serve("br0", None, stop.clone()),
    )?;
    Ok(())
}

/// Powers a node on with `target` first and waits for the agent's first words.
fn boots(name: &str, firmware: Firmware, target: Boot) {
    let image = lab::binaries::image_dir().unwrap();
    let netns = Netns::create(&format!("an-boot-{name}-{}", std::process::id())).unwrap();
    let test = async || -> Result<()> {
        let dir = tempfile::tempdir()?;
        let spec = NodeSpec::new(name, firmware, MAC, "tap0", dir.path())?;
        let serial = spec.serial_log();
        let timeline = Timeline::default();
        let machine = Machine::new(spec, timeline.clone());
        let stop = CancellationToken::new();
        let story = async {
            machine.choose_boot(Some((target, Lasting::Once))).await?;
            machine.power_on().await?;
            wait::for_line(&serial, "anneal-agent", BOOT).await?;
            timeline.note(name, "agent");
            machine.power_off().await
        };
        tokio::select! {
            ended = serve(&timeline, image, stop.clone()) => {
                ended?;
                anyhow::bail!("the boot services ended");
            }
            outcome = story => outcome.with_context(|| format!("{:#?}", timeline.events()))?,
        }
        let start = timeline.first(name, "power on").context("never on")?;
        for event in timeline.events() {
            println!("{name}: {:6.2} s {} {}", event.at - start, event.subject, event.what);
        }
        for file in ["ipxe", "vmlinuz", "initramfs"] {
            let fetched = timeline.events().iter().any(|event| event.what == file);
            ensure!(fetched, "{file} was not fetched from us");
        }
        Ok(())
    };
    netns
        .run(|| {
            Bridge::create("br0", &format!("{HERE}/24"))?.tap("tap0")?;
            tokio::runtime::Runtime::new()?.block_on(test())
        })
        .unwrap();
}

#[test]
#[ignore = "root and QEMU: cargo xtask test"]
fn bios_with_the_ipxe_rom_of_its_card() {
    boots("bios", Firmware::Bios, Boot::Pxe);
}

#[test]
#[ignore = "root and QEMU: cargo xtask test"]
fn uefi_with_its_own_pxe() {
    boots("uefi", Firmware::Uefi, Boot::Pxe);
}

#[test]
#[ignore = "root and QEMU: cargo xtask test"]
fn uefi_with_the_ipxe_rom_of_its_card() {
    boots("uefirom", Firmware::UefiIpxeRom, Boot::Pxe);
}

#[test]
#[ignore = "root and QEMU: cargo xtask test"]
fn uefi_over_http() {
    boots("http", Firmware::Uefi, Boot::Http);
}
