//! `bench`: the measurements of `docs/benchmarks.md`. `cargo xtask bench` builds what it needs and starts it.

use anyhow::{Context, Result};
use bench::api;
use bench::controller::Controller;
use bench::erase::{self, ours};
use bench::image;
use bench::report::{Report, Side};
use bench::round::{self, Shape};
use clap::{Args, Parser, Subcommand, ValueEnum};
use room::Kind;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Measure anneal-controller with simulated agents, and the agent's erase compared with other tools.
#[derive(Debug, Parser)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The time between two in-band steps.
    Steps(Steps),
    /// What one controller does with many nodes: lists, reads, writes, heartbeats, memory, the start.
    Api(Api),
    /// What `api` runs as its child: an empty route.
    #[command(hide = true)]
    ApiServeNothing {
        /// Its port on loopback.
        port: u16,
    },
    /// What `api` runs as its child: handshakes of TLS.
    #[command(hide = true)]
    ApiServeHandshakes {
        /// Its port on loopback.
        port: u16,
        /// Its certificate, in PEM.
        certificate: PathBuf,
        /// Its key, in PEM.
        key: PathBuf,
    },
    /// The speed of overwriting and reading back, on loop devices. Needs root.
    Erase(Erase),
    /// The speed of writing images, on a loop device. Needs root.
    Image(Image),
    /// What `image` runs as its child: the mirror.
    #[command(hide = true)]
    ImageServe {
        /// The directory that is served.
        dir: PathBuf,
    },
    /// What `image` runs as its child: the agent's writer. EVERYTHING on the disk is lost.
    #[command(hide = true)]
    ImageWrite {
        /// The image.
        url: String,
        /// Its digest.
        sha256: String,
        /// The disk.
        device: PathBuf,
    },
    /// What `image` runs as its child: each stage alone. EVERYTHING on the disk is lost.
    #[command(hide = true)]
    ImageStages {
        /// The image.
        url: String,
        /// The same as a file.
        file: PathBuf,
        /// What it unpacks to.
        raw: PathBuf,
        /// The disk.
        device: PathBuf,
        /// The process that serves the URL.
        server: u32,
    },
    /// What a node runs as its init. EVERYTHING on its disks is lost.
    #[command(hide = true)]
    Node {
        /// MiB of each disk.
        #[arg(long)]
        mib: u64,
        /// Rounds.
        #[arg(long)]
        rounds: usize,
        /// Only fio.
        #[arg(long)]
        no_peers: bool,
    },
    /// What `erase` runs as its child. EVERYTHING on the disks is lost.
    #[command(hide = true)]
    Overwrite {
        /// Device nodes.
        #[arg(required = true)]
        disks: Vec<PathBuf>,
        /// Cancel each after this many bytes.
        #[arg(long)]
        stop_after: Option<u64>,
    },
}

#[derive(Debug, Args)]
struct Api {
    /// Directory with anneal-controller.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// Nodes of the large database. No goal is held for fewer than the usual 100,000.
    #[arg(long, default_value_t = 100_000)]
    nodes: usize,
    /// `node_cache_mib` of the controller on SQLite, if it is not to be the default.
    #[arg(long)]
    node_cache_mib: Option<u32>,
    /// Seconds of each load.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Where databases are filled, and found again.
    #[arg(long, default_value = "target/bench-api")]
    filled: PathBuf,
    /// Measure another controller with 1,000 nodes in the same run.
    #[arg(long)]
    peer: Option<Peer>,
    /// List all nodes for so many seconds, by eight clients, and measure nothing but memory.
    #[arg(long)]
    lists: Option<u64>,
    /// Measure three controllers on this store instead, next to pgbench with the same statements, with at most 10,000 nodes.
    #[arg(long)]
    store: Option<Store>,
    /// So many controllers on that store. No goal is held for fewer than three.
    #[arg(long, default_value_t = 3)]
    controllers: usize,
    /// Clients of all of these controllers together.
    #[arg(long, default_value_t = 24)]
    clients: usize,
    /// Where peers are installed, and found again.
    #[arg(long, default_value = "target/peers")]
    peers_dir: PathBuf,
    /// Copies of them and logs go into a new directory here, on the disk to be measured.
    #[arg(long, default_value = "target")]
    dir: PathBuf,
    /// Keep that directory.
    #[arg(long)]
    keep: bool,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench-api.json")]
    report: PathBuf,
}

#[derive(Debug, Args)]
struct Erase {
    /// Small disks and few rounds; no goal is held.
    #[arg(long)]
    quick: bool,
    /// MiB that are erased in a round.
    #[arg(long)]
    mib: Option<u64>,
    /// Rounds: in each everything runs once.
    #[arg(long)]
    rounds: Option<usize>,
    /// Leave out tools that are not fio.
    #[arg(long)]
    no_peers: bool,
    /// A directory in memory.
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    /// A directory on a disk.
    #[arg(long, default_value = "target")]
    disk: PathBuf,
    /// A directory with `vmlinuz` and `bench`, which a node boots to be measured in, too (`cargo xtask bench` makes it).
    #[arg(long)]
    node_image: Option<PathBuf>,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench-erase.json")]
    report: PathBuf,
}

#[derive(Debug, Args)]
struct Image {
    /// MiB of the image. No goal is held for one that is smaller than the usual 2048.
    #[arg(long, default_value_t = 2048)]
    mib: u64,
    /// Rounds: in each everything runs once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// What the image is made of.
    #[arg(long, default_value_t = 17)]
    seed: u64,
    /// Leave out ironic-python-agent.
    #[arg(long)]
    no_peers: bool,
    /// A directory in memory, with room for six times the image.
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    /// Where peers are installed, and found again.
    #[arg(long, default_value = "target/peers")]
    peers_dir: PathBuf,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench-image.json")]
    report: PathBuf,
}

#[derive(Debug, Args)]
struct Steps {
    /// Directory with anneal-controller.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// Steps of the one node that is measured alone.
    #[arg(long, default_value_t = 200)]
    sequence: usize,
    /// Nodes that are cleaned at once.
    #[arg(long, default_value_t = 100)]
    agents: usize,
    /// Steps of each of them.
    #[arg(long, default_value_t = 3)]
    steps: usize,
    /// Agents serve plain HTTP.
    #[arg(long)]
    plain: bool,
    /// Agents are ironic-python-agents: they choose the ids of commands, and their heartbeats, no sooner than 5 s after the one
    /// before, report nothing.
    #[arg(long)]
    ironic_python_agent: bool,
    /// Measure another controller in the same run.
    #[arg(long)]
    peer: Option<Peer>,
    /// Steps of the one node that is measured alone at the peer.
    #[arg(long, default_value_t = 10)]
    peer_sequence: usize,
    /// Where peers are installed, and found again.
    #[arg(long, default_value = "target/peers")]
    peers_dir: PathBuf,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench-steps.json")]
    report: PathBuf,
    /// Databases and logs go into a new directory here, on the disk to be measured; the system's temporary one
    /// by default.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Keep that directory.
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Peer {
    /// The real Ironic, from PyPI.
    Ironic,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Store {
    /// PostgreSQL 15, from Debian.
    Postgres,
}

fn main() -> ExitCode {
    let done = match Command::parse().what {
        What::Steps(options) => steps(&options),
        What::Api(options) => measure_api(&options),
        What::ApiServeNothing { port } => api::limits::serve_nothing(port).map(|()| true),
        What::ApiServeHandshakes { port, certificate, key } => {
            api::limits::serve_handshakes(port, &certificate, &key).map(|()| true)
        }
        What::Erase(options) => erase(&options),
        What::Image(options) => write_images(&options),
        What::ImageServe { dir } => image::server::child(&dir).map(|()| true),
        What::ImageWrite { url, sha256, device } => image::ours::child(&url, &sha256, &device).map(|()| true),
        What::ImageStages { url, file, raw, device, server } => {
            let place = image::stages::Place { url: &url, file: &file, raw: &raw, device: &device, server };
            image::stages::child(place).map(|()| true)
        }
        What::Node { mib, rounds, no_peers } => {
            erase::node::init(erase::Shape { size: mib << 20, rounds, tries: 1, peers: !no_peers })
                .map(|never| match never {})
        }
        What::Overwrite { disks, stop_after } => ours::child(&disks, stop_after).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn steps(options: &Steps) -> Result<bool> {
    let mut scratch = tempfile::Builder::new();
    scratch.prefix("anneal-bench-").disable_cleanup(options.keep);
    let scratch = match &options.dir {
        Some(dir) => scratch.tempdir_in(dir),
        None => scratch.tempdir(),
    }?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::begin(scratch.path(), !options.plain, kind(options))?;
    let program = options.bin_dir.join("anneal-controller");
    let controller = Controller::anneal(&runtime, &program, scratch.path(), !options.plain)?;
    report.sides.push(side(&runtime, &controller, options, options.sequence)?);
    drop(controller);
    if let Some(Peer::Ironic) = options.peer {
        let controller = Controller::ironic(&runtime, &options.peers_dir, scratch.path())?;
        report.sides.push(side(&runtime, &controller, options, options.peer_sequence)?);
    }
    if options.keep {
        println!("databases and logs: {}", scratch.path().display());
    }
    report.write(&options.report)?;
    Ok(show(&report, &options.report, &report.missed()))
}

fn measure_api(options: &Api) -> Result<bool> {
    std::fs::create_dir_all(&options.filled)?;
    let mut scratch = tempfile::Builder::new();
    let scratch = scratch.prefix("bench-api-").disable_cleanup(options.keep).tempdir_in(&options.dir)?;
    if let Some(Store::Postgres) = options.store {
        return measure_postgres(options, scratch.path());
    }
    let place = api::Place {
        controller: &options.bin_dir.join("anneal-controller"),
        node_cache_mib: options.node_cache_mib,
        bench: &std::env::current_exe()?,
        filled: &options.filled,
        peers: options.peer.map(|Peer::Ironic| options.peers_dir.as_path()),
        scratch: scratch.path(),
    };
    let shape = api::Shape {
        nodes: options.nodes,
        few: 1000.min(options.nodes),
        agents: 10_000.min(options.nodes / 2),
        span: Duration::from_secs_f64(options.seconds),
    };
    let report = match options.lists {
        Some(seconds) => api::lists::for_long(place, &shape, Duration::from_secs(seconds))?,
        None => api::run(place, &shape)?,
    };
    report.write(&options.report)?;
    Ok(show(&report, &options.report, &report.missed()) || options.nodes < 100_000)
}

fn measure_postgres(options: &Api, scratch: &Path) -> Result<bool> {
    const NODES: u64 = 10_000;
    let shape = api::postgres::Shape {
        nodes: u64::try_from(options.nodes)?.min(NODES),
        controllers: options.controllers,
        clients: options.clients,
        span: Duration::from_secs_f64(options.seconds),
    };
    let report = api::postgres::run(&options.bin_dir.join("anneal-controller"), scratch, shape)?;
    report.write(&options.report)?;
    Ok(show(&report, &options.report, &report.missed()) || shape.nodes < NODES || shape.controllers < 3)
}

fn erase(options: &Erase) -> Result<bool> {
    let (mib, rounds) = if options.quick { (256, 3) } else { (1024, 15) };
    let shape = erase::Shape {
        size: options.mib.unwrap_or(mib) << 20,
        rounds: options.rounds.unwrap_or(rounds),
        tries: 2,
        peers: !options.no_peers,
    };
    let report = erase::run(&options.memory, &options.disk, options.node_image.as_deref(), shape)?;
    report.write(&options.report)?;
    Ok(show(&report, &options.report, &report.missed()) || options.quick)
}

fn write_images(options: &Image) -> Result<bool> {
    let shape = image::Shape { size: options.mib << 20, seed: options.seed, rounds: options.rounds };
    let peers = (!options.no_peers).then_some(options.peers_dir.as_path());
    let report = image::run(&std::env::current_exe()?, &options.memory, peers, shape)?;
    report.write(&options.report)?;
    Ok(show(&report, &options.report, &report.missed()) || options.mib < 2048)
}

fn kind(options: &Steps) -> Kind {
    if options.ironic_python_agent { Kind::Ipa } else { Kind::Anneal }
}

fn side(runtime: &Runtime, controller: &Controller, options: &Steps, sequence: usize) -> Result<Side> {
    let round = |agents: usize, steps: usize| {
        let limit = Duration::from_secs(900);
        let shape = Shape { kind: kind(options), agents, steps, tls: !options.plain, limit };
        runtime
            .block_on(round::run(controller, shape))
            .with_context(|| format!("{}: {agents} agents × {steps} steps", controller.name))
    };
    let (sequence, fleet) = (round(1, sequence)?, round(options.agents, options.steps)?);
    Ok(Side { controller: controller.name.clone(), sequence, fleet })
}

/// Prints a report that was written to `path`, and the goals that it misses. True when there are none.
fn show(report: &impl Display, path: &Path, missed: &[String]) -> bool {
    print!("{report}");
    println!("report: {}", path.canonicalize().unwrap_or_else(|_| path.to_owned()).display());
    missed.iter().for_each(|goal| println!("MISSED: {goal}"));
    missed.is_empty()
}
