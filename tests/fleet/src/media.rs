//! Many nodes that boot by virtual media at once, what that costs the controller, and what a medium is made of.

use crate::behaviour::Behaviour;
use crate::fleet::{Fleet, Setup};
use crate::journal::Journal;
use crate::operator;
use anyhow::{Context, Result, ensure};
use bench::erase::ours::peak_kib;
use boot_media::{Loaders, Overlay, Sizes, Template};
use hostile::controller::{BootFiles, Controller};
use hostile::memory::{MIB, resident};
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Goals of issue 19: the template is made within this time, …
const TEMPLATE: Duration = Duration::from_millis(300);
/// … has at most so many bytes beyond kernel and initramfs, …
const BEYOND: u64 = 500_000;
/// … the overlay of a node is made within this time, …
const OVERLAY: Duration = Duration::from_millis(5);
/// … and the controller's memory is below this while [`GOAL_NODES`] boot.
const MEMORY: u64 = 128 * MIB;
/// Nodes that boot at once.
pub const GOAL_NODES: u32 = 50;
/// How often a template is made, and an overlay.
const TIMES: (usize, usize) = (9, 999);
/// Within which all nodes verify their BMCs.
const VERIFIED: Duration = Duration::from_secs(120);
/// What the controller boots every node with, in about this length.
const ARGUMENTS: &str = "console=tty0 console=ttyS0,115200 quiet cryptomgr.notests panic=10 rootfstype=ramfs";

/// What is measured.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The `anneal-controller`.
    pub program: PathBuf,
    /// A directory with `vmlinuz`, `initramfs` and `medium` (`cargo xtask image`).
    pub image: PathBuf,
    /// Nodes.
    pub nodes: u32,
    /// What happens by chance.
    pub seed: u64,
    /// How long all boots may take.
    pub limit: Duration,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Nodes.
    pub nodes: u32,
    /// Processors of this machine.
    pub processors: usize,
    /// Its load in the minute before, from `/proc/loadavg`.
    pub load_before: String,
    /// Median time in which a template is made, its loaders read.
    pub template: Duration,
    /// Bytes of a medium.
    pub medium: u64,
    /// Of these, what is neither kernel nor initramfs.
    pub beyond: u64,
    /// Median time in which an overlay is made.
    pub overlay: Duration,
    /// Resident bytes of the controller before the first boot.
    pub before: u64,
    /// At most, from there on until all nodes were available.
    pub most: u64,
    /// From the first request until the last node was cleaned and available.
    pub took: Duration,
    /// Processor time of the controller in this time.
    pub processor: Duration,
}

/// Boots all nodes of a controller in `dir` by virtual media, cleans them, and measures.
///
/// # Errors
/// When a node fails or a medium stays in, or time is up.
pub async fn run(shape: &Shape, dir: &Path) -> Result<Report> {
    let load_before = std::fs::read_to_string("/proc/loadavg")?.trim().to_owned();
    let made = Made::measure(&shape.image)?;
    let files = BootFiles {
        kernel: shape.image.join("vmlinuz"),
        initramfs: shape.image.join("initramfs"),
        medium_loaders: Some(shape.image.join("medium")),
    };
    let controller = Controller::start_booting(&shape.program, dir, &files).await?;
    let setup = Setup::on_loopback(shape.nodes, Behaviour::default(), controller.ports.boot);
    let fleet = Fleet::start(setup, Journal::Nowhere, shape.seed).await?;
    let bodies = (0..shape.nodes).map(|number| {
        let mut body = fleet.enrolment(number);
        body["boot_interface"] = json!("redfish-virtual-media");
        body
    });
    operator::enrol_as(&controller.operator, bodies.collect()).await?;
    let numbers: Vec<u32> = (0..shape.nodes).collect();
    operator::ask(&controller.operator, numbers.clone(), "manage").await?;
    operator::reach(&controller.operator, "manageable", VERIFIED).await?;
    let pid = controller.pid();
    let before = resident(pid)?;
    // From here on VmHWM is the most that was resident.
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").context("the peak of the controller's memory")?;
    let (begun, spent) = (Instant::now(), bench::cpu::of_process(pid)?);
    let boots = async {
        operator::ask(&controller.operator, numbers, "provide").await?;
        operator::reach(&controller.operator, "available", shape.limit).await
    };
    timeout(shape.limit, boots).await.with_context(|| format!("more than {:?}", shape.limit))??;
    let took = begun.elapsed();
    let left = fleet.machines.iter().filter(|machine| machine.medium().is_some()).count();
    ensure!(left == 0, "{left} media are left in their drives");
    Ok(Report {
        nodes: shape.nodes,
        processors: std::thread::available_parallelism()?.get(),
        load_before,
        template: made.template,
        medium: made.medium,
        beyond: made.beyond,
        overlay: made.overlay,
        before,
        most: peak_kib(&std::fs::read_to_string(format!("/proc/{pid}/status"))?)? << 10,
        took,
        processor: bench::cpu::of_process(pid)?.saturating_sub(spent),
    })
}

/// How a medium is made.
struct Made {
    template: Duration,
    medium: u64,
    beyond: u64,
    overlay: Duration,
}

impl Made {
    fn measure(image: &Path) -> Result<Self> {
        let size = |name: &str| -> Result<u64> {
            let file = image.join(name);
            Ok(std::fs::metadata(&file).with_context(|| file.display().to_string())?.len())
        };
        let sizes = Sizes { kernel: size("vmlinuz")?, archives: vec![size("initramfs")?] };
        let mut medium = 0;
        let template = median(TIMES.0, || {
            let read = |name: &str| {
                let file = image.join("medium").join(name);
                std::fs::read(&file).with_context(|| file.display().to_string())
            };
            let loaders = Loaders {
                isolinux: read("isolinux.bin")?,
                ldlinux: read("ldlinux.c32")?,
                stub: read("linuxx64.efi.stub")?,
            };
            medium = Template::new(&loaders, &sizes, ARGUMENTS)?.length();
            Ok(())
        })?;
        let parameters = format!(
            "ipa-api-url=https://192.0.2.1:6385 anneal.pin=sha256:{} anneal.boot-nonce={}",
            "0a".repeat(32),
            "0b".repeat(32)
        );
        let overlay = median(TIMES.1, || Ok(Overlay::new(&parameters, None).map(drop)?))?;
        let beyond = medium.saturating_sub(sizes.kernel + sizes.archives.iter().sum::<u64>());
        Ok(Self { template, medium, beyond, overlay })
    }
}

/// The median of so many times, an odd number.
fn median(count: usize, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..count {
        let begun = Instant::now();
        work()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times.get(count / 2).copied().context("no time")
}

impl Report {
    /// The goals that are missed.
    pub fn missed(&self) -> Vec<String> {
        let goals = [
            (
                self.template < TEMPLATE,
                format!("a template in {:?}; goal: below {TEMPLATE:?}", self.template),
            ),
            (
                self.beyond <= BEYOND,
                format!("{} bytes beyond kernel and initramfs; goal: at most {BEYOND}", self.beyond),
            ),
            (self.overlay < OVERLAY, format!("an overlay in {:?}; goal: below {OVERLAY:?}", self.overlay)),
            (self.most < MEMORY, format!("{} MiB resident; goal: below {}", self.most / MIB, MEMORY / MIB)),
        ];
        goals.into_iter().filter(|(reached, _)| !reached).map(|(_, missed)| missed).collect()
    }

    /// Writes all numbers as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(std::fs::write(path, serde_json::to_vec_pretty(self)?)?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, mib) =
            (|time: Duration| time.as_secs_f64() * 1000.0, |bytes: u64| bytes as f64 / MIB as f64);
        let read = self.medium as f64 * f64::from(self.nodes);
        writeln!(
            f,
            "{} nodes, {} processors, load before: {}",
            self.nodes, self.processors, self.load_before
        )?;
        writeln!(f, "| | goal | measured |")?;
        writeln!(f, "|---|---|---|")?;
        writeln!(f, "| a template | < 300 ms | {:.2} ms |", ms(self.template))?;
        writeln!(
            f,
            "| a medium beyond kernel and initramfs | ≤ 500 kB | {:.0} kB of {:.1} MB |",
            self.beyond as f64 / 1e3,
            self.medium as f64 / 1e6
        )?;
        writeln!(f, "| the overlay of a node | < 5 ms | {:.4} ms |", ms(self.overlay))?;
        writeln!(f, "| controller resident, before | | {:.0} MiB |", mib(self.before))?;
        writeln!(f, "| at most, while {} nodes boot | < 128 MiB | {:.0} MiB |", self.nodes, mib(self.most))?;
        writeln!(
            f,
            "| until all are available | | {:.1} s, {:.1} s of processor for {:.2} GB |",
            self.took.as_secs_f64(),
            self.processor.as_secs_f64(),
            read / 1e9
        )
    }
}
