//! Whether a run needs a ramdisk. A request that is known to be impossible fails here, before the node is touched.

use super::view::View;
use super::{fail, fast_track, plan};
use crate::decision::Change;
use model::abilities::{Inspect, Rescue};
use model::plan::{BadSteps, automated_plan, deploy_plan, needs_no_ramdisk, requested_plan};
use model::ramdisk_boot;
use model::request::RESCUE_HASH;
use model::run::Cursor;
use model::{Abilities, CatalogueStep, PlannedStep, RunKind, StepKind};
use serde_json::Map;

/// The first move of a run. A kept ramdisk is used by it, or never.
pub(super) fn begin(view: &View) -> Change {
    let mut change = first_move(view);
    if let Some(run) = change.node.run.as_mut().filter(|run| run.cursor != Cursor::LearnSteps) {
        run.ramdisk_kept = None;
    }
    change
}

fn first_move(view: &View) -> Change {
    let able = match &view.snapshot.abilities {
        Ok(able) => able,
        Err(text) => return fail::refused(view, &format!("The node's driver cannot be used: {text}")),
    };
    let known = known_steps(view, able);
    let boots = ramdisk_boot::begins_run(view.run, able, &known);
    match view.run.kind {
        RunKind::Deploy | RunKind::Rebuild if boots => fast_track::begin(view),
        RunKind::Rescue => rescue(view, able.rescue),
        _ if boots => view.advance(Cursor::PowerOff),
        RunKind::AutomatedClean => with_plan(view, Ok(automated_plan(able.out_of_band(StepKind::Clean)))),
        RunKind::Deploy | RunKind::Rebuild => {
            let known = able.out_of_band(StepKind::Deploy);
            let plan = deploy_plan(known, &view.run.templates, &view.run.requested);
            if able.agent && plan.as_ref().is_ok_and(|plan| plan::nothing_is_deployed(view, plan)) {
                let text = "the step that deploys (deploy.deploy of ramdisk) is switched off, so that nothing would be deployed";
                return fail::refused(view, text);
            }
            with_plan(view, plan)
        }
        RunKind::ManualClean => requested(view, &known, StepKind::Clean),
        RunKind::Service => requested(view, &known, StepKind::Service),
        RunKind::Inspect => match able.inspect {
            Inspect::None => {
                fail::refused(view, "Failed to inspect the node: its inspect interface is no-inspect")
            }
            _ => view.advance(Cursor::AskInventory),
        },
        RunKind::Unrescue | RunKind::Delete => view.advance(Cursor::TearDown),
    }
}

/// The out-of-band steps of the run's kind, and those that the agent reported in the last boot.
fn known_steps(view: &View, able: &Abilities) -> Vec<CatalogueStep> {
    let Some(kind) = view.run.kind.steps() else { return Vec::new() };
    let mut known = able.out_of_band(kind).to_vec();
    if able.agent {
        let learnt = view.snapshot.catalogue.iter().flat_map(|catalogue| catalogue.steps.clone());
        known.extend(view.settings.override_priorities(kind, learnt.collect()));
    }
    known
}

/// The steps of a user's request, in a run that boots no ramdisk because none of them needs one. What the catalogue of the
/// last boot shows to be wrong fails before the boot (Ironic finds it after the boot: 05-experiments 18).
fn requested(view: &View, known: &[CatalogueStep], kind: StepKind) -> Change {
    match requested_plan(kind, &view.run.requested, known) {
        Ok(plan) if view.run.disable_ramdisk => with_plan(view, needs_no_ramdisk(kind, &plan).map(|()| plan)),
        plan => with_plan(view, plan),
    }
}

fn with_plan(view: &View, plan: Result<Vec<PlannedStep>, BadSteps>) -> Change {
    match plan {
        Ok(plan) => plan::planned(view, plan, Map::new()),
        Err(bad) => fail::refused(view, &plan::refusal(view, &bad)),
    }
}

/// Rescue is a plan of one command.
fn rescue(view: &View, by: Rescue) -> Change {
    let cursor = match by {
        Rescue::Fake => Cursor::TearDown,
        Rescue::Agent => Cursor::PowerOff,
        Rescue::None => {
            return fail::refused(view, "Failed to rescue the node: its rescue interface is no-rescue");
        }
    };
    if !view.snapshot.node.instance_info.contains_key(RESCUE_HASH) {
        return fail::refused(view, "Failed to rescue the node: no hash of a rescue password is kept");
    }
    let plan = if by == Rescue::Agent { vec![finalize_rescue()] } else { Vec::new() };
    view.with_run(|run| {
        run.plan = Some(plan);
        run.cursor = cursor;
    })
}

fn finalize_rescue() -> PlannedStep {
    let step = CatalogueStep {
        interface: "rescue".to_owned(),
        step: "finalize_rescue".to_owned(),
        priority: 0.into(),
        abortable: false,
        reboot_requested: false,
        // It sets a password; setting the same one again is harmless.
        idempotent: true,
        args: std::collections::BTreeMap::new(),
        requires_ramdisk: true,
        in_band: true,
        provider: String::new(),
        raw: Map::new(),
    };
    PlannedStep { step, given: Map::new() }
}
