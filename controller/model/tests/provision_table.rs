//! The table is Ironic's, except where a specification asks for something else.

use model::provision::{Budget, ProvisionState, Verb, transition};
use std::collections::BTreeSet;

/// Deliberate differences: state, event, next state, and the sentence that asks for it.
const OURS: &str = include_str!("provision_differences.txt");

#[test]
fn equals_ironics_table_and_the_listed_differences() {
    let mut wanted: BTreeSet<String> = include_str!("provision_table.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    assert_eq!(wanted.len(), 93);
    for line in OURS.lines().filter(|line| !line.starts_with('#')) {
        let (transition, _sentence) = line.rsplit_once(" | ").expect("a transition and its sentence");
        assert!(wanted.insert(transition.to_owned()), "no difference: {transition}");
    }
    let mut have = BTreeSet::new();
    for state in ProvisionState::ALL {
        for verb in &Verb::ALL {
            if let Ok(next) = transition(state, *verb) {
                have.insert(format!("{} | {} | {}", state.as_str(), verb.as_str(), next.as_str()));
            }
        }
    }
    assert_eq!(have, wanted);
}

/// What a state leads to is a stable state, and a stable state leads nowhere by itself.
#[test]
fn every_target_is_stable() {
    for state in ProvisionState::ALL {
        match state.target() {
            Some(target) => assert!(target.is_stable() && !state.is_stable(), "{state:?}"),
            None => assert!(state.is_stable(), "{state:?}"),
        }
    }
}

/// A state that something is being done in has a budget; one that waits for a user has none.
#[test]
fn every_state_that_is_worked_in_is_bounded() {
    for state in ProvisionState::ALL {
        let waits_for_user =
            state.is_stable() || ["failed", "hold"].iter().any(|ending| state.as_str().ends_with(ending));
        assert_eq!(state.budget() == Budget::User, waits_for_user, "{state:?}");
    }
}

#[test]
fn wire_strings_are_unambiguous() {
    for state in ProvisionState::ALL {
        assert_eq!(ProvisionState::parse(state.as_str()), Some(state));
    }
    for (name, state) in [
        ("MANAGED", ProvisionState::Manageable),
        ("MANAGEABLE", ProvisionState::Manageable),
        ("CLEANFAIL", ProvisionState::CleanFail),
        ("DEPLOYWAIT", ProvisionState::DeployWait),
        ("wait call-back", ProvisionState::DeployWait),
    ] {
        assert_eq!(ProvisionState::named(name), Some(state), "{name}");
    }
    assert_eq!(ProvisionState::named("Managed"), None);
    for (name, verb) in [
        ("MANAGED", Verb::Manage),
        ("manageable", Verb::Manage),
        ("CLEANED", Verb::Provide),
        ("ACTIVE", Verb::Deploy),
        ("deploy", Verb::Deploy),
        ("DELETED", Verb::Delete),
        ("undeploy", Verb::Delete),
        ("AVAILABLE", Verb::Override),
    ] {
        assert_eq!(Verb::parse_target(name), Some(verb), "{name}");
    }
    // The states take verbs of users, and events of the controller, which no request names.
    let events = [Verb::Done, Verb::Fail, Verb::Hold, Verb::Wait, Verb::Resume];
    for verb in Verb::ALL {
        let asked = Some(verb).filter(|verb| !events.contains(verb));
        assert_eq!(Verb::parse_target(verb.target()), asked, "{}", verb.target());
    }
    let distinct: BTreeSet<_> = ProvisionState::ALL.iter().map(|state| state.as_str()).collect();
    assert_eq!(distinct.len(), 30);
}
