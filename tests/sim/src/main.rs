//! `sim`: many seeds, or one of them with everything that happens.

use clap::Parser;
use sim::controllers::Controllers;
use sim::fleet::{self, Size};
use sim::seeds;
use std::process::ExitCode;

/// Runs worlds with faults from a seed, and says which rule did not hold.
#[derive(Parser)]
#[command(name = "sim")]
struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run only this seed, and print everything that happens.
    #[arg(long)]
    seed: Option<u64>,
    /// Nodes of each world, instead of 1 to 4.
    #[arg(long)]
    nodes: Option<usize>,
    /// Several controllers in every world, not in every other one.
    #[arg(long)]
    several: bool,
    /// Only the fleet: many nodes on one way, with the controller and agents killed 50 times each.
    #[arg(long)]
    fleet: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let loud = args.seed.is_some();
    if args.fleet {
        let size = Size { nodes: args.nodes.unwrap_or(200), controller_kills: 50, agent_kills: 50 };
        let arrival = fleet::run(args.seed.unwrap_or_default(), size, loud);
        println!("{arrival}");
        return code(arrival.outcome.violation.is_none());
    }
    if let Some(seed) = args.seed {
        if loud {
            seeds::listen();
        }
        let outcome = sim::run::run_with(seed, Controllers::of_world(seed, args.several), args.nodes, true);
        println!("{outcome:#?}");
        return code(outcome.violation.is_none());
    }
    let sum = seeds::run_all(args.first..args.first.saturating_add(args.seeds), args.nodes, args.several);
    println!("{sum}");
    code(sum.broken == 0)
}

fn code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
