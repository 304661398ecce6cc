//! `anneal-fleet`: simulated nodes for a controller, one's own or that of a measurement.

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use fleet::behaviour::Behaviour;
use fleet::contact::Endpoint;
use fleet::fleet::{Fleet, Setup};
use fleet::images;
use fleet::journal::Journal;
use fleet::media;
use fleet::network::{Network, mac};
use fleet::power;
use fleet::rounds;
use fleet::sizing;
use fleet::upgrade;
use serde_json::json;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Simulated nodes, each with a Redfish BMC and an agent, on addresses of loopback.
#[derive(Debug, Parser)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Nodes for a controller that runs already, until the program is ended.
    Serve(Serve),
    /// One controller from empty to all nodes available: `cargo xtask bench fleet`.
    Bench(Bench),
    /// One controller and nodes that fetch one image from it at once: `cargo xtask bench fleet --images`.
    Images(Images),
    /// One controller and nodes that boot by virtual media at once: `cargo xtask bench media`.
    Media(Media),
    /// The power state of many nodes, read within a period: `cargo xtask bench fleet --power`.
    Power(Power),
    /// Three controllers on one PostgreSQL, one of them killed, frozen or cut off: `cargo xtask soak --part fleet`. Needs root.
    Rounds(Rounds),
    /// Three controllers of one build replaced by another one, one after another: `cargo xtask soak --part upgrade`. Needs root.
    Upgrade(Upgrade),
}

/// How nodes behave.
#[derive(Debug, Args)]
struct Nature {
    /// A TOML file of times and faults (docs/benchmarks.md); without it everything has its default.
    #[arg(long)]
    behaviour: Option<PathBuf>,
    /// Seed of what happens by chance; the time by default.
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Debug, Args)]
struct Serve {
    /// Nodes.
    #[arg(long, default_value_t = 100)]
    nodes: u32,
    /// Where a controller serves boot scripts, ADDRESS:PORT; several are asked in turn.
    #[arg(long, required = true)]
    boot: Vec<SocketAddr>,
    /// A further controller that agents know of: its URL, and with https a comma and its pin, sha256:….
    #[arg(long)]
    controller: Vec<String>,
    /// BMCs serve HTTPS.
    #[arg(long)]
    bmc_tls: bool,
    /// Where every call of a BMC and every command of an agent is noted, as lines of JSON.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Where the bodies of `POST /v1/nodes` and `POST /v1/ports` go that enrol the nodes, as lines of JSON.
    #[arg(long, default_value = "fleet-nodes.jsonl")]
    enrolments: PathBuf,
    #[command(flatten)]
    nature: Nature,
}

#[derive(Debug, Args)]
struct Bench {
    /// Directory with anneal-controller.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// Nodes. Goals are held for 10,000.
    #[arg(long, default_value_t = 10_000)]
    nodes: u32,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench-fleet.json")]
    report: PathBuf,
    /// The database and the log go into a new directory here.
    #[arg(long, default_value = "target")]
    dir: PathBuf,
    /// Keep that directory.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    nature: Nature,
}

#[derive(Debug, Args)]
struct Images {
    /// Directory with anneal-controller.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// Nodes. Goals are held for 20 …
    #[arg(long, default_value_t = 20)]
    nodes: u32,
    /// … and an image of 1024 MiB.
    #[arg(long, default_value_t = 1024)]
    mib: usize,
    /// Rounds: in each one stream of sendfile, then all nodes at once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seed of the image, and of what happens by chance; the time by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench-images.json")]
    report: PathBuf,
    /// The image, the cache, the database and the log go into a new directory here: a page cache holds the image, or the disk
    /// is measured.
    #[arg(long, default_value = "target")]
    dir: PathBuf,
    /// Keep that directory.
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Args)]
struct Media {
    /// Directory with anneal-controller.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// Directory of the image.
    #[arg(long, default_value = "image/out")]
    image: PathBuf,
    /// Nodes. Goals are held for 50.
    #[arg(long, default_value_t = media::GOAL_NODES)]
    nodes: u32,
    /// Seed of what happens by chance; the time by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench-media.json")]
    report: PathBuf,
    /// The database and the log go into a new directory here.
    #[arg(long, default_value = "target")]
    dir: PathBuf,
    /// Keep that directory.
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Args)]
struct Power {
    /// Directory with anneal-controller.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// Redfish nodes that are read within the period. Goals are held for 100,000.
    #[arg(long, default_value_t = power::GOAL_NODES)]
    nodes: u32,
    /// The period, in seconds.
    #[arg(long, default_value_t = 300)]
    period: u32,
    /// Redfish nodes that are read as often as the controller can …
    #[arg(long, default_value_t = 4000)]
    redfish: u32,
    /// … and IPMI nodes …
    #[arg(long, default_value_t = 400)]
    ipmi: u32,
    /// … for so many seconds each.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Seed of what happens by chance; the time by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench-power.json")]
    report: PathBuf,
    /// The databases and logs go into a new directory here.
    #[arg(long, default_value = "target")]
    dir: PathBuf,
    /// Keep that directory.
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Args)]
struct Rounds {
    /// Directory with anneal-controller.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// Nodes.
    #[arg(long, default_value_t = 1000)]
    nodes: u32,
    /// Rounds; three in a row have one undisturbed run.
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    /// Seed of the first; the time by default.
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Debug, Args)]
struct Upgrade {
    /// The anneal-controller that is replaced.
    #[arg(long)]
    old: PathBuf,
    /// The one that takes its place.
    #[arg(long)]
    new: PathBuf,
    /// Nodes: half of them are cleaned, half deployed.
    #[arg(long, default_value_t = 300)]
    nodes: u32,
    /// Seed of what happens by chance; the time by default.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let done = match Command::parse().what {
        What::Serve(options) => serve(&options).map(|()| true),
        What::Bench(options) => measure(&options),
        What::Images(options) => fetch_images(&options),
        What::Media(options) => boot_media(&options),
        What::Power(options) => read_power(&options),
        What::Rounds(options) => play(&options),
        What::Upgrade(options) => replace(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("anneal-fleet: {error:#}");
            ExitCode::from(2)
        }
    }
}

impl Nature {
    fn behaviour(&self) -> Result<Behaviour> {
        self.behaviour.as_deref().map_or_else(|| Ok(Behaviour::default()), Behaviour::read)
    }
}

/// The seed that was given, or the time.
fn seed(given: Option<u64>) -> Result<u64> {
    let seed = given.map_or_else(|| SystemTime::UNIX_EPOCH.elapsed().map(|since| since.as_secs()), Ok)?;
    println!("anneal-fleet: --seed {seed}");
    Ok(seed)
}

fn serve(options: &Serve) -> Result<()> {
    let controllers: Result<Vec<Endpoint>> = options.controller.iter().map(|text| endpoint(text)).collect();
    let setup = Setup {
        nodes: options.nodes,
        network: Network::LOOPBACK,
        bmc_tls: options.bmc_tls,
        behaviour: options.nature.behaviour()?,
        boot: options.boot.clone(),
        controllers: controllers?,
    };
    let seed = seed(options.nature.seed)?;
    let journal = options.journal.as_deref().map_or(Ok(Journal::Nowhere), Journal::file)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let fleet = Fleet::start(setup, journal, seed).await?;
        std::fs::write(&options.enrolments, enrolments(&fleet))?;
        println!("anneal-fleet: {} nodes; enrol them with {}", options.nodes, options.enrolments.display());
        tokio::signal::ctrl_c().await.context("waiting for the end")
    })
}

/// `https://127.0.0.1:6385,sha256:…`, or a URL of http alone.
fn endpoint(text: &str) -> Result<Endpoint> {
    let (url, pin) = text.split_once(',').map_or((text, None), |(url, pin)| (url, Some(pin)));
    Endpoint::read(url, pin)
}

fn enrolments(fleet: &Fleet) -> String {
    let lines = fleet.machines.iter().map(|machine| {
        let node = fleet.enrolment(machine.number);
        let port = json!({ "node_uuid": node["uuid"], "address": mac(machine.number) });
        format!("{}\n", json!({ "node": node, "port": port }))
    });
    lines.collect()
}

fn measure(options: &Bench) -> Result<bool> {
    let mut scratch = tempfile::Builder::new();
    let scratch = scratch.prefix("bench-fleet-").disable_cleanup(options.keep).tempdir_in(&options.dir)?;
    let shape = sizing::Shape {
        program: options.bin_dir.join("anneal-controller"),
        nodes: options.nodes,
        behaviour: options.nature.behaviour()?,
        seed: seed(options.nature.seed)?,
        limit: Duration::from_secs(1800),
    };
    let runtime = hostile::threads::runtime()?;
    let report = runtime.block_on(sizing::run(&shape, scratch.path()))?;
    runtime.shutdown_background();
    report.write(&options.report)?;
    let reached = show(&report, &report.missed());
    Ok(reached || options.nodes < 10_000)
}

fn fetch_images(options: &Images) -> Result<bool> {
    ensure!(options.rounds > 0 && options.nodes > 0 && options.mib > 0, "no round, no node, or no image");
    let mut scratch = tempfile::Builder::new();
    let scratch = scratch.prefix("bench-images-").disable_cleanup(options.keep).tempdir_in(&options.dir)?;
    let shape = images::Shape {
        program: options.bin_dir.join("anneal-controller"),
        nodes: options.nodes,
        bytes: options.mib << 20,
        rounds: options.rounds,
        seed: seed(options.seed)?,
        limit: Duration::from_secs(1800),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(images::run(&shape, scratch.path()));
    // Where a node failed, the others wait for it.
    runtime.shutdown_background();
    let report = report?;
    report.write(&options.report)?;
    let reached = show(&report, &report.missed());
    Ok(reached || options.nodes < 20 || options.mib < 1024)
}

fn boot_media(options: &Media) -> Result<bool> {
    ensure!(options.nodes > 0, "no node");
    let mut scratch = tempfile::Builder::new();
    let scratch = scratch.prefix("bench-media-").disable_cleanup(options.keep).tempdir_in(&options.dir)?;
    let shape = media::Shape {
        program: options.bin_dir.join("anneal-controller"),
        image: absolute(&options.image)?,
        nodes: options.nodes,
        seed: seed(options.seed)?,
        limit: Duration::from_secs(1800),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(media::run(&shape, scratch.path()));
    runtime.shutdown_background();
    let report = report?;
    report.write(&options.report)?;
    let reached = show(&report, &report.missed());
    Ok(reached || options.nodes < media::GOAL_NODES)
}

fn read_power(options: &Power) -> Result<bool> {
    let counts = [options.nodes, options.period, options.redfish, options.ipmi];
    ensure!(!counts.contains(&0) && options.seconds > 0, "no node, no period, or no time");
    let mut scratch = tempfile::Builder::new();
    let scratch = scratch.prefix("bench-power-").disable_cleanup(options.keep).tempdir_in(&options.dir)?;
    let shape = power::Shape {
        program: options.bin_dir.join("anneal-controller"),
        nodes: options.nodes,
        period_s: options.period,
        redfish: options.redfish,
        ipmi: options.ipmi,
        span: Duration::from_secs(options.seconds),
        seed: seed(options.seed)?,
        limit: Duration::from_secs(1800),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(power::run(&shape, scratch.path()));
    runtime.shutdown_background();
    let report = report?;
    report.write(&options.report)?;
    Ok(show(&report, &report.missed()))
}

/// Prints what was measured, and the goals that are missed; whether there are none.
fn show(report: &impl Display, missed: &[String]) -> bool {
    print!("{report}");
    missed.iter().for_each(|goal| println!("MISSED: {goal}"));
    missed.is_empty()
}

fn play(options: &Rounds) -> Result<bool> {
    ensure!(options.rounds > 0 && options.nodes > 0, "no round, or no node");
    let shape = rounds::Shape { nodes: options.nodes, rounds: options.rounds, seed: seed(options.seed)? };
    let program = absolute(&options.bin_dir)?.join("anneal-controller");
    let outcomes = rounds::run(&program, &shape)?;
    let bad = outcomes.iter().filter(|outcome| !outcome.verdict.violations.is_empty()).count();
    println!("{} rounds, {bad} with violations", outcomes.len());
    Ok(bad == 0)
}

fn replace(options: &Upgrade) -> Result<bool> {
    ensure!(options.nodes > 1, "half of the nodes are cleaned and half deployed");
    let (old, new) = (absolute(&options.old)?, absolute(&options.new)?);
    let shape = upgrade::Shape { old: &old, new: &new, nodes: options.nodes, seed: seed(options.seed)? };
    let outcome = upgrade::run(&shape)?;
    println!("{outcome}");
    Ok(outcome.violations().is_empty())
}

fn absolute(dir: &Path) -> Result<PathBuf> {
    dir.canonicalize().with_context(|| dir.display().to_string())
}
