//! `sim`: seeds, one after another; or one, told.

use clap::Parser;

/// Runs worlds and says which rule did not hold.
#[derive(Parser)]
struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Only this seed, with everything that happens.
    #[arg(long)]
    seed: Option<u64>,
    /// Nodes of each world, instead of 1 to 4.
    #[arg(long)]
    nodes: Option<usize>,
}

fn main() {
    let args = Args::parse();
    if let Some(seed) = args.seed {
        let outcome = sim::run::run(seed, args.nodes, true);
        println!("{outcome:#?}");
        return;
    }
    for seed in 0..args.seeds {
        let outcome = sim::run::run(seed, args.nodes, false);
        if let Some(violation) = outcome.violation {
            println!("{seed} {violation:?}");
        }
    }
}
