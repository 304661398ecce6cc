//! Ask the agent for its steps, and make the plan.

use super::fail::{self, retry_or_fail};
use super::fast_track;
use super::power_loss;
use super::view::View;
use super::wait::{is_due, sleep_on, unexpected};
use super::{plan, replan};
use crate::decision::{Action, ActionError, Change, Decision, Outcome};
use agent_protocol::step::{AdvertisedSteps, Step};
use model::raid;
use model::run::Cursor;
use model::step::Argument;
use model::{Catalogue, CatalogueStep, PowerState, StepKind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) fn decide(view: &View) -> Decision {
    match view.run.kind.steps() {
        Some(kind) if is_due(view.snapshot) => {
            Decision::Act(match view.run.attempts < view.settings.max_attempts {
                true => Action::AskSteps(kind),
                // The agent could not be reached: its node may have lost power.
                false => Action::ReadPower,
            })
        }
        Some(_) => sleep_on(&view.snapshot.node),
        None => Decision::Record(Box::new(view.advance(Cursor::NextStep))),
    }
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    const WHAT: &str = "The agent could not be asked for its steps";
    if *action == Action::ReadPower {
        let error = view.snapshot.node.last_error.as_deref().unwrap_or_default();
        return match outcome {
            Outcome::Power(PowerState::Off) => power_loss::boots_again(view, "the node lost power"),
            _ => fail::failed(view, &format!("{WHAT}: {error}")),
        };
    }
    if let Some(change) = fast_track::unanswered(view, &outcome) {
        return change;
    }
    match outcome {
        Outcome::Steps(steps) => learnt(view, &steps),
        Outcome::Busy(text) => {
            retry_or_fail(view, ActionError { text, retryable: true, unreachable: false }, WHAT)
        }
        Outcome::Failed(error)
            if error.unreachable && view.run.attempts + 1 >= view.settings.max_attempts =>
        {
            let mut change = view.with_run(|run| run.attempts += 1);
            change.node.last_error = Some(error.text);
            change
        }
        Outcome::Failed(error) => retry_or_fail(view, error, WHAT),
        other => fail::failed(view, &unexpected("asking for steps", &other).text),
    }
}

/// Store the catalogues; make the plan, or check whether the old one still holds.
fn learnt(view: &View, reported: &BTreeMap<StepKind, AdvertisedSteps>) -> Change {
    let now = view.snapshot.now;
    let (Some(kind), Ok(able)) = (view.run.kind.steps(), &view.snapshot.abilities) else {
        return fail::failed(view, "internal: steps were learnt for a run that has none");
    };
    let Some(advertised) = reported.get(&kind) else {
        return fail::failed(view, "internal: the agent was asked for other steps than the run needs");
    };
    // A catalogue has the agent's own priorities: overrides may change before the next boot.
    let catalogues = reported.iter().map(|(kind, steps)| {
        let hardware_manager_version = versions(steps);
        (*kind, Catalogue { steps: catalogue_steps(steps), hardware_manager_version, learnt_at: now })
    });
    let mut known = view.settings.override_priorities(kind, catalogue_steps(advertised));
    let catalogues: Vec<(StepKind, Catalogue)> = catalogues.collect();
    // A step that the deploy interface declares is not taken from the agent, as in Ironic: both offer `write_image`.
    let declared = able.out_of_band(kind);
    known.retain(|step| !declared.iter().any(|ours| ours.label() == step.label()));
    known.extend_from_slice(declared);
    let mut change = Change { catalogues, ..with_steps(view, kind, &known, versions(advertised)) };
    if let Some(run) = &mut change.node.run {
        // It is this run's ramdisk now.
        run.ramdisk_kept = None;
    }
    change
}

/// The run with a plan for these steps, which managers of these versions offer.
fn with_steps(view: &View, kind: StepKind, known: &[CatalogueStep], versions: Map<String, Value>) -> Change {
    let changed = replan::versions_changed(view.run, &versions);
    let plan = match replan::kept_plan(view, changed) {
        Some(plan) => Ok(plan.to_vec()),
        None => plan::made(view, kind, known),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(bad) => return fail::refused(view, &plan::refusal(view, &bad)),
    };
    if let Some(change) = replan::given_up(view).filter(|_| changed) {
        return change;
    }
    if plan::nothing_is_deployed(view, &plan) {
        let text = "the step that deploys (deploy.write_image of direct) is switched off, so that nothing would be \
                    deployed; the node has an agent and cannot become active without an image";
        return fail::refused(view, text);
    }
    let mut change = plan::planned(view, plan, versions);
    if changed {
        replan::on_new_versions(view, &mut change);
    }
    change
}

fn versions(steps: &AdvertisedSteps) -> Map<String, Value> {
    steps.hardware_manager_version.iter().map(|(name, v)| (name.clone(), v.clone().into())).collect()
}

/// The agent's steps as the catalogue stores them, each with the hardware manager that advertised it.
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
