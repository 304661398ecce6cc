//! Thousands of small worlds in which everything goes wrong.

use sim::seeds::{Sum, replay, run_all};

const SEEDS: u64 = 1000;

/// "a deterministic simulation of controller and many agents with faults from a seed, thousands of seeds in CI, a
/// failing seed replays" (issue 4): none lost, none stuck, none available unclean, and the other rules of
/// `sim::invariants`.
#[test]
fn no_rule_is_broken_by_any_seed() {
    let mut sum = Sum::default();
    run_all(0..SEEDS, None, |outcome| {
        if let Some(violation) = &outcome.violation {
            println!("seed {} {}: {}", outcome.seed, violation.rule, violation.what);
            println!("    {}", replay(outcome.seed, None));
        }
        sum.add(&outcome);
    });
    println!("{sum}");
    assert_eq!(sum.seeds, SEEDS);
    assert_eq!(sum.broken, 0, "rules were broken: {:?}", sum.rules);
}
