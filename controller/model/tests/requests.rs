//! What the requests of users do to a node, and from where they are taken.

use model::provision::transition;
use model::request::{Policy, RESCUE_HASH, RequestError, VerbRequest, apply_power, apply_verb};
use model::run::{Cursor, PersistentBoot};
use model::{
    Basis, Event, Node, PowerTarget, ProvisionState, RequestedStep, Run, RunKind, StepKind, Timestamp, Verb,
};
use serde_json::Map;
use uuid::Uuid;

const NOW: Timestamp = Timestamp(1_790_000_000_000_000);
const CLEANS: Policy = Policy { automated_clean: true };

fn node(state: ProvisionState) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", NOW);
    put(&mut node, state);
    node
}

/// Into a state, without the way there.
fn put(node: &mut Node, state: ProvisionState) {
    match state {
        ProvisionState::Available => node.make_available(Basis::NotCleaned, NOW),
        other => node.enter(other, None, NOW),
    }
}

fn step() -> RequestedStep {
    RequestedStep {
        interface: "deploy".into(),
        step: "erase_devices".into(),
        args: Map::new(),
        priority: None,
    }
}

fn request(verb: Verb) -> VerbRequest {
    let mut request = VerbRequest::of(verb);
    match verb {
        Verb::Clean => request = request.with_steps(StepKind::Clean, vec![step()]),
        Verb::Service => request = request.with_steps(StepKind::Service, vec![step()]),
        Verb::Rescue => request.rescue_hash = Some("$6$salt$hash".into()),
        Verb::Override => request.reason = Some("disks removed".into()),
        _ => {}
    }
    request
}

fn after(node: &Node, verb: Verb, policy: Policy) -> Result<(Node, Vec<Event>), RequestError> {
    apply_verb(node, request(verb), policy, NOW)
}

/// A verb is taken in exactly these states, leads there, and is refused in all others.
#[expect(clippy::too_many_lines, reason = "a table of verbs and states")]
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
        (Verb::Inspect, &[(P::Manageable, P::Inspecting), (P::InspectFail, P::Inspecting)]),
        (Verb::Adopt, &[(P::Manageable, P::Adopting), (P::AdoptFail, P::Adopting)]),
        (Verb::Deploy, &[(P::Available, P::Deploying), (P::DeployFail, P::Deploying)]),
        (
            Verb::Rebuild,
            &[(P::Active, P::Deploying), (P::Error, P::Deploying), (P::DeployFail, P::Deploying)],
        ),
        (
            Verb::Rescue,
            &[
                (P::Active, P::Rescuing),
                (P::Rescue, P::Rescuing),
                (P::RescueFail, P::Rescuing),
                (P::UnrescueFail, P::Rescuing),
                (P::ServiceFail, P::Rescuing),
            ],
        ),
        (
            Verb::Unrescue,
            &[(P::Rescue, P::Unrescuing), (P::RescueFail, P::Unrescuing), (P::UnrescueFail, P::Unrescuing)],
        ),
        (
            Verb::Service,
            &[(P::Active, P::Servicing), (P::ServiceFail, P::Servicing), (P::ServiceHold, P::Servicing)],
        ),
        (
            Verb::Delete,
            &[
                (P::Active, P::Deleting),
                (P::Error, P::Deleting),
                (P::Rescue, P::Deleting),
                (P::DeployWait, P::Deleting),
                (P::DeployFail, P::Deleting),
                (P::RescueWait, P::Deleting),
                (P::RescueFail, P::Deleting),
                (P::UnrescueFail, P::Deleting),
                (P::ServiceWait, P::Deleting),
                (P::ServiceFail, P::Deleting),
            ],
        ),
        (
            Verb::Unhold,
            &[(P::CleanHold, P::CleanWait), (P::DeployHold, P::DeployWait), (P::ServiceHold, P::ServiceWait)],
        ),
        (Verb::Override, &[(P::CleanFail, P::Available)]),
        // Events of the conductor are not verbs of users.
        (Verb::Done, &[]),
        (Verb::Fail, &[]),
        (Verb::Wait, &[]),
        (Verb::Resume, &[]),
        (Verb::Hold, &[]),
    ];
    for (verb, leads) in taken {
        for state in P::ALL {
            let outcome = after(&node(state), *verb, CLEANS);
            match leads.iter().find(|(from, _)| *from == state) {
                Some((_, to)) => {
                    let (node, events) = outcome.unwrap();
                    assert_eq!(node.provision_state, *to, "{verb:?} from {state:?}");
                    let beginning = format!("{} -> {}: ", state.as_str(), to.as_str());
                    assert!(events[0].text.starts_with(&beginning), "{}", events[0].text);
                }
                None => assert!(
                    matches!(outcome, Err(RequestError::State { state: named, .. }) if named == state.as_str()),
                    "{verb:?} from {state:?}"
                ),
            }
        }
    }
    // What is cleaned knows what for.
    let kind = |verb| after(&node(P::Manageable), verb, CLEANS).unwrap().0.run.unwrap().kind;
    assert_eq!((kind(Verb::Provide), kind(Verb::Clean)), (RunKind::AutomatedClean, RunKind::ManualClean));
    let target = |verb| after(&node(P::Manageable), verb, CLEANS).unwrap().0.target_provision_state;
    assert_eq!((target(Verb::Provide), target(Verb::Clean)), (Some(P::Available), Some(P::Manageable)));
}

/// An abort waits for the step to stop; only a failed service has nothing to stop any more.
#[test]
fn an_abort_is_kept_until_the_conductor_has_seen_the_step_stop() {
    use ProvisionState as P;
    for state in P::ALL {
        let mut node = node(state);
        node.run = Some(Run::new(RunKind::ManualClean, NOW));
        let outcome = after(&node, Verb::Abort, CLEANS);
        match state {
            P::ServiceFail => assert_eq!(outcome.unwrap().0.provision_state, P::Active),
            state if transition(state, Verb::Abort).is_ok() => {
                let (after, _) = outcome.unwrap();
                assert_eq!(after.provision_state, state);
                assert!(after.run.unwrap().abort);
            }
            _ => assert!(matches!(outcome, Err(RequestError::State { .. })), "{state:?}"),
        }
    }
}

/// Ironic's stale clean step makes the next cleaning run nothing (05-experiments 3): here a verb begins a
/// run that knows nothing of an earlier one, but what the node booted from before it was disturbed.
#[test]
fn a_new_run_inherits_nothing() {
    let mut node = node(ProvisionState::CleanFail);
    let mut old = Run::new(RunKind::AutomatedClean, NOW);
    old.plan = Some(Vec::new());
    old.index = Some(1);
    old.cursor = Cursor::Done;
    old.abort = true;
    old.boot_before = Some(PersistentBoot { device: "disk".into(), mode: None });
    node.run = Some(old);
    node.clean_step = Some(serde_json::json!({"step": "stale"}));
    node.driver_internal_info.insert("clean_step_index".into(), 1.into());
    node.driver_internal_info.insert("clean_steps".into(), serde_json::json!([{"step": "stale"}]));
    node.last_error = Some("old".into());
    (node.maintenance, node.fault) = (true, Some("clean failure".into()));
    let (node, _) = after(&node, Verb::Provide, CLEANS).unwrap();
    let run = node.run.unwrap();
    assert_eq!((run.cursor, run.plan, run.index, run.abort), (Cursor::Start, None, None, false));
    assert_eq!(run.boot_before.map(|before| before.device).as_deref(), Some("disk"));
    assert!(run.results.is_empty() && node.clean_step.is_none() && node.last_error.is_none());
    assert!(node.driver_internal_info.is_empty() && !node.maintenance && node.fault.is_none());
}

/// Out of a failure by a verb, or into a run of another kind: no step is current any more.
#[test]
fn a_failed_step_is_current_until_the_next_verb() {
    for (state, kind, verb) in [
        (ProvisionState::CleanFail, StepKind::Clean, Verb::Manage),
        (ProvisionState::CleanFail, StepKind::Clean, Verb::Override),
        (ProvisionState::ServiceFail, StepKind::Service, Verb::Abort),
        (ProvisionState::ServiceFail, StepKind::Service, Verb::Delete),
        (ProvisionState::DeployFail, StepKind::Deploy, Verb::Delete),
    ] {
        let mut node = node(state);
        *node.step_mut(kind) = Some(serde_json::json!({"step": "failed"}));
        node.driver_internal_info.insert(kind.steps_field().into(), serde_json::json!([{"step": "failed"}]));
        node.driver_internal_info.insert(kind.index_field().into(), 0.into());
        let (mut node, _) = after(&node, verb, CLEANS).unwrap();
        assert_eq!((node.step_mut(kind).take(), node.driver_internal_info.len()), (None, 0), "{verb:?}");
    }
}

#[test]
fn an_override_is_reported_as_one_and_leaves_no_success_behind() {
    let mut failed = node(ProvisionState::CleanFail);
    let mut run = Run::new(RunKind::AutomatedClean, NOW);
    run.cursor = Cursor::Done;
    failed.run = Some(run);
    (failed.maintenance, failed.fault) = (true, Some("clean failure".into()));
    let request = VerbRequest { reason: Some("disk replaced".into()), ..VerbRequest::of(Verb::Override) };
    let (node, events) = apply_verb(&failed, request.clone(), CLEANS, NOW).unwrap();
    assert_eq!((node.provision_state, node.maintenance), (ProvisionState::Available, false));
    assert!(!node.run.unwrap().all_succeeded());
    let (reason, by) = ("disk replaced".to_owned(), None);
    assert_eq!(node.basis, Some(Basis::Override { reason, by }));
    let text = &events[0].text;
    assert!(text.ends_with("; basis: override"), "{text}");
    assert!(text.contains("override by an administrator (disk replaced)"), "{text}");
    assert!(text.contains("no certificate"), "{text}");
    failed.retired = true;
    assert!(matches!(apply_verb(&failed, request, CLEANS, NOW), Err(RequestError::Retired { .. })));
}

#[test]
fn a_retired_node_is_not_provided_and_may_be_cleaned_rebuilt_and_deleted() {
    use ProvisionState as P;
    let mut node = node(P::Manageable);
    node.retired = true;
    for automated_clean in [true, false] {
        let refused = after(&node, Verb::Provide, Policy { automated_clean });
        let retired = RequestError::Retired { operation: "providing", node: node.uuid };
        assert_eq!(refused.unwrap_err(), retired, "cleaning: {automated_clean}");
    }
    assert_eq!(after(&node, Verb::Clean, CLEANS).unwrap().0.provision_state, P::Cleaning);
    let adopted = after(&node, Verb::Adopt, CLEANS).unwrap_err();
    assert_eq!(adopted, RequestError::Retired { operation: "adopting", node: node.uuid });
    for (state, verb, to) in
        [(P::Active, Verb::Rebuild, P::Deploying), (P::Active, Verb::Delete, P::Deleting)]
    {
        node.enter(state, None, NOW);
        assert_eq!(after(&node, verb, CLEANS).unwrap().0.provision_state, to);
    }
    node.enter(P::DeployFail, None, NOW);
    assert!(matches!(after(&node, Verb::Deploy, CLEANS), Err(RequestError::Retired { .. })));
    node.retired = false;
    node.enter(P::Manageable, None, NOW);
    assert_eq!(after(&node, Verb::Provide, CLEANS).unwrap().0.provision_state, P::Cleaning);
}

#[test]
fn protected_nodes_and_nodes_in_maintenance_keep_their_workload() {
    use ProvisionState as P;
    let mut node = node(P::Active);
    node.protected = true;
    for verb in [Verb::Delete, Verb::Rebuild] {
        assert_eq!(after(&node, verb, CLEANS).unwrap_err(), RequestError::Protected(node.uuid));
    }
    node.protected = false;
    node.maintenance = true;
    for (state, verb) in [
        (P::Available, Verb::Deploy),
        (P::Active, Verb::Rebuild),
        (P::Active, Verb::Rescue),
        (P::Rescue, Verb::Unrescue),
    ] {
        put(&mut node, state);
        assert!(matches!(after(&node, verb, CLEANS), Err(RequestError::Maintenance { .. })), "{verb:?}");
    }
    node.enter(P::Active, None, NOW);
    assert_eq!(after(&node, Verb::Delete, CLEANS).unwrap().0.provision_state, P::Deleting);
}

#[test]
fn steps_come_with_the_verbs_they_belong_to() {
    use ProvisionState as P;
    let text = |state, request| apply_verb(&node(state), request, CLEANS, NOW).unwrap_err().to_string();
    let with = |verb, kind| VerbRequest::of(verb).with_steps(kind, vec![step()]);
    assert!(text(P::Manageable, VerbRequest::of(Verb::Clean)).starts_with("\"clean_steps\" is required"));
    assert!(text(P::Active, VerbRequest::of(Verb::Service)).starts_with("\"service_steps\" is required"));
    for (state, verb, kind) in [
        (P::Manageable, Verb::Provide, StepKind::Clean),
        (P::Active, Verb::Delete, StepKind::Service),
        (P::Active, Verb::Delete, StepKind::Deploy),
    ] {
        assert!(text(state, with(verb, kind)).contains("is only valid"), "{verb:?}");
    }
    let (node, _) =
        apply_verb(&node(P::Available), with(Verb::Deploy, StepKind::Deploy), CLEANS, NOW).unwrap();
    assert_eq!(node.run.unwrap().requested.len(), 1);
    assert_eq!(text(P::Active, VerbRequest::of(Verb::Rescue)), RequestError::RescuePassword.to_string());
    let (node, _) = after(&self::node(P::Active), Verb::Rescue, CLEANS).unwrap();
    assert_eq!(node.instance_info[RESCUE_HASH], "$6$salt$hash");
}

#[test]
fn automated_cleaning_is_switched_off_for_all_or_for_one_node_and_the_event_says_so() {
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
            assert!(node.run.is_none() && events[0].text.contains("nothing was erased; basis: not-cleaned"));
            assert_eq!(node.basis, Some(Basis::NotCleaned));
            let left = after(&node, Verb::Manage, CLEANS).unwrap().0;
            assert_eq!(left.basis, None, "the basis is one of AVAILABLE alone");
        }
        // What a user asks for by name is not affected.
        let manual =
            after(&self::node(ProvisionState::Manageable), Verb::Clean, Policy { automated_clean: for_all });
        assert_eq!(manual.unwrap().0.provision_state, ProvisionState::Cleaning);
    }
}

#[test]
fn power_is_refused_while_the_controller_works_on_the_node_and_allowed_when_it_failed() {
    use ProvisionState as P;
    for state in P::ALL {
        for target in PowerTarget::ALL {
            let outcome = apply_power(&node(state), target, NOW);
            let rests = state.is_stable() || state.as_str().ends_with("failed");
            if rests {
                assert_eq!(outcome.unwrap().0.target_power_state, Some(target), "{state:?}");
            } else {
                assert!(matches!(outcome, Err(RequestError::PowerLocked { .. })), "{state:?} {target:?}");
            }
        }
    }
}

#[test]
fn a_node_enters_available_by_no_other_way_than_with_a_basis() {
    let mut node = node(ProvisionState::Cleaning);
    let before = node.clone();
    node.enter(ProvisionState::Available, None, NOW);
    assert!(node.last_error.take().is_some_and(|text| text.contains("without a basis")));
    assert_eq!(node, before);
}
