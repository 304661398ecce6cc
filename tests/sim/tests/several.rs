//! Controllers that share a store, in every world.

use sim::controllers::Controllers;
use sim::run::run_with;

/// Worlds of the same stream as those of `seeds.rs`, which has more of them.
const SEEDS: u64 = 60;

#[test]
fn controllers_that_die_pause_and_are_cut_off_break_no_rule() {
    let mut takeovers = 0;
    for seed in 0..SEEDS {
        let outcome = run_with(seed, Controllers::of_world(seed, true), None, false);
        assert_eq!(outcome.violation, None, "seed {seed}: {:?}", outcome.faults.controllers);
        takeovers += outcome.takeovers;
    }
    assert!(takeovers > 10, "{takeovers}");
}
