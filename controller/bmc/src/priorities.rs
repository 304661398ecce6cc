//! Priorities of out-of-band steps, as declared and as configured: looked at once, when the controller starts.
//!
//! "If there is a tie for priority within a single interface (an operator inadvertently sets two to the same
//! priority), the conductor will fail to load that interface while starting up, and log errors about the
//! overlapping priorities" (specs/cleaning-states.txt).

use std::collections::BTreeMap;

use model::plan;
use model::step::{CatalogueStep, StepKind};
use serde_json::Number;

use crate::interfaces::{Implementation, implementations};

/// What is wrong with the priorities, all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct BadPriorities(pub Vec<String>);

/// Whether the priorities that are configured (`interface.step` → priority, by kind) are such, and leave no two
/// enabled steps of one interface implementation with the same one.
///
/// Steps that no driver offers are not looked at: they are those of agents.
///
/// # Errors
/// Everything that is wrong: a name that is no `interface.step`, a negative priority, a deploy priority that is
/// not whole, and each tie with the steps in it.
pub fn check_priorities(overrides: &BTreeMap<StepKind, BTreeMap<String, f64>>) -> Result<(), BadPriorities> {
    let mut faults: Vec<String> = Vec::new();
    for (kind, priorities) in overrides {
        faults.extend(priorities.iter().filter_map(|(name, priority)| fault(*kind, name, *priority)));
    }
    for (interface, implementation) in implementations() {
        for tie in ties(interface, implementation, overrides) {
            // An implementation that several drivers use has its ties once.
            if !faults.contains(&tie) {
                faults.push(tie);
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(BadPriorities(faults)) }
}

fn fault(kind: StepKind, name: &str, priority: f64) -> Option<String> {
    let kind_word = kind.as_str();
    let parts: Vec<&str> = name.split('.').collect();
    if parts.len() != 2 || parts.iter().any(|part| part.is_empty()) {
        return Some(format!("{kind_word} priority of '{name}': the name must be interface.step"));
    }
    if !(priority.is_finite() && priority >= 0.0) {
        return Some(format!("{kind_word} priority {priority} of {name}: it must be 0 or greater"));
    }
    if kind == StepKind::Deploy && (priority.fract() != 0.0 || priority > f64::from(u32::MAX)) {
        return Some(format!("deploy priority {priority} of {name}: it must be a non-negative integer"));
    }
    (kind == StepKind::Service).then(|| {
        format!("service priority of {name}: service steps run in the order asked for, without priorities")
    })
}

fn ties(
    interface: &str,
    implementation: &Implementation,
    overrides: &BTreeMap<StepKind, BTreeMap<String, f64>>,
) -> Vec<String> {
    let of_kind = |kind: StepKind| {
        let steps = implementation.steps.iter().filter_map(|step| {
            let mut step = step.catalogue(kind, interface, implementation.name)?;
            let configured = overrides.get(&kind).and_then(|known| known.get(&step.label()));
            if let Some(priority) = configured.and_then(|priority| Number::from_f64(*priority)) {
                step.priority = priority;
            }
            Some(step)
        });
        let steps: Vec<CatalogueStep> = steps.collect();
        let said = |tie: Vec<&CatalogueStep>| {
            let labels = tie.iter().map(|step| step.label()).collect::<Vec<_>>().join(" and ");
            format!(
                "{labels} of the {interface} interface '{}' have the same {} priority {}: give each its own, or 0",
                implementation.name,
                kind.as_str(),
                tie[0].priority
            )
        };
        plan::ties(&steps).into_iter().map(said).collect::<Vec<_>>()
    };
    StepKind::ALL.into_iter().flat_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared::{Declared, StepCall, StepEnd, StepFuture};

    fn configured(kind: StepKind, priorities: &[(&str, f64)]) -> BTreeMap<StepKind, BTreeMap<String, f64>> {
        let priorities = priorities.iter().map(|(name, priority)| ((*name).to_owned(), *priority));
        BTreeMap::from([(kind, priorities.collect())])
    }

    fn faults(kind: StepKind, priorities: &[(&str, f64)]) -> Vec<String> {
        check_priorities(&configured(kind, priorities)).map_or_else(|bad| bad.0, |()| Vec::new())
    }

    #[test]
    fn as_declared_there_is_no_tie_and_other_interfaces_and_agents_do_not_count() {
        assert_eq!(check_priorities(&BTreeMap::new()), Ok(()));
        let priorities = [
            ("raid.delete_configuration", 10.0),
            ("bios.factory_reset", 10.0),
            ("deploy.erase_devices", 10.0),
        ];
        assert_eq!(faults(StepKind::Clean, &priorities), Vec::<String>::new());
    }

    #[test]
    fn a_configured_tie_is_refused_with_both_names() {
        let priorities = [("raid.delete_configuration", 12.5), ("raid.create_configuration", 12.5)];
        assert_eq!(
            faults(StepKind::Clean, &priorities),
            [
                "raid.create_configuration and raid.delete_configuration of the raid interface 'fake' have the same \
              clean priority 12.5: give each its own, or 0"
            ]
        );
        // With 10, which fake_reset has by declaration.
        let tie = faults(StepKind::Clean, &[("management.fake_slow", 10.0)]);
        assert_eq!(tie.len(), 1, "{tie:?}");
        assert!(tie[0].contains("management.fake_reset and management.fake_slow"), "{tie:?}");
        assert_eq!(
            faults(StepKind::Clean, &[("management.fake_slow", 10.0), ("management.fake_reset", 0.0)]),
            Vec::<String>::new()
        );
        let tie =
            faults(StepKind::Deploy, &[("bios.factory_reset", 60.0), ("bios.apply_configuration", 60.0)]);
        assert_eq!(tie.len(), 2, "one for each of fake and redfish: {tie:?}");
    }

    #[test]
    fn a_declared_tie_is_refused_too() {
        fn nothing<'a>(_: &'a StepCall<'a>, _: &'a std::sync::Arc<crate::Settings>) -> StepFuture<'a> {
            Box::pin(async { Ok(StepEnd::Done(().into())) })
        }
        const TIED: Implementation = Implementation {
            name: "tied",
            steps: &[
                Declared::new("a", nothing).clean(5.0).deploy(7),
                Declared::new("b", nothing).clean(5.0).deploy(8),
            ],
        };
        let tie = ties("raid", &TIED, &BTreeMap::new());
        assert_eq!(tie.len(), 1, "{tie:?}");
        assert!(tie[0].contains("raid.a and raid.b of the raid interface 'tied'"), "{tie:?}");
    }

    #[test]
    fn a_priority_that_is_none_is_named() {
        for (kind, name, priority, words) in [
            (StepKind::Clean, "erase_devices", 1.0, "must be interface.step"),
            (StepKind::Clean, "deploy.erase.devices", 1.0, "must be interface.step"),
            (StepKind::Clean, "deploy.erase_devices", -1.0, "must be 0 or greater"),
            (StepKind::Clean, "deploy.erase_devices", f64::NAN, "must be 0 or greater"),
            (
                StepKind::Deploy,
                "deploy.deploy",
                0.5,
                "0.5 of deploy.deploy: it must be a non-negative integer",
            ),
            (StepKind::Service, "bios.factory_reset", 1.0, "without priorities"),
        ] {
            let found = faults(kind, &[(name, priority)]);
            assert!(found.len() == 1 && found[0].contains(name) && found[0].contains(words), "{found:?}");
        }
    }
}
