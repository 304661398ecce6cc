//! Verifying, and nodes without a request.

use conductor::Settings;
use conductor::decision::{Action, ActionError, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::{Contact, EventKind, Health, Node, PowerState, PowerTarget, ProvisionState, Timestamp};
use uuid::Uuid;

const NOW: Timestamp = Timestamp(1_790_000_000_000_000);

fn due(state: ProvisionState) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", NOW);
    room::put(&mut node, state, NOW);
    node.next_wake_at = Some(NOW);
    node
}

fn snapshot(node: Node) -> Snapshot {
    let abilities = Err("not asked at rest".into());
    let contact = Contact::default();
    Snapshot::of(node, contact, abilities, NOW, NOW)
}

#[test]
fn verifying_asks_the_bmc_and_a_refusal_leads_back_to_enroll() {
    let settings = Settings::default();
    let seen = snapshot(due(ProvisionState::Verifying));
    assert_eq!(decide(&seen, &settings), Decision::Act(Action::VerifyBmc));

    let change = apply_outcome(&seen, &Action::VerifyBmc, Outcome::Power(PowerState::Off), &settings);
    assert_eq!(change.node.provision_state, ProvisionState::Manageable);
    assert_eq!((change.node.target_provision_state, change.node.last_error), (None, None));
    let texts: Vec<_> = change.events.iter().map(|event| event.text.split(':').next().unwrap()).collect();
    assert_eq!(texts, ["VERIFIED", "verifying -> manageable"]);

    let wrong =
        ActionError { text: "the BMC refused the password".into(), retryable: false, unreachable: false };
    let change = apply_outcome(&seen, &Action::VerifyBmc, Outcome::Failed(wrong), &settings);
    assert_eq!(change.node.provision_state, ProvisionState::Enroll);
    assert!(change.node.last_error.unwrap().contains("the BMC refused the password"));
}

/// specs/state-machine.txt: "the node will be transitioned to MANAGEABLE and (optionally) powered off".
#[test]
fn a_verified_node_is_powered_off_only_where_that_is_set() {
    let seen = snapshot(due(ProvisionState::Verifying));
    for (wanted, power) in [(false, PowerState::On), (true, PowerState::On), (true, PowerState::Off)] {
        let settings = Settings { power_off_after_verifying: wanted, ..Settings::default() };
        let change = apply_outcome(&seen, &Action::VerifyBmc, Outcome::Power(power), &settings);
        assert_eq!(change.node.provision_state, ProvisionState::Manageable);
        let next = decide(&snapshot(change.node), &settings);
        let off = Decision::Act(Action::SetPower(PowerTarget::Off));
        assert_eq!(next == off, wanted && power == PowerState::On, "{wanted} {power:?}: {next:?}");
    }
}

/// Such a node can be managed; its runs reset it (docs/decisions/0031).
#[test]
fn a_bmc_without_power_state_is_accepted_and_its_node_has_none() {
    let settings = Settings { power_off_after_verifying: true, ..Settings::default() };
    let seen = snapshot(due(ProvisionState::Verifying));
    let change = apply_outcome(&seen, &Action::VerifyBmc, Outcome::PowerUnknown, &settings);
    assert_eq!(change.node.provision_state, ProvisionState::Manageable);
    assert_eq!((change.node.power_state, change.node.target_power_state), (None, None));

    let mut node = due(ProvisionState::Manageable);
    (node.power_state, node.target_power_state) = (Some(PowerState::On), Some(PowerTarget::Off));
    let seen = snapshot(node);
    let change = apply_outcome(&seen, &Action::SetPower(PowerTarget::Off), Outcome::PowerUnknown, &settings);
    assert_eq!((change.node.power_state, change.node.target_power_state), (None, None));
    assert_eq!(change.events[0].text, "power off was accepted by the BMC, which reports no power state");
}

/// The only periodic task there is reads the power state.
#[test]
fn retired_nodes_and_those_that_are_only_enrolled_are_left_out_of_periodic_tasks() {
    let settings = Settings::default();
    let next = |state, retired| {
        let mut node = due(state);
        node.retired = retired;
        decide(&snapshot(node), &settings)
    };
    let left_alone = Decision::Sleep { wait: None, wake_at: None };
    for state in [ProvisionState::Manageable, ProvisionState::Active, ProvisionState::CleanFail] {
        assert_eq!(next(state, false), Decision::Act(Action::ReadState), "{state:?}");
        assert_eq!(next(state, true), left_alone, "{state:?}");
    }
    assert_eq!(next(ProvisionState::Enroll, false), left_alone);
}

/// In a stable state the conductor at most reads the state of power and health.
#[test]
fn a_stable_state_is_not_left_without_a_request() {
    let settings = Settings::default();
    for state in ProvisionState::ALL.into_iter().filter(|state| state.is_stable()) {
        let seen = snapshot(due(state));
        match decide(&seen, &settings) {
            Decision::Act(Action::ReadState) => {
                for power in [PowerState::On, PowerState::Off] {
                    let change =
                        apply_outcome(&seen, &Action::ReadState, Outcome::State(power, None), &settings);
                    assert_eq!(change.node.provision_state, state);
                }
            }
            other => assert_eq!(other, Decision::Sleep { wait: None, wake_at: None }, "{state:?}"),
        }
    }
}

/// As Ironic records it: only what has changed, in its words; a BMC that cannot be read reports nothing new.
#[test]
fn the_health_that_a_bmc_reports_is_the_nodes_and_each_change_is_in_its_history() {
    let settings = Settings::default();
    let mut node = due(ProvisionState::Active);
    node.power_state = Some(PowerState::On);
    let silent = ActionError { text: "no answer".into(), retryable: true, unreachable: true };
    let reported = |health| Outcome::State(PowerState::On, health);
    for (outcome, health, says) in [
        (reported(Some(Health::Ok)), Some(Health::Ok), Some("health='OK' (previously 'None')")),
        (reported(Some(Health::Ok)), Some(Health::Ok), None),
        (
            reported(Some(Health::Critical)),
            Some(Health::Critical),
            Some("health='Critical' (previously 'OK')"),
        ),
        (Outcome::Failed(silent), Some(Health::Critical), None),
        (reported(None), None, Some("health='None' (previously 'Critical')")),
    ] {
        let change = apply_outcome(&snapshot(node.clone()), &Action::ReadState, outcome, &settings);
        let said: Vec<_> = change.events.iter().map(|event| (event.kind, event.text.clone())).collect();
        let expected =
            says.map(|says| (EventKind::Monitoring, format!("Node health status changed: {says}")));
        assert_eq!(said, expected.into_iter().collect::<Vec<_>>());
        assert_eq!((change.node.health, change.node.power_state), (health, Some(PowerState::On)));
        node = Node { next_wake_at: Some(NOW), ..change.node };
    }
}
