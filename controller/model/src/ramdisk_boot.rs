//! Which runs boot the ramdisk. The API asks before a run begins, to refuse a node that cannot be booted; the conductor asks
//! in the first move of the run.

use crate::abilities::{Abilities, Inspect, Rescue};
use crate::kind::RunKind;
use crate::plan::{BadSteps, requested_plan};
use crate::run::Run;
use crate::step::{CatalogueStep, PlannedStep};

/// Whether this run begins with a boot of the ramdisk, on a node with these abilities. `known`: the out-of-band steps of the
/// run's kind, and those that the node's agent reported last.
///
/// The agent of the coming boot decides about its own steps. An unknown step may be new in the ramdisk, so the node is booted to
/// find out.
pub fn begins_run(run: &Run, able: &Abilities, known: &[CatalogueStep]) -> bool {
    match run.kind {
        RunKind::AutomatedClean => able.agent,
        RunKind::Deploy | RunKind::Rebuild => able.deploys_with_agent(),
        RunKind::ManualClean | RunKind::Service => match steps_with_agent(run, able, known) {
            Some(Ok(plan)) => plan.iter().any(|planned| planned.step.in_band),
            Some(Err(BadSteps::Unknown { .. })) => true,
            // What is known to be wrong fails without a boot.
            Some(Err(_)) | None => false,
        },
        RunKind::Inspect => able.inspect == Inspect::Agent,
        RunKind::Rescue => able.rescue == Rescue::Agent,
        RunKind::Unrescue | RunKind::Delete => false,
    }
}

/// Whether this run boots the ramdisk at all: when it begins, or after a step that asks for a reboot.
pub fn is_in_run(run: &Run, able: &Abilities, known: &[CatalogueStep]) -> bool {
    let reboots = || {
        let plan = steps_with_agent(run, able, known).and_then(Result::ok);
        plan.is_some_and(|plan| plan.iter().any(|planned| planned.step.reboot_requested))
    };
    begins_run(run, able, known) || reboots()
}

/// The plan of the steps that a user asked for; `None`: the run has none, or no agent is to take part in it.
fn steps_with_agent(
    run: &Run,
    able: &Abilities,
    known: &[CatalogueStep],
) -> Option<Result<Vec<PlannedStep>, BadSteps>> {
    let is_asked_for = matches!(run.kind, RunKind::ManualClean | RunKind::Service);
    let kind = run.kind.steps().filter(|_| is_asked_for && able.agent && !run.disable_ramdisk)?;
    Some(requested_plan(kind, &run.requested, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::RequestedStep;
    use crate::time::Timestamp;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn step(name: &str, in_band: bool, reboots: bool) -> CatalogueStep {
        let step = json!({"interface": "bios", "step": name, "priority": 0, "in_band": in_band, "requires_ramdisk": in_band,
            "reboot_requested": reboots});
        serde_json::from_value(step).unwrap()
    }

    #[test]
    fn steps_of_the_agent_begin_a_run_with_a_boot_and_a_reboot_brings_one_later() {
        let known = [step("quick", false, false), step("apply", false, true), step("agents", true, false)];
        let able =
            |agent| Abilities { agent, inspect: Inspect::Fake, rescue: Rescue::Fake, steps: BTreeMap::new() };
        for (name, agent, disabled, begins, comes) in [
            ("quick", true, false, false, false),
            ("apply", true, false, false, true),
            ("apply", false, false, false, false),
            ("apply", true, true, false, false),
            ("agents", true, false, true, true),
            ("new", true, false, true, true),
            ("new", false, false, false, false),
            ("new", true, true, false, false),
        ] {
            let mut run = Run::new(RunKind::Service, Timestamp(0));
            run.disable_ramdisk = disabled;
            run.requested = vec![RequestedStep {
                interface: "bios".to_owned(),
                step: name.to_owned(),
                args: serde_json::Map::new(),
                priority: None,
            }];
            let asked = (begins_run(&run, &able(agent), &known), is_in_run(&run, &able(agent), &known));
            assert_eq!(asked, (begins, comes), "{name} {agent} {disabled}");
        }
    }
}
