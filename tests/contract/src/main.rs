//! Anneal against parts that others wrote: OpenStack's command line client, ironic-python-agent and Ironic,
//! all as published on PyPI.
//!
//! ```text
//!   scenario          controller                agent                   asked by
//!   stock_client      anneal-controller         anneal-agent            openstack baremetal
//!   openstacksdk      anneal-controller         none                    openstacksdk
//!   noauth            … with auth_strategy = "noauth"
//!   metal3            anneal-controller         none                    gophercloud, as Metal3 does
//!   metalsmith        anneal-controller         none                    metalsmith
//!   nova              anneal-controller         none                    Nova's driver for bare metal
//!   ansible           anneal-controller         none                    Ansible: the plays of docs/ansible.md
//!   bifrost           anneal-controller         none                    Bifrost's inventory
//!   sushy_tools       anneal-controller         none                    sushy-tools' emulator, asked by curl
//!   replay            anneal-controller         recorded                recorded
//!   real_agent        anneal-controller         ironic-python-agent     anneal
//!   agent_steps       … reboots, other versions of managers, aborts
//!   agent_lost        … and either of both dies
//!   agent_trust       … or another agent takes its place
//!   real_ironic       Ironic                    anneal-agent            anneal
//!   power_races       both, one after the other none
//!   schemathesis      anneal-controller         none                    schemathesis
//!   ansible_modules   anneal-controller         none                    Ansible: each module     (only when named)
//!   sdk_suite         anneal-controller         none                    openstacksdk's own tests (only when named)
//!   calibration       Ironic                    ironic-python-agent     anneal                   (only when named)
//! ```
//!
//! Everything runs on loopback, on loop devices made here. Agents run in a cage (`peers/cage.sh`) in which no
//! other disk exists. `calibration` has no half of ours in it: when another scenario fails and it fails
//! too, the set-up is broken and not Anneal.

mod agents;
mod bmc;
mod clouds;
mod controller;
mod replay;
mod scenarios;
mod stock;
mod tool;
mod vendor;

use anyhow::{Context, Result, anyhow, ensure};
use clap::{Parser, ValueEnum};
use contract::{certificate, disk, ironic, network, peers, process};
use scenarios::Scenario;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Run Anneal against stock peers. Needs root, for loop devices and namespaces.
#[derive(Debug, Parser)]
struct Options {
    /// Directory with anneal, anneal-agent and anneal-controller.
    #[arg(long, default_value = "target/debug")]
    bin_dir: PathBuf,
    /// Where the peers are installed, and found again.
    #[arg(long, default_value = "target/peers")]
    peers_dir: PathBuf,
    /// Only install the peers.
    #[arg(long)]
    install_only: bool,
    /// Print the Debian packages the peers need, and end.
    #[arg(long)]
    apt_packages: bool,
    /// Keep the scratch directories of scenarios that pass, too.
    #[arg(long)]
    keep: bool,
    /// How operators authenticate, where a scenario does not say.
    #[arg(long, value_enum, default_value_t = Operators::Token)]
    operators: Operators,
    /// Only scenarios with this in their name.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Scenarios to run; all but `calibration`, `ansible_modules` and `sdk_suite` when none is named.
    scenarios: Vec<String>,
}

/// How operators authenticate ([api] auth_strategy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operators {
    /// With the token of the controller: its default.
    Token,
    /// Not at all.
    Noauth,
}

/// What a scenario works with.
#[derive(Clone)]
pub struct World {
    /// How operators authenticate.
    pub operators: Operators,
    /// Built binaries.
    pub bin_dir: PathBuf,
    /// Installed peers.
    pub peers: peers::Peers,
    /// Scratch directory of the scenario.
    pub dir: PathBuf,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("contract: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(options: Options) -> Result<bool> {
    if options.apt_packages {
        println!("{}", peers::apt_packages().join(" "));
        return Ok(true);
    }
    let chosen = scenarios::choose(&options.scenarios, &options.filter)?;
    let peers = peers::Peers::install(&options.peers_dir, peers::ALL)?;
    peers.part(peers::COLLECTION)?;
    if options.install_only {
        return Ok(true);
    }
    peers::ensure_programs()?;
    ensure!(nix::unistd::geteuid().is_root(), "loop devices and namespaces need root");
    let bin_dir = options.bin_dir.canonicalize().with_context(|| format!("{}", options.bin_dir.display()))?;
    let stage = Stage { bin_dir, peers, keep: options.keep, operators: options.operators };
    let (parallel, alone): (Vec<&Scenario>, Vec<&Scenario>) =
        chosen.into_iter().partition(|one| one.parallel);
    let mut ends: Vec<bool> = alone.into_iter().map(|one| stage.play(one)).collect::<Result<_>>()?;
    // They wait more than they work, each for an agent of its own.
    let ended: Result<Vec<bool>> = std::thread::scope(|scope| {
        let playing: Vec<_> = parallel.iter().map(|one| scope.spawn(|| stage.play(one))).collect();
        playing.into_iter().map(|one| one.join().map_err(|_| anyhow!("a scenario panicked"))?).collect()
    });
    ends.extend(ended?);
    let passed = ends.iter().filter(|passed| **passed).count();
    let failed = ends.len() - passed;
    println!("contract: {passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// What all scenarios have in common.
struct Stage {
    bin_dir: PathBuf,
    peers: peers::Peers,
    keep: bool,
    operators: Operators,
}

impl Stage {
    /// Runs a scenario and prints the result; returns whether it passed.
    fn play(&self, scenario: &Scenario) -> Result<bool> {
        let scratch = tempfile::Builder::new().prefix("anneal-contract-").tempdir()?;
        let (bin_dir, peers) = (self.bin_dir.clone(), self.peers.clone());
        let world = World { operators: self.operators, bin_dir, peers, dir: scratch.path().to_path_buf() };
        let begun = Instant::now();
        let outcome = (scenario.run)(&world);
        let took = begun.elapsed().as_secs_f64();
        // One after the other on the terminal.
        let _terminal = std::io::stdout().lock();
        match &outcome {
            Ok(()) => println!("ok    {} ({took:.1} s)", scenario.name),
            Err(error) => {
                println!("FAIL  {} ({took:.1} s): {error:#}", scenario.name);
                process::print_tails(&world.dir);
            }
        }
        if self.keep || outcome.is_err() {
            println!("      logs: {}", scratch.keep().display());
        }
        Ok(outcome.is_ok())
    }
}
