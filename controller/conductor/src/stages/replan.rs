//! Hardware managers changed during a run. They change with another ramdisk; the agent shows it by other versions when it
//! reports its steps, or by refusing a command. Automated cleaning then starts again with fresh steps. Any other run
//! keeps its plan, which a user or a template chose, and runs the current step again.

use super::fail;
use super::transition::at_work;
use super::view::View;
use crate::decision::Change;
use model::history::{EventKind, Severity};
use model::request::event;
use model::run::{Cursor, Run};
use model::{PlannedStep, RunKind};
use serde_json::{Map, Value};

const CLEANED_AGAIN: &str = "hardware managers changed: automated cleaning starts again with fresh steps";

/// Whether the agent's versions differ from those that the plan was made with. A plan that was made without an agent has
/// none.
pub(super) fn versions_changed(run: &Run, versions: &Map<String, Value>) -> bool {
    let before = &run.hardware_manager_version;
    run.plan.is_some() && !before.is_empty() && before != versions
}

/// The plan that the run keeps with these versions; `None` if a new one has to be made.
pub(super) fn kept_plan<'a>(view: &View<'a>, changed: bool) -> Option<&'a [PlannedStep]> {
    view.run.plan.as_deref().filter(|_| !(changed && starts_again(view.run)))
}

/// The failure of a run whose hardware managers have changed too often.
pub(super) fn given_up(view: &View) -> Option<Change> {
    let doing = view.run.kind.doing();
    let text = format!("the hardware managers of the agent kept changing during {doing}");
    (view.run.replans >= view.settings.max_replans).then(|| fail::failed(view, &text))
}

/// The agent reported other versions together with its steps, and `change` holds the plan: discard what belongs to the
/// versions before.
pub(super) fn on_new_versions(view: &View, change: &mut Change) {
    if let Some(run) = &mut change.node.run {
        discard(run);
    }
    if starts_again(view.run) {
        let text = CLEANED_AGAIN.to_owned();
        change.events.push(event(EventKind::Step, Severity::Info, text, view.snapshot.now));
    }
}

/// The agent refused a command because its hardware managers changed: learn its steps again.
pub(super) fn on_refused_command(view: &View) -> Change {
    if let Some(change) = given_up(view) {
        return change;
    }
    let again = starts_again(view.run);
    let mut change = view.advance(Cursor::LearnSteps);
    if let Some(run) = &mut change.node.run {
        discard(run);
        // This change is counted; the new versions must not be counted as another one.
        run.hardware_manager_version.clear();
        run.plan = run.plan.take().filter(|_| !again);
    }
    let cause = if again { CLEANED_AGAIN } else { "hardware managers changed: the step is run again" };
    at_work(&mut change, cause, view.snapshot.now);
    change
}

fn starts_again(run: &Run) -> bool {
    run.kind == RunKind::AutomatedClean
}

/// Count the change, which also gives the next command a new id: the agent answers the old id with its refusal. Another
/// version may read a checkpoint differently.
fn discard(run: &mut Run) {
    run.replans += 1;
    run.checkpoint = None;
    if starts_again(run) {
        run.results.clear();
        run.index = None;
    }
}
