//! Many nodes that fetch one image from a controller's cache at once, next to one stream of `sendfile`, and what it costs the
//! controller.
//!
//! ```text
//!   mirror (sendfile) ── once ──▶ controller's cache ── to all agents at once ──▶ fetches.rs
//!                     └───────── one stream, to the same client ────────────────▶
//! ```
//!
//! On loopback a controller serves plain HTTP, at any other address HTTPS, as nodes of a deployment get it.

use crate::behaviour::Behaviour;
use crate::fetches::Fetches;
use crate::fleet::{Fleet, Setup};
use crate::journal::Journal;
use crate::operator;
use anyhow::{Context, Result, anyhow};
use bench::erase::ours::peak_kib;
use bench::image::ours::source;
use bench::image::server;
use bench::operator::Operator;
use fastrand::Rng;
use hostile::controller::Controller;
use hostile::memory::{MIB, resident};
use image_source::{Algorithm, Digest};
use serde::Serialize;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Between two looks at all nodes.
const LOOK: Duration = Duration::from_millis(500);
/// Within which all nodes verify their BMCs, or become available.
const ARRIVAL: Duration = Duration::from_secs(120);
/// Goals of issue 18: of one stream of `sendfile`, that all together get …
const SHARE: f64 = 0.8;
/// … and the controller's memory meanwhile.
const MEMORY: u64 = 64 * MIB;
/// The image at the mirror.
const NAME: &str = "image.raw";

/// What is measured.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The `anneal-controller`.
    pub program: PathBuf,
    /// Nodes.
    pub nodes: u32,
    /// Bytes of the image.
    pub bytes: usize,
    /// Rounds: in each one stream of `sendfile`, then all nodes at once.
    pub rounds: usize,
    /// What the image is made of, and what happens by chance.
    pub seed: u64,
    /// How long everything at one address may take.
    pub limit: Duration,
}

/// One round, in bytes per second.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Round {
    /// One stream of `sendfile`.
    pub sendfile: f64,
    /// All streams of the controller together.
    pub controller: f64,
}

impl Round {
    fn share(&self) -> f64 {
        self.controller / self.sendfile
    }
}

/// What a controller at one address did.
#[derive(Debug, Clone, Serialize)]
pub struct Served {
    /// The address.
    pub address: Ipv4Addr,
    /// Each round.
    pub rounds: Vec<Round>,
    /// Resident bytes of the controller before the first round, with all agents waiting.
    pub before: u64,
    /// At most, in the rounds.
    pub most: u64,
    /// After the last.
    pub after: u64,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Nodes.
    pub nodes: u32,
    /// Bytes of the image.
    pub bytes: usize,
    /// Processors of this machine.
    pub processors: usize,
    /// Its load in the minute before, from `/proc/loadavg`.
    pub load_before: String,
    /// On loopback, and at another address where this machine has one.
    pub served: Vec<Served>,
}

/// Measures a controller in a directory below `dir`, on loopback and at another address of this machine.
///
/// # Errors
/// When a node fails or gets other bytes, or time is up.
pub async fn run(shape: &Shape, dir: &Path) -> Result<Report> {
    let load_before = std::fs::read_to_string("/proc/loadavg")?.trim().to_owned();
    let image = Image::serve(dir, Ipv4Addr::LOCALHOST, shape.bytes, shape.seed)?;
    let mut served = Vec::new();
    for address in [Some(Ipv4Addr::LOCALHOST), own_address()].into_iter().flatten() {
        let dir = dir.join(address.to_string());
        std::fs::create_dir(&dir)?;
        let measured = timeout(shape.limit, at(address, shape, &image, &dir)).await;
        served.push(measured.with_context(|| format!("more than {:?}", shape.limit))??);
    }
    let processors = std::thread::available_parallelism()?.get();
    Ok(Report { nodes: shape.nodes, bytes: shape.bytes, processors, load_before, served })
}

/// The address from which this machine reaches others, if it does.
fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // Nothing is sent: the kernel chooses the way. The address is one for documentation.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(own) if !own.ip().is_loopback() => Some(*own.ip()),
        _ => None,
    }
}

/// An image of random bytes on a mirror.
pub struct Image {
    /// Its content.
    pub content: Arc<Vec<u8>>,
    /// Its SHA-256.
    pub sha256: String,
    /// Where the mirror serves it.
    pub url: String,
}

impl Image {
    /// So many bytes that this seed makes, in a file below `dir`, served at this address until the process ends.
    ///
    /// # Errors
    /// When it cannot be written or served.
    pub fn serve(dir: &Path, address: Ipv4Addr, bytes: usize, seed: u64) -> Result<Self> {
        let mut content = vec![0; bytes];
        Rng::with_seed(seed).fill(&mut content);
        let mut digest = Digest::new(Algorithm::Sha256);
        digest.update(&content);
        let mirror = dir.join("mirror");
        std::fs::create_dir(&mirror)?;
        std::fs::write(mirror.join(NAME), &content)?;
        let listener = TcpListener::bind((address, 0))?;
        let url = format!("http://{}/{NAME}", listener.local_addr()?);
        let thread = std::thread::Builder::new().name("mirror".to_owned());
        thread.spawn(move || server::serve(&listener, &mirror))?;
        Ok(Self { content: Arc::new(content), sha256: digest.finish(), url })
    }
}

async fn at(address: Ipv4Addr, shape: &Shape, image: &Image, dir: &Path) -> Result<Served> {
    // All agents fetch from one address of this machine, other than nodes.
    let settings = format!(
        "[images]\ncache = true\nhosts = [\"127.0.0.0/8\"]\n[connections]\nagents_per_address = {most}\n\
         operators_per_address = {most}\n",
        most = shape.nodes + 128
    );
    let controller = Controller::start_at(&shape.program, dir, address, &settings).await?;
    let setup = Setup::on_loopback(shape.nodes, Behaviour::default(), controller.ports.boot);
    let fleet = Fleet::start(setup, Journal::Nowhere, shape.seed).await?;
    let fetches = Arc::new(Fetches::new(image.content.clone(), usize::try_from(shape.nodes)?, shape.rounds));
    fleet.shared.fetches.set(fetches.clone()).map_err(|_| anyhow!("the fleet has other fetches"))?;
    operator::enrol(&controller.operator, &fleet).await?;
    deploy(&controller.operator, shape.nodes, image).await?;
    all_there(&controller.operator, &fetches).await?;
    let (pid, sendfile) = (controller.pid(), source(&image.url)?);
    let before = resident(pid)?;
    // From here on VmHWM is the most that was resident.
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").context("the peak of the controller's memory")?;
    let mut rounds = Vec::new();
    for _ in 0..shape.rounds {
        let alone = Instant::now();
        fetches.fetch(sendfile.clone()).await?;
        let alone = alone.elapsed();
        fetches.meet().await;
        let together = Instant::now();
        fetches.meet().await;
        let together = together.elapsed();
        let rate =
            |streams: u32, took: Duration| shape.bytes as f64 * f64::from(streams) / took.as_secs_f64();
        rounds.push(Round { sendfile: rate(1, alone), controller: rate(shape.nodes, together) });
    }
    let most = peak_kib(&std::fs::read_to_string(format!("/proc/{pid}/status"))?)? << 10;
    let after = resident(pid)?;
    operator::reach(&controller.operator, "active", shape.limit).await?;
    Ok(Served { address, rounds, before, most, after })
}

/// Asks for the deployment of all nodes with this image.
async fn deploy(operator: &Operator, nodes: u32, image: &Image) -> Result<()> {
    let numbers: Vec<u32> = (0..nodes).collect();
    operator::ask(operator, numbers.clone(), "manage").await?;
    operator::reach(operator, "manageable", ARRIVAL).await?;
    operator::give_image(operator, numbers.clone(), &image.url, &image.sha256).await?;
    operator::ask(operator, numbers.clone(), "provide").await?;
    operator::reach(operator, "available", ARRIVAL).await?;
    operator::ask(operator, numbers, "active").await
}

/// Waits until all agents are about to fetch.
///
/// # Errors
/// When a node fails meanwhile.
pub async fn all_there(operator: &Operator, fetches: &Fetches) -> Result<()> {
    let met = fetches.meet();
    tokio::pin!(met);
    loop {
        tokio::select! {
            () = &mut met => return Ok(()),
            () = sleep(LOOK) => drop(operator::states(operator).await?),
        }
    }
}

impl Served {
    /// The round with the median share.
    fn median(&self) -> Option<Round> {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(|a, b| a.share().total_cmp(&b.share()));
        rounds.get(rounds.len() / 2).copied()
    }

    /// How it serves images there.
    fn scheme(&self) -> &'static str {
        if self.address.is_loopback() { "HTTP" } else { "HTTPS" }
    }
}

impl Report {
    /// The goals that are missed.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        for served in &self.served {
            let scheme = served.scheme();
            let share = served.median().map_or(0.0, |round| round.share());
            if share < SHARE {
                missed
                    .push(format!("{scheme}: {share:.2} of one stream of sendfile; goal: at least {SHARE}"));
            }
            if served.most >= MEMORY {
                let most = in_mib(served.most);
                missed.push(format!("{scheme}: {most:.0} MiB resident; goal: below {}", MEMORY / MIB));
            }
        }
        missed
    }

    /// Writes all numbers as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(std::fs::write(path, serde_json::to_vec_pretty(self)?)?)
    }
}

fn in_mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.bytes as f64 / MIB as f64;
        writeln!(
            f,
            "{} nodes, an image of {mib:.0} MiB, {} processors, load before: {}",
            self.nodes, self.processors, self.load_before
        )?;
        writeln!(
            f,
            "| | one stream of sendfile | all nodes | share (least, most) | resident before | at most | after |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for served in &self.served {
            let Some(median) = served.median() else { continue };
            let shares = || served.rounds.iter().map(|round| round.share());
            let (least, most) = (shares().fold(f64::MAX, f64::min), shares().fold(0.0, f64::max));
            let gb = |rate: f64| rate / 1e9;
            writeln!(
                f,
                "| {} | {:.2} GB/s | {:.2} GB/s | {:.2} ({least:.2}, {most:.2}) | {:.0} MiB | {:.0} MiB | {:.0} MiB |",
                served.scheme(),
                gb(median.sendfile),
                gb(median.controller),
                median.share(),
                in_mib(served.before),
                in_mib(served.most),
                in_mib(served.after)
            )?;
        }
        Ok(())
    }
}
