//! A database that is gone for moments, while one controller works with it.

use sim::controllers::{ControllerFault, Controllers, Disturbance};
use sim::run::run_with;
use std::time::Duration;

const SEEDS: u64 = 30;
/// How often the database is gone in the storm of a world, and for how many seconds: longer than a lease lasts, or shorter.
const OUTAGES: u8 = 100;
const LASTS: [u64; 3] = [1, 3, 14];

/// "PostgreSQL restarted, or gone for a minute: writes wait or are refused clearly, everything goes on" (issue 18).
#[test]
fn no_step_is_interrupted_by_a_database_that_comes_back() {
    let outage = |number: u8| ControllerFault {
        at: (f64::from(number) + 0.5) / f64::from(OUTAGES),
        host: 0,
        what: Disturbance::StoreGone,
        lasts: Some(Duration::from_secs(LASTS[usize::from(number) % LASTS.len()])),
    };
    let faults: Vec<ControllerFault> = (0..OUTAGES).map(outage).collect();
    for seed in 0..SEEDS {
        let controllers = Controllers { ahead: vec![0], faults: faults.clone() };
        let outcome = run_with(seed, controllers, None, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
    }
}
