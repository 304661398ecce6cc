//! `cargo xtask demo`: two emulated servers with old data, taken to clean and available by the real
//! controller, the real agent and the real command line, and looked at from outside afterwards.
//!
//! [`story`] runs the demonstration in order; [`observe`] measures it by asking the API as any client could;
//! [`disks`] makes the disks and keeps what they held; [`report`] judges and writes it down.

mod circle;
mod disks;
mod observe;
mod report;
mod story;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

/// Two emulated servers, from old data to clean and available. Needs root: it makes a network namespace.
#[derive(Debug, Parser)]
#[command(name = "anneal-demo")]
pub struct Options {
    /// Write what was measured and found to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Leave everything running at the end, until interrupted.
    #[arg(long)]
    keep: bool,
    /// A raw disk image of yours, used as it is in place of a made-up disk, erased, and left to be
    /// inspected. Dealt to the two nodes in turn; may be repeated.
    #[arg(long, value_name = "FILE:nvme|sata|scsi|virtio")]
    disk: Vec<disks::Brought>,
    /// A whole-disk image with an operating system that runs cloud-init. After the cleaning both nodes get it, run it and
    /// are erased again.
    #[arg(long, value_name = "FILE", conflicts_with = "disk")]
    os_image: Option<PathBuf>,
    /// Where the made-up disks are kept while the demo runs (2.4 GB).
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    disks::check(&options.disk)?;
    if let Some(file) = &options.report {
        // Found out now and not after a minute; what is there is kept until there is something new.
        let opened = std::fs::File::options().create(true).append(true).open(file);
        opened.with_context(|| format!("cannot write {}", file.display()))?;
    }
    // Short, for the sockets in it.
    let scratch = std::env::temp_dir().join(format!("anneal-demo-{}", std::process::id()));
    let pool = options.dir.clone().unwrap_or_else(|| scratch.join("disks"));
    for dir in [&scratch, &pool] {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    let namespace = format!("anneal-demo-{}", std::process::id());
    let result = lab::site::in_namespace(&namespace, || story::run(options, &namespace, &scratch, &pool));
    if result.is_ok() {
        std::fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    } else {
        eprintln!("logs are left in {}", scratch.display());
    }
    result
}
