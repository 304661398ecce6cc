//! `bench`: measures, as `docs/benchmarks.md` tells. `cargo xtask bench` builds what it needs and starts it.

use anyhow::{Context, Result};
use bench::controller::Controller;
use bench::report::{Report, Side};
use bench::round::{self, Shape};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Measure anneal-controller with simulated agents.
#[derive(Debug, Parser)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The time between two in-band steps.
    Steps(Steps),
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

fn main() -> ExitCode {
    let What::Steps(options) = Command::parse().what;
    match steps(&options) {
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
    let mut report = Report::begin(scratch.path(), !options.plain)?;
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
    print!("{report}");
    println!("report: {}", shown(&options.report));
    let missed = report.missed();
    for goal in &missed {
        println!("MISSED: {goal}");
    }
    Ok(missed.is_empty())
}

fn side(runtime: &Runtime, controller: &Controller, options: &Steps, sequence: usize) -> Result<Side> {
    let round = |agents: usize, steps: usize| {
        let limit = Duration::from_secs(900);
        let shape = Shape { agents, steps, tls: !options.plain, limit };
        runtime
            .block_on(round::run(controller, shape))
            .with_context(|| format!("{}: {agents} agents × {steps} steps", controller.name))
    };
    let (sequence, fleet) = (round(1, sequence)?, round(options.agents, options.steps)?);
    Ok(Side { controller: controller.name.clone(), sequence, fleet })
}

fn shown(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
