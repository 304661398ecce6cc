//! The plan of a run: made from the known steps, or refused.

use super::view::View;
use super::{fail, hello};
use crate::decision::Change;
use model::history::{EventKind, Severity};
use model::image::{DIRECT, WRITE_IMAGE, is_step};
use model::plan::{BadSteps, automated_plan, deploy_plan, requested_plan, ties};
use model::request::event;
use model::run::Cursor;
use model::{CatalogueStep, PlannedStep, RunKind, StepKind};
use serde_json::{Map, Value};

/// The plan of these known steps.
pub(super) fn made(
    view: &View,
    kind: StepKind,
    known: &[CatalogueStep],
) -> Result<Vec<PlannedStep>, BadSteps> {
    match view.run.kind {
        RunKind::AutomatedClean => Ok(automated_plan(known)),
        RunKind::Deploy | RunKind::Rebuild => deploy_plan(known, &view.run.templates, &view.run.requested),
        _ => requested_plan(kind, &view.run.requested, known),
    }
}

/// With an agent, a deployment reaches ACTIVE only through a step that deploys: in `direct` the one that writes the image.
pub(super) fn nothing_is_deployed(view: &View, plan: &[PlannedStep]) -> bool {
    matches!(view.run.kind, RunKind::Deploy | RunKind::Rebuild)
        && !plan.iter().any(|planned| deploys(&planned.step))
}

fn deploys(step: &CatalogueStep) -> bool {
    is_step(step, WRITE_IMAGE) || (step.label() == "deploy.deploy" && step.provider != DIRECT)
}

/// Ironic's error text for steps that cannot be planned.
pub(super) fn refusal(view: &View, bad: &BadSteps) -> String {
    match view.run.kind {
        RunKind::Deploy | RunKind::Rebuild => {
            format!("Failed to validate the final deploy steps list: {bad}")
        }
        RunKind::Service => format!("Node failed to start the first service step: {bad}"),
        _ => format!("Node failed to start the first cleaning step: {bad}"),
    }
}

/// The run with its plan, at the plan's next step.
pub(super) fn planned(view: &View, plan: Vec<PlannedStep>, versions: Map<String, Value>) -> Change {
    let Some(kind) = view.run.kind.steps() else {
        return fail::failed(view, "internal: a plan was made for a run without steps");
    };
    if plan.is_empty() {
        // Fails closed: a broken agent that offers no step must not make a node available.
        let text = match kind {
            StepKind::Clean => {
                "no clean step is enabled on this node, so nothing would be erased; switch automated_clean \
                 off if that is wanted"
            }
            _ => "no step is enabled on this node, so nothing would be done",
        };
        return fail::failed(view, text);
    }
    if !hello::is_possible(view, &plan) {
        let text = "the hello of the instance (anneal_wait_for_hello) is awaited, and no step deploy.boot_instance starts it";
        return fail::refused(view, text);
    }
    let steps: Value = plan.iter().map(|step| Value::Object(step.wire())).collect();
    let tied = if view.run.kind.is_planned_by_us() { tied(&plan) } else { Vec::new() };
    let first = view.run.plan.is_none();
    let mut change = view.with_run(|run| {
        run.cursor = Cursor::NextStep;
        run.attempts = 0;
        run.hardware_manager_version = versions.clone();
        run.plan = Some(plan);
    });
    let info = &mut change.node.driver_internal_info;
    if !versions.is_empty() {
        info.insert("hardware_manager_version".into(), Value::Object(versions));
    }
    info.insert(kind.steps_field().into(), steps);
    for text in tied.into_iter().filter(|_| first) {
        change.events.push(event(EventKind::Step, Severity::Info, text, view.snapshot.now));
    }
    change
}

/// Steps of one interface with the same priority run in the order of their names; an event records that.
fn tied(plan: &[PlannedStep]) -> Vec<String> {
    ties(plan.iter().map(|planned| &planned.step))
        .into_iter()
        .map(|same| {
            let mut names: Vec<_> = same.iter().map(|step| step.label()).collect();
            names.sort();
            let priority = same.first().map(|step| step.priority.to_string()).unwrap_or_default();
            format!(
                "{} have the same priority {priority}: they run in the order of their names",
                names.join(", ")
            )
        })
        .collect()
}
