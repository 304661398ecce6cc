//! The scenarios.

use explore::scenario::{Scenario, StepSpec};
use explore::search::explore;
use model::RunKind;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

static STATES: AtomicUsize = AtomicUsize::new(0);

/// Explore, and tell how much there was; past libtest's capture, so that it is seen when all is well.
fn check(scenario: &Scenario) {
    match explore(scenario) {
        Ok(explored) => {
            let all = STATES.fetch_add(explored.states, Ordering::Relaxed) + explored.states;
            let line = format!(
                "explore: {}: {} states, {} moves, {} disturbances at most, {:.1} s, ends {:?} ({all} states so far)\n",
                scenario.name,
                explored.states,
                explored.moves,
                scenario.budget,
                explored.took.as_secs_f64(),
                explored.ends,
            );
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        }
        Err(broken) => panic!("{broken}"),
    }
}

#[test]
fn automated_cleaning() {
    let steps = [StepSpec::agent("deploy.metadata"), StepSpec::agent("deploy.erase").once()];
    check(&Scenario::new("automated_cleaning", RunKind::AutomatedClean, &steps, 2));
}
