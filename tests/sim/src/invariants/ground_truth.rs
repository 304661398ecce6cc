//! What a row says, against what really happened.

use super::{Broken, Write};
use crate::ground_truth::{End, Execution};
use crate::offers::Offer;
use model::plan::Reserved;
use model::{EventKind, PlannedStep, ProvisionState, RunKind, StepKind};
use std::collections::BTreeSet;

/// "Anneal must never lose or invent progress": a stored success belongs to a command that really succeeded, for
/// that step, in that run.
pub fn no_success_is_invented(write: &Write) -> Broken {
    let Some(run) = write.new.run.as_ref().filter(|run| run.kind.steps().is_some()) else { return Ok(()) };
    let old = write.old.run.as_ref().filter(|old| old.id == run.id);
    for result in run.results.iter().filter(|result| result.error.is_none()) {
        if old.is_some_and(|old| old.results.contains(result)) {
            continue;
        }
        let Some(planned) = run.plan.as_ref().and_then(|plan| plan.get(result.index)) else {
            return Err(format!("a success of step {}, which is in no plan", result.index));
        };
        if Reserved::of(&planned.step).is_some() {
            continue;
        }
        let really = write.chronicle.execution(&result.command_id);
        let good = really.is_some_and(|really| {
            really.label == planned.label()
                && really.run == Some(run.id)
                && really.ended.is_some_and(|(_, end)| end == End::Succeeded)
        });
        if !good {
            return Err(format!(
                "step {} of the plan counts as done by command {}, really {really:?}",
                planned.label(),
                result.command_id
            ));
        }
    }
    Ok(())
}

/// "No step is skipped": the plan has every step that was asked for, or that the agent and the interfaces offer
/// with a priority, in their order.
pub fn no_step_is_left_out_of_the_plan(write: &Write) -> Broken {
    let Some(run) = &write.new.run else { return Ok(()) };
    let (Some(kind), Some(plan)) = (run.kind.steps(), &run.plan) else { return Ok(()) };
    let old = write.old.run.as_ref().filter(|old| old.id == run.id);
    if old.is_some_and(|old| old.plan.as_ref() == Some(plan)) {
        return Ok(());
    }
    let labels: Vec<String> = plan.iter().map(PlannedStep::label).collect();
    if matches!(run.kind, RunKind::ManualClean | RunKind::Service) {
        let asked: Vec<String> =
            run.requested.iter().map(|step| format!("{}.{}", step.interface, step.step)).collect();
        return if labels == asked {
            Ok(())
        } else {
            Err(format!("{asked:?} was asked for, planned {labels:?}"))
        };
    }
    let mut agents = vec![BTreeSet::new()];
    for offered in write
        .chronicle
        .advertised
        .iter()
        .filter(|offered| offered.kind == kind && offered.at >= run.started_at)
    {
        agents.push(enabled(&offered.offers.steps, kind));
    }
    let interfaces = enabled(&write.machine.out_of_band, kind);
    let planned: BTreeSet<String> = labels.iter().cloned().collect();
    let whole = agents.iter().skip(usize::from(agents.len() > 1)).any(|agent| {
        let mut whole: BTreeSet<String> = agent.union(&interfaces).cloned().collect();
        for want in run.templates.iter().chain(&run.requested) {
            let label = format!("{}.{}", want.interface, want.step);
            match want.priority.as_ref().and_then(serde_json::Number::as_u64) {
                Some(0) => whole.remove(&label),
                _ => whole.insert(label),
            };
        }
        whole == planned
    });
    if !whole {
        return Err(format!(
            "planned {labels:?}; the agent offered {agents:?}, the interfaces {interfaces:?}"
        ));
    }
    let priority = |step: &PlannedStep| step.step.priority.as_f64().unwrap_or_default();
    match plan.windows(2).find(|pair| priority(&pair[0]) < priority(&pair[1])) {
        Some(pair) => Err(format!("{} comes before {}", pair[0].label(), pair[1].label())),
        None => Ok(()),
    }
}

fn enabled(offers: &[Offer], kind: StepKind) -> BTreeSet<String> {
    let runs = |offer: &&Offer| offer.priorities.iter().any(|(of, priority)| *of == kind && *priority > 0);
    offers.iter().filter(runs).map(Offer::label).collect()
}

/// "No step is skipped", "no node becomes AVAILABLE by cleaning whose steps have not each a stored success": when
/// a run is over, each step of its plan has really succeeded, one after the other.
pub fn no_step_is_skipped(write: &Write) -> Broken {
    let Some(run) = &write.old.run else { return Ok(()) };
    let over =
        |event: &&model::Event| event.kind == EventKind::Momentary && event.text == run.kind.momentary();
    if run.kind.steps().is_none() || !write.events.iter().any(|event| over(&event)) {
        return Ok(());
    }
    let Some(plan) = &run.plan else { return Err("the run has ended without a plan".to_owned()) };
    let pass = if run.kind == RunKind::AutomatedClean { run.replans } else { 0 };
    let mut last: Option<&Execution> = None;
    for (index, planned) in plan.iter().enumerate().filter(|(_, step)| Reserved::of(&step.step).is_none()) {
        let succeeded = |execution: &&Execution| {
            execution.run == Some(run.id)
                && execution.index == Some(index)
                && execution.pass == pass
                && execution.ended.is_some_and(|(_, end)| end == End::Succeeded)
        };
        let Some(really) = write.chronicle.executions.iter().rev().find(succeeded) else {
            return Err(format!("step {} ({index}) never succeeded", planned.label()));
        };
        let early = last.is_some_and(|last| last.ended.is_some_and(|(at, _)| at > really.began));
        if early {
            return Err(format!("step {} began before the one before it had ended", planned.label()));
        }
        last = Some(really);
    }
    Ok(())
}

/// ARCHITECTURE: "The intent of an action is stored before the action is taken." What is not stored with a step's
/// success is never stored later, so the RAID that the step made is in the same write.
pub fn what_a_step_made_is_written_with_it(write: &Write) -> Broken {
    let made = |run: &model::Run, index: usize| {
        let step = run.plan.as_ref().and_then(|plan| plan.get(index));
        run.succeeded(index) && step.is_some_and(|step| step.label() == "raid.create_configuration")
    };
    let Some(run) = &write.new.run else { return Ok(()) };
    let before = write.old.run.as_ref().filter(|old| old.id == run.id);
    let news = |result: &&model::StepResult| {
        made(run, result.index) && !before.is_some_and(|old| made(old, result.index))
    };
    match run.results.iter().find(news) {
        Some(_) if !write.new.other.contains_key("raid_config") => {
            Err("a RAID was made and the node does not say so".to_owned())
        }
        _ => Ok(()),
    }
}

/// "no node becomes AVAILABLE by cleaning whose steps have not each a stored success", by what is on its disks.
pub fn nothing_is_available_unclean(write: &Write) -> Broken {
    if write.new.provision_state != ProvisionState::Available
        || write.old.provision_state == ProvisionState::Available
    {
        return Ok(());
    }
    let excuses = ["override by an administrator", "automated cleaning is switched off"];
    let excused = |event: &model::Event| excuses.iter().any(|excuse| event.text.contains(excuse));
    if write.events.iter().any(excused) {
        return Ok(());
    }
    let state = write.machine.state();
    if state.is_dirty() { Err(format!("its disks hold {:?}", state.disks)) } else { Ok(()) }
}

/// The same for deployments: a node does not become ACTIVE without an image.
pub fn nothing_is_active_undeployed(write: &Write) -> Broken {
    let deployed =
        write.new.run.as_ref().is_some_and(|run| matches!(run.kind, RunKind::Deploy | RunKind::Rebuild));
    let enters = write.new.provision_state == ProvisionState::Active
        && write.old.provision_state == ProvisionState::Deploying;
    if !deployed || !enters {
        return Ok(());
    }
    let state = write.machine.state();
    if state.disks.first().is_some_and(|disk| disk.bootable) {
        Ok(())
    } else {
        Err(format!("its disks hold {:?}", state.disks))
    }
}
