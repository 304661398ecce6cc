//! Rules over steps as they really begin.

use super::By as Writer;
use crate::ground_truth::{By, Chronicle, End, Execution};
use crate::held;
use crate::machine::Machine;
use crate::offers::Offer;
use crate::world::World;
use model::{Node, RunKind};

impl World {
    /// A step begins under the command `id`.
    pub fn step_begins(&self, machine: &Machine, id: &str, offer: &Offer, by: By) {
        self.trace.note(|| format!("{} step {} really begins ({id})", machine.name, offer.label()));
        let mut ground_truth = held(&self.ground_truth);
        let chronicle = &mut ground_truth.machines[machine.index];
        let run = chronicle.row.as_ref().and_then(|row| row.run.as_ref());
        // Only automated cleaning starts anew with fresh steps when hardware managers change.
        let pass = run.filter(|run| run.kind == RunKind::AutomatedClean).map_or(0, |run| run.replans);
        let execution = Execution {
            id: id.to_owned(),
            label: offer.label(),
            idempotent: offer.idempotent,
            by,
            run: run.map(|run| run.id),
            pass,
            index: run.and_then(|run| run.index),
            began: self.now(),
            ended: None,
        };
        for (rule, broken) in [
            ("no_step_that_may_not_be_repeated_runs_twice", repeated(chronicle, &execution)),
            ("one_command_at_a_time", concurrent(chronicle, &execution)),
            ("an_id_is_one_execution", again(chronicle, &execution)),
        ] {
            if let Some(what) = broken {
                self.violated(rule, format!("{} {}: {what}", machine.name, execution.label));
            }
        }
        chronicle.executions.push(execution);
    }
}

/// "none that is not idempotent runs twice".
fn repeated(chronicle: &Chronicle, next: &Execution) -> Option<String> {
    let place = |of: &Execution| (of.run, of.pass, of.index, of.label.clone());
    let before = chronicle.executions.iter().find(|before| place(before) == place(next))?;
    // Its own declaration, or what the agent of that time said of it.
    let repeatable = before.idempotent && next.idempotent;
    (!repeatable).then(|| format!("ran before as {} and ended {:?}", before.id, before.ended))
}

/// An agent runs one command at a time, and so does a controller for one node. What a controller was doing that has lost the node is
/// judged in `leases.rs`.
fn concurrent(chronicle: &Chronicle, next: &Execution) -> Option<String> {
    let running = chronicle.executions.iter().find(|other| other.ended.is_none() && other.by == next.by)?;
    // A step in the BMC goes on when its run was aborted.
    let abandoned = running.by == By::Bmc && running.run != next.run;
    (!abandoned).then(|| format!("{} still runs as {}", running.label, running.id))
}

/// "asks the agent by that id": one id, one execution.
fn again(chronicle: &Chronicle, next: &Execution) -> Option<String> {
    let before = chronicle.executions.iter().find(|before| before.id == next.id)?;
    let cut_short = before.ended.is_some_and(|(_, end)| end == End::Interrupted);
    (!cut_short).then(|| format!("id {} ran before", next.id))
}

/// Note what a write of the API means for later judgements.
pub fn note(chronicle: &mut Chronicle, new: &Node, by: Writer) {
    if let Some(run) = new.run.as_ref().filter(|run| run.abort && by.lease.is_none()) {
        chronicle.aborted.insert(run.id);
    }
}
