//! Learning the steps, and one step after the other: written down, sent, asked for, stored.

use super::cleaning::View;
use super::{end, is_due, issued, pass, sleep_on};
use crate::decision::{Change, Decision, Deed, Outcome, Trouble};
use agent_protocol::step::{AdvertisedSteps, Step};
use model::history::{EventKind, Severity};
use model::provision::Verb;
use model::request::event;
use model::run::{Cursor, RunKind};
use model::step::{Argument, automated_plan, manual_plan};
use model::{Catalogue, CatalogueStep, ProvisionState};
use serde_json::{Map, Value};

pub(super) fn decide(view: &View) -> Decision {
    match &view.run.cursor {
        Cursor::LearnSteps if is_due(view.snapshot) => Decision::Act(Deed::AskSteps),
        Cursor::NextStep => Decision::Record(Box::new(next_step(view))),
        Cursor::Issued { .. } => issued::decide(view),
        _ => sleep_on(&view.snapshot.node),
    }
}

pub(super) fn absorb(view: &View, deed: &Deed, outcome: Outcome) -> Change {
    const WHAT: &str = "The agent could not be asked for its steps";
    match (deed, outcome) {
        (Deed::AskSteps, Outcome::Steps(steps)) => learnt(view, &steps),
        (Deed::AskSteps, Outcome::Busy(text)) => {
            view.retry_or_fail(Trouble { text, retryable: true, unreachable: false }, WHAT)
        }
        (Deed::AskSteps, Outcome::Failed(trouble)) => view.retry_or_fail(trouble, WHAT),
        (deed, outcome) => issued::absorb(view, deed, outcome),
    }
}

/// Keep the catalogue; make the plan, or see whether the old one still holds.
fn learnt(view: &View, steps: &AdvertisedSteps) -> Change {
    let now = view.snapshot.now;
    let versions: Map<String, Value> =
        steps.hardware_manager_version.iter().map(|(name, v)| (name.clone(), v.clone().into())).collect();
    let known = view.settings.override_priorities(catalogue_steps(steps));
    let catalogue =
        Catalogue { steps: known.clone(), hardware_manager_version: versions.clone(), learnt_at: now };

    let changed = view.run.plan.is_some() && view.run.hardware_manager_version != versions;
    let plan = match (view.run.kind, &view.run.plan) {
        (RunKind::AutomatedClean, Some(plan)) if !changed => Ok(plan.clone()),
        (RunKind::AutomatedClean, _) => Ok(automated_plan(&known)),
        (RunKind::ManualClean, Some(plan)) => Ok(plan.clone()),
        (RunKind::ManualClean, None) => manual_plan(&view.run.requested, &known),
    };
    let mut change = match plan {
        Err(bad) => end::refused(view, &format!("Node failed to start the first cleaning step: {bad}")),
        Ok(_) if changed && view.run.replans >= view.settings.max_replans => {
            end::failed(view, "the hardware managers of the agent kept changing during cleaning")
        }
        Ok(plan) if plan.is_empty() => {
            // Fails closed: a broken agent that offers nothing must not make a node available.
            let text = "no clean step is enabled on this node, so nothing would be erased; switch automated_clean off if that is wanted";
            end::failed(view, text)
        }
        Ok(plan) => {
            let restart = changed && view.run.kind == RunKind::AutomatedClean;
            // A changed manager answers the old command id with a mismatch: the next one must be new.
            let mut change = view.with_run(|run| {
                run.cursor = Cursor::NextStep;
                run.attempts = 0;
                run.hardware_manager_version = versions.clone();
                run.replans += u32::from(changed);
                if restart {
                    run.results.clear();
                    run.index = None;
                }
                run.plan = Some(plan.clone());
            });
            let info = &mut change.node.driver_internal_info;
            info.insert("hardware_manager_version".into(), Value::Object(versions));
            info.insert("clean_steps".into(), plan.iter().map(|step| Value::Object(step.wire())).collect());
            if restart {
                let text = "hardware managers changed: automated cleaning starts again with fresh steps";
                change.events.push(event(EventKind::Step, Severity::Info, text.into(), now));
            }
            change
        }
    };
    change.catalogue = Some(catalogue);
    change
}

/// The agent's steps as the catalogue keeps them, each with who advertised it.
fn catalogue_steps(steps: &AdvertisedSteps) -> Vec<CatalogueStep> {
    let of = |provider: &str, step: &Step| CatalogueStep {
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
                let arg = Argument { description: arg.description.clone(), required: arg.required };
                (name.clone(), arg)
            })
            .collect(),
        requires_ramdisk: true,
        provider: provider.to_owned(),
        raw: match serde_json::to_value(step) {
            Ok(Value::Object(raw)) => raw,
            _ => Map::new(),
        },
    };
    steps
        .clean_steps
        .iter()
        .flat_map(|(provider, list)| list.iter().map(move |step| of(provider, step)))
        .collect()
}

/// Write the command of the next step down, or see that there is none left.
fn next_step(view: &View) -> Change {
    let now = view.snapshot.now;
    let Some(index) = view.run.next_index() else {
        let mut change = view.advance(Cursor::TearDown);
        if view.snapshot.node.provision_state == ProvisionState::CleanWait {
            pass(&mut change, Verb::Resume, "every step has succeeded", now);
        }
        return change;
    };
    // Deterministic: the same decision taken twice names the same command.
    let command_id = format!("{}-{index}-{}-{}", view.run.id, view.run.replans, view.run.interruptions);
    let boot_id = view.snapshot.contact.state.as_ref().map(|state| state.boot_id.clone());
    let mut change = view.with_run(|run| {
        run.index = Some(index);
        run.cursor = Cursor::Issued { command_id: command_id.clone(), at: now, boot_id, accepted: false };
        run.attempts = 0;
    });
    let node = &mut change.node;
    if let Some(step) = node.run.as_ref().and_then(|run| run.current()) {
        let text = format!("step {} begins ({command_id})", step.label());
        node.clean_step = Some(Value::Object(step.wire()));
        node.driver_internal_info.insert("clean_step_index".into(), index.into());
        change.events.push(event(EventKind::Step, Severity::Info, text, now));
    }
    if change.node.provision_state == ProvisionState::Cleaning {
        pass(&mut change, Verb::Wait, "the agent runs the step", now);
    }
    change
}
