//! Learning the agent's steps, and making the plan.

use super::run::View;
use super::{fail, is_due, sleep_on};
use crate::decision::{Action, ActionError, Change, Decision, Outcome};
use agent_protocol::step::{AdvertisedSteps, Step};
use model::history::{EventKind, Severity};
use model::plan::{BadSteps, automated_plan, deploy_plan, requested_plan, ties};
use model::raid;
use model::request::event;
use model::run::Cursor;
use model::step::Argument;
use model::{Catalogue, CatalogueStep, PlannedStep, RunKind, StepKind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) fn decide(view: &View) -> Decision {
    match view.run.kind.steps() {
        Some(kind) if is_due(view.snapshot) => Decision::Act(Action::AskSteps(kind)),
        Some(_) => sleep_on(&view.snapshot.node),
        None => Decision::Record(Box::new(view.advance(Cursor::NextStep))),
    }
}

pub(super) fn apply_outcome(view: &View, outcome: Outcome) -> Change {
    const WHAT: &str = "The agent could not be asked for its steps";
    match outcome {
        Outcome::Steps(steps) => learnt(view, &steps),
        Outcome::Busy(text) => {
            view.retry_or_fail(ActionError { text, retryable: true, unreachable: false }, WHAT)
        }
        Outcome::Failed(error) => view.retry_or_fail(error, WHAT),
        other => fail::failed(view, &super::unexpected("asking for steps", &other).text),
    }
}

/// Keep the catalogues; make the plan, or see whether the old one still holds.
fn learnt(view: &View, told: &BTreeMap<StepKind, AdvertisedSteps>) -> Change {
    let now = view.snapshot.now;
    let (Some(kind), Ok(able)) = (view.run.kind.steps(), &view.snapshot.abilities) else {
        return fail::failed(view, "internal: steps were learnt for a run that has none");
    };
    let Some(advertised) = told.get(&kind) else {
        return fail::failed(view, "internal: the agent was asked for other steps than the run needs");
    };
    let versions = versions(advertised);
    let catalogues = told.iter().map(|(kind, steps)| {
        let known = view.settings.override_priorities(*kind, catalogue_steps(steps));
        (*kind, Catalogue { steps: known, hardware_manager_version: self::versions(steps), learnt_at: now })
    });
    let catalogues: Vec<(StepKind, Catalogue)> = catalogues.collect();
    let mut known: Vec<CatalogueStep> =
        catalogues.iter().filter(|(of, _)| *of == kind).flat_map(|(_, c)| c.steps.clone()).collect();
    known.extend_from_slice(able.out_of_band(kind));

    // A plan that was made without the agent knows no versions.
    let before = &view.run.hardware_manager_version;
    let changed = view.run.plan.is_some() && !before.is_empty() && *before != versions;
    let restart = changed && view.run.kind == RunKind::AutomatedClean;
    let plan = match &view.run.plan {
        Some(plan) if !restart => Ok(plan.clone()),
        _ => made(view, kind, &known),
    };
    let mut change = match plan {
        Err(bad) => fail::refused(view, &self::bad(view, &bad)),
        Ok(_) if changed && view.run.replans >= view.settings.max_replans => {
            let doing = view.run.kind.doing();
            fail::failed(view, &format!("the hardware managers of the agent kept changing during {doing}"))
        }
        Ok(plan) if nothing_is_deployed(view, &plan) => {
            let text = "deploy.deploy is switched off, so that nothing would be deployed; the node has an \
                        agent and cannot become active without an image";
            fail::refused(view, text)
        }
        Ok(plan) => {
            let mut change = planned(view, plan, versions);
            if let Some(run) = change.node.run.as_mut().filter(|_| changed) {
                // A changed manager answers the old command id with a mismatch: the next one must be new.
                run.replans += 1;
                run.checkpoint = None;
                if restart {
                    run.results.clear();
                    run.index = None;
                }
            }
            if restart {
                let text = "hardware managers changed: automated cleaning starts again with fresh steps";
                change.events.push(event(EventKind::Step, Severity::Info, text.into(), now));
            }
            change
        }
    };
    change.catalogues = catalogues;
    change
}

fn made(view: &View, kind: StepKind, known: &[CatalogueStep]) -> Result<Vec<PlannedStep>, BadSteps> {
    match view.run.kind {
        RunKind::AutomatedClean => Ok(automated_plan(known)),
        RunKind::Deploy | RunKind::Rebuild => deploy_plan(known, &view.run.templates, &view.run.requested),
        _ => requested_plan(kind, &view.run.requested, known),
    }
}

/// With an agent a deployment ends in ACTIVE only by the step that deploys.
fn nothing_is_deployed(view: &View, plan: &[PlannedStep]) -> bool {
    matches!(view.run.kind, RunKind::Deploy | RunKind::Rebuild)
        && !plan.iter().any(|planned| planned.label() == "deploy.deploy")
}

/// What Ironic says of steps that cannot be planned.
pub(super) fn bad(view: &View, bad: &BadSteps) -> String {
    match view.run.kind {
        RunKind::Deploy | RunKind::Rebuild => {
            format!("Failed to validate the final deploy steps list: {bad}")
        }
        RunKind::Service => format!("Node failed to start the first service step: {bad}"),
        _ => format!("Node failed to start the first cleaning step: {bad}"),
    }
}

/// The run with its plan, at the next step of it.
pub(super) fn planned(view: &View, plan: Vec<PlannedStep>, versions: Map<String, Value>) -> Change {
    let Some(kind) = view.run.kind.steps() else {
        return fail::failed(view, "internal: a plan was made for a run without steps");
    };
    if plan.is_empty() {
        // Fails closed: a broken agent that offers nothing must not make a node available.
        let text = match kind {
            StepKind::Clean => {
                "no clean step is enabled on this node, so nothing would be erased; switch automated_clean \
                 off if that is wanted"
            }
            _ => "no step is enabled on this node, so nothing would be done",
        };
        return fail::failed(view, text);
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

/// Equal priorities within one interface, known only now: they run by name, and that is recorded.
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

fn versions(steps: &AdvertisedSteps) -> Map<String, Value> {
    steps.hardware_manager_version.iter().map(|(name, v)| (name.clone(), v.clone().into())).collect()
}

/// The agent's steps as the catalogue keeps them, each with who advertised it.
fn catalogue_steps(steps: &AdvertisedSteps) -> Vec<CatalogueStep> {
    let of = |provider: &str, step: &Step| {
        let mut known = CatalogueStep {
            interface: step.interface.clone(),
            step: step.step.clone(),
            priority: step.priority.clone(),
            abortable: step.abortable,
            reboot_requested: step.reboot_requested,
            idempotent: step.other.get("idempotent").and_then(Value::as_bool).unwrap_or(false),
            args: step
                .argsinfo
                .iter()
                .flatten()
                .map(|(name, arg)| {
                    let arg = Argument {
                        description: arg.description.clone(),
                        required: arg.required,
                        schema: arg.schema.clone(),
                    };
                    (name.clone(), arg)
                })
                .collect(),
            requires_ramdisk: true,
            in_band: true,
            provider: provider.to_owned(),
            raw: match serde_json::to_value(step) {
                Ok(Value::Object(raw)) => raw,
                _ => Map::new(),
            },
        };
        raid::offer_flags(&mut known);
        known
    };
    steps
        .clean_steps
        .iter()
        .flat_map(|(provider, list)| list.iter().map(move |step| of(provider, step)))
        .collect()
}
