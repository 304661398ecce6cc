//! `hostile`: the soak of `cargo xtask soak --part hostile`.

use anyhow::Result;
use clap::Parser;
use hostile::run::{Shape, run};
use hostile::threads;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Run the real controller under hostile clients, and fail when a goal of issue 16 is missed.
#[derive(Debug, Parser)]
struct Options {
    /// Directory with anneal-controller.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// How long hostile clients work, in seconds.
    #[arg(long, default_value_t = 1800)]
    seconds: u64,
    /// How long the nodes are cleaned before, in seconds: what is resident then is the start.
    #[arg(long, default_value_t = 60)]
    peace: u64,
    /// Seed of what they send; the time by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Requests per second that they try to send, all together.
    #[arg(long, default_value_t = 2200.0)]
    requests: f64,
    /// Connections that they try to hold.
    #[arg(long, default_value_t = 2200)]
    held: usize,
    /// Nodes that are cleaned.
    #[arg(long, default_value_t = 50)]
    nodes: u16,
    /// Nodes with lying agents.
    #[arg(long, default_value_t = 12)]
    liars: u16,
    /// Nodes with silent BMCs.
    #[arg(long, default_value_t = 64)]
    silent: u16,
    /// Let the controller use all processors, not only the first.
    #[arg(long)]
    not_pinned: bool,
    /// Keep the database and the log, and print where they are.
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    match soak(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hostile: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn soak(options: &Options) -> Result<bool> {
    let mut dir = tempfile::Builder::new().prefix("anneal-hostile-").tempdir()?;
    dir.disable_cleanup(options.keep);
    if options.keep {
        println!("hostile: database and log in {}", dir.path().display());
    }
    let now = SystemTime::UNIX_EPOCH.elapsed()?.as_secs();
    let seed = options.seed.unwrap_or(now);
    println!("hostile: --seed {seed}, {} s", options.seconds);
    let shape = Shape {
        program: options.bin_dir.join("anneal-controller"),
        pinned: !options.not_pinned,
        peace: Duration::from_secs(options.peace),
        lasts: Duration::from_secs(options.seconds),
        // Idle connections are closed after 60 s.
        patience: Duration::from_secs(120),
        nodes: options.nodes,
        liars: options.liars,
        silent: options.silent,
        requests_per_s: options.requests,
        held: options.held,
        seed,
    };
    let runtime = threads::runtime()?;
    let report = runtime.block_on(run(&shape, dir.path()))?;
    runtime.shutdown_background();
    print!("{report}");
    let missed = [report.missed(), report.missed_in_soak()].concat();
    missed.iter().for_each(|goal| println!("MISSED: {goal}"));
    Ok(missed.is_empty())
}
