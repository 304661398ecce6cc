//! What a conductor did: its passes, and the steps that ended in what it stored.

use crate::counts::Counts;
use crate::labels;
use conductor::Observer;
use model::{Cursor, Node, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Counts what it hears.
pub struct MeteredPasses(pub Arc<Counts>);

impl Observer for MeteredPasses {
    fn pass_ended(&self, waited: Duration, took: Duration, panicked: bool) {
        self.0.pass_waits.took([], waited);
        self.0.pass_times.took([], took);
        if panicked {
            self.0.panics.count([]);
        }
    }

    fn stored(&self, before: &Node, after: &Node) {
        let Some(run) = &after.run else { return };
        let known = |id: &str| {
            let before = before.run.as_ref().filter(|before| before.id == run.id);
            before.is_some_and(|before| before.results.iter().any(|result| result.command_id == id))
        };
        for result in run.results.iter().filter(|result| !known(&result.command_id)) {
            let kind = run.kind.steps().map_or(labels::OTHER, |kind| kind.as_str());
            let planned = run.plan.as_ref().and_then(|plan| plan.get(result.index));
            let step = planned.map_or(labels::OTHER, |step| labels::step(&step.label()));
            let outcome = if result.error.is_some() { "failed" } else { "succeeded" };
            self.0.steps.count([kind, step, outcome]);
            if let Some(began) = began(before) {
                self.0.step_times.took([kind, step], result.at.since(began));
            }
            self.0.erases.ended(&result.result);
        }
    }
}

/// When the step began that the node is at.
fn began(node: &Node) -> Option<Timestamp> {
    match node.run.as_ref()?.cursor {
        Cursor::Issued { at, .. } | Cursor::OutOfBand { at, .. } => Some(at),
        Cursor::Pause { since, .. } | Cursor::AwaitHello { since, .. } => Some(since),
        _ => None,
    }
}
