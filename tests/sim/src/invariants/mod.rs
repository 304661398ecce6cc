//! What must hold, one function a rule. Each cites the sentence that it stands for; sentences without a source
//! are of issue 4, "Crash-proof". They are judged at every stored write, at the beginning of every step, and at
//! the end of the world.
//!
//! ```text
//!  rows.rs          what any two writes of a row must have in common: versions, leases, history, flags
//!  ground_truth.rs  what a row says against what really happened: successes, plans, disks
//!  basis.rs         what a node is AVAILABLE on, against what really happened
//!  reasons.rs       the stated reason of a failure, against the true one
//!  steps.rs         steps as they begin: none twice, one at a time
//!  leases.rs        which controller may act on a node
//!  tokens.rs        which agent may send heartbeats for a node
//!  why.rs           what is advised, against what is accepted
//!  end.rs           when everything has come to rest
//! ```

mod basis;
pub mod end;
mod ground_truth;
mod leases;
mod reasons;
mod rows;
mod steps;
mod tokens;
mod why;

pub use leases::{
    InCall, begun, commanded, left_behind, released, renewed, stored_in_addition, taken, watch_due,
};
pub use tokens::{forgotten, granted, heard};

use crate::ground_truth::Chronicle;
use crate::held;
use crate::machine::Machine;
use crate::world::World;
use model::{Event, Node, Timestamp};
use store::Lease;

/// The writer of a row.
#[derive(Debug, Clone, Copy)]
pub struct By {
    /// The conductor's lease; none: the API.
    pub lease: Option<Lease>,
}

/// One stored write of a row, with all that can be known about it.
struct Write<'a> {
    machine: &'a Machine,
    old: &'a Node,
    new: &'a Node,
    read_at: u64,
    events: &'a [Event],
    by: By,
    chronicle: &'a Chronicle,
    interruptions: &'a [Timestamp],
    calm: Option<Timestamp>,
    /// When the state before this write began.
    began: Option<Timestamp>,
    max_replans: u32,
    now: Timestamp,
}

/// Why a rule does not hold.
type Broken = Result<(), String>;

/// A rule over one write.
type Rule = (&'static str, fn(&Write) -> Broken);

/// The rules over each write of a row.
const RULES: &[Rule] = &[
    ("a_write_is_at_the_version_that_was_read", rows::a_write_is_at_the_version_that_was_read),
    ("a_conductor_writes_under_the_newest_lease", rows::a_conductor_writes_under_the_newest_lease),
    ("history_is_contiguous", rows::history_is_contiguous),
    ("every_arrow_is_in_the_table", rows::every_arrow_is_in_the_table),
    ("a_stable_state_has_no_target", rows::a_stable_state_has_no_target),
    ("work_has_a_run_and_rest_has_none", rows::work_has_a_run_and_rest_has_none),
    ("maintenance_is_set_by_faults_and_users", rows::maintenance_is_set_by_faults_and_users),
    ("a_retired_node_is_never_available", rows::a_retired_node_is_never_available),
    ("no_progress_is_lost", rows::no_progress_is_lost),
    ("a_controller_that_lives_interrupts_no_step", rows::a_controller_that_lives_interrupts_no_step),
    ("no_success_is_invented", ground_truth::no_success_is_invented),
    ("no_step_is_left_out_of_the_plan", ground_truth::no_step_is_left_out_of_the_plan),
    ("no_step_is_skipped", ground_truth::no_step_is_skipped),
    ("what_a_step_made_is_written_with_it", ground_truth::what_a_step_made_is_written_with_it),
    ("nothing_is_available_unclean", ground_truth::nothing_is_available_unclean),
    ("available_has_the_stored_basis_and_no_other", basis::available_has_the_stored_basis_and_no_other),
    ("the_basis_is_true", basis::the_basis_is_true),
    (
        "available_after_an_erase_has_evidence_of_every_disk",
        basis::available_after_an_erase_has_evidence_of_every_disk,
    ),
    ("nothing_is_active_undeployed", ground_truth::nothing_is_active_undeployed),
    ("a_failure_states_the_true_reason", reasons::a_failure_states_the_true_reason),
    ("every_row_has_an_answer_that_is_accepted", why::every_row_has_an_answer_that_is_accepted),
];

/// A node was enrolled.
pub fn enrolled(world: &World, new: &Node) {
    let Some(machine) = world.machine(new.uuid) else { return };
    held(&world.ground_truth).machines[machine.index].row = Some(new.clone());
}

/// A row was written.
pub fn written(world: &World, read_at: u64, new: &Node, events: &[Event], by: By) {
    let Some(machine) = world.machine(new.uuid) else { return };
    let calm = *held(&world.calm_since);
    let mut ground_truth = held(&world.ground_truth);
    trace(world, machine, new, events, by);
    let interruptions = ground_truth.interruptions.clone();
    let chronicle = &mut ground_truth.machines[machine.index];
    steps::note(chronicle, new, by);
    let Some(old) = chronicle.row.replace(new.clone()) else { return };
    let began = chronicle.changed_at;
    if old.provision_updated_at != new.provision_updated_at {
        chronicle.changed_at = new.provision_updated_at;
    }
    let write = Write {
        machine,
        old: &old,
        new,
        read_at,
        events,
        by,
        chronicle,
        interruptions: &interruptions,
        calm,
        began,
        max_replans: world.settings.max_replans,
        now: world.now(),
    };
    for (rule, holds) in RULES {
        if let Err(what) = holds(&write) {
            world.violated(rule, format!("{}: {what}", machine.name));
        }
    }
}

fn trace(world: &World, machine: &Machine, new: &Node, events: &[Event], by: By) {
    world.trace.note(|| {
        let cursor = new.run.as_ref().map(|run| {
            let cursor = format!("{:?}", run.cursor);
            let flags = if run.abort { " abort" } else { "" };
            format!("{} {cursor} try {} done {}{flags}", run.kind.as_str(), run.attempts, run.results.len())
        });
        let who = if by.lease.is_some() { "conductor" } else { "api" };
        let wait = new.wait.as_ref().map(|wait| wait.reason.as_str()).unwrap_or_default();
        let texts: Vec<&str> = events.iter().map(|event| event.text.as_str()).collect();
        format!(
            "{} {who} writes v{} {:?} [{}] wait {wait:?} {texts:?}",
            machine.name,
            new.version,
            new.provision_state,
            cursor.unwrap_or_default()
        )
    });
}
