//! A seed is one story.

use sim::run::{run, run_hashed};

/// The hash is over every stored write and its time. Debugging rests on this.
#[test]
fn a_seed_writes_the_same_whenever_it_is_run() {
    let sums = |seed: u64| {
        let outcome = run_hashed(seed);
        (outcome.hash.unwrap(), outcome.writes, outcome.steps, outcome.seconds)
    };
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 0..30 {
        let first = sums(seed);
        assert!(first.1 > 0, "seed {seed} stored nothing");
        assert_eq!(first, sums(seed), "seed {seed} is not one story");
        hashes.insert(first.0);
    }
    assert_eq!(hashes.len(), 30, "two seeds are one story");
}

/// A conductor that is waiting sleeps: it looks at what is due now and then, not all the time.
#[test]
fn the_loop_does_not_turn_without_a_cause() {
    for seed in 0..30 {
        let outcome = run(seed, None, false);
        let looks = outcome.looks as f64 / outcome.writes as f64;
        assert!(looks < 5.0, "seed {seed}: {} looks for {} writes", outcome.looks, outcome.writes);
    }
}
