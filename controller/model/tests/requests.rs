//! What the requests of users do to a node, and from where they are taken.

use model::request::{Policy, RequestError, VerbRequest, apply_power, apply_verb};
use model::{Event, Node, PowerTarget, ProvisionState, RequestedStep, RunKind, Timestamp, Verb};
use serde_json::Map;
use uuid::Uuid;

const NOW: Timestamp = Timestamp(1_790_000_000_000_000);
const CLEANS: Policy = Policy { automated_clean: true };

fn node(state: ProvisionState) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", NOW);
    node.enter(state, None, NOW);
    node
}

fn request(verb: Verb) -> VerbRequest {
    let step =
        || RequestedStep { interface: "deploy".into(), step: "erase_devices".into(), args: Map::new() };
    VerbRequest { verb, clean_steps: (verb == Verb::Clean).then(|| vec![step()]) }
}

fn after(node: &Node, verb: Verb, policy: Policy) -> Result<(Node, Vec<Event>), RequestError> {
    apply_verb(node, request(verb), policy, NOW)
}

/// A verb is taken in exactly these states, leads there, and is refused in all others.
#[test]
fn each_verb_is_taken_in_its_states_and_in_no_other() {
    use ProvisionState as P;
    let taken: &[(Verb, &[(P, P)])] = &[
        (
            Verb::Manage,
            &[
                (P::Enroll, P::Verifying),
                (P::Available, P::Manageable),
                (P::CleanFail, P::Manageable),
                (P::InspectFail, P::Manageable),
                (P::AdoptFail, P::Manageable),
            ],
        ),
        (Verb::Provide, &[(P::Manageable, P::Cleaning), (P::CleanFail, P::Cleaning)]),
        (Verb::Clean, &[(P::Manageable, P::Cleaning), (P::CleanFail, P::Cleaning)]),
    ];
    for (verb, leads) in taken {
        for state in P::ALL {
            let outcome = after(&node(state), *verb, CLEANS);
            match leads.iter().find(|(from, _)| *from == state) {
                Some((_, to)) => {
                    let (node, events) = outcome.unwrap();
                    assert_eq!(node.provision_state, *to, "{verb:?} from {state:?}");
                    let told = format!("{} -> {}: verb", state.as_str(), to.as_str());
                    assert!(events[0].text.starts_with(&told), "{}", events[0].text);
                }
                None => assert!(
                    matches!(outcome, Err(RequestError::State { state: named, .. }) if named == state.as_str()),
                    "{verb:?} from {state:?}"
                ),
            }
        }
    }
    // A refused verb changes nothing, and what is cleaned knows what for.
    let kind = |verb| after(&node(P::Manageable), verb, CLEANS).unwrap().0.run.unwrap().kind;
    assert_eq!((kind(Verb::Provide), kind(Verb::Clean)), (RunKind::AutomatedClean, RunKind::ManualClean));
    let target = |verb| after(&node(P::Manageable), verb, CLEANS).unwrap().0.target_provision_state;
    assert_eq!((target(Verb::Provide), target(Verb::Clean)), (Some(P::Available), Some(P::Manageable)));
}

#[test]
fn a_retired_node_is_not_provided_and_may_be_cleaned() {
    let mut node = node(ProvisionState::Manageable);
    node.retired = true;
    for automated_clean in [true, false] {
        let refused = after(&node, Verb::Provide, Policy { automated_clean });
        assert_eq!(refused.unwrap_err(), RequestError::Retired(node.uuid), "cleaning: {automated_clean}");
    }
    assert_eq!(after(&node, Verb::Clean, CLEANS).unwrap().0.provision_state, ProvisionState::Cleaning);
    node.retired = false;
    assert_eq!(after(&node, Verb::Provide, CLEANS).unwrap().0.provision_state, ProvisionState::Cleaning);
}

#[test]
fn automated_cleaning_is_switched_off_for_all_or_for_one_and_that_is_told() {
    for (for_all, of_node, cleans) in
        [(true, None, true), (false, None, false), (true, Some(false), false), (false, Some(true), true)]
    {
        let mut node = node(ProvisionState::Manageable);
        node.automated_clean = of_node;
        let (node, events) = after(&node, Verb::Provide, Policy { automated_clean: for_all }).unwrap();
        if cleans {
            assert_eq!(node.provision_state, ProvisionState::Cleaning, "{for_all} {of_node:?}");
        } else {
            assert_eq!(node.provision_state, ProvisionState::Available, "{for_all} {of_node:?}");
            assert!(node.run.is_none() && events[0].text.contains("nothing was erased"));
        }
        // What a user asks for by name is not affected.
        let manual =
            after(&self::node(ProvisionState::Manageable), Verb::Clean, Policy { automated_clean: for_all });
        assert_eq!(manual.unwrap().0.provision_state, ProvisionState::Cleaning);
    }
}

#[test]
fn power_is_refused_during_cleaning_and_allowed_when_it_failed() {
    use ProvisionState as P;
    for state in P::ALL {
        for target in PowerTarget::ALL {
            let outcome = apply_power(&node(state), target, NOW);
            if matches!(state, P::Cleaning | P::CleanWait | P::CleanHold) {
                assert!(matches!(outcome, Err(RequestError::PowerLocked { .. })), "{state:?} {target:?}");
            } else {
                assert_eq!(outcome.unwrap().0.target_power_state, Some(target), "{state:?}");
            }
        }
    }
}
