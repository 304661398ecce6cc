//! What a user can say to a node as it stands, and what it costs: for programs that show choices before one is made.

use crate::node::Node;
use crate::provision::{ProvisionState, Verb, transition};
use crate::request::{Policy, RequestError, check_node};

/// What cannot be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// Its disks are erased.
    Erase,
    /// Its disks are overwritten.
    Overwrite,
    /// What runs on it is interrupted.
    Interrupt,
    /// It enters service with what is on its disks.
    Trust,
}

impl Risk {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Erase => "erase",
            Self::Overwrite => "overwrite",
            Self::Interrupt => "interrupt",
            Self::Trust => "trust",
        }
    }

    /// What a user must know before it is too late, without a subject.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Erase => "its disks are erased",
            Self::Overwrite => "its disks are overwritten",
            Self::Interrupt => "what runs on it is interrupted",
            Self::Trust => "it enters service with what is on its disks",
        }
    }
}

/// A verb that the state of a node takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The verb.
    pub verb: Verb,
    /// What it does.
    pub does: &'static str,
    /// What it costs.
    pub risk: Option<Risk>,
    /// Members that the body of its request must have besides the target.
    pub needs: &'static [&'static str],
    /// Why a flag of the node forbids it.
    pub refused: Option<RequestError>,
}

/// The verbs that the state of a node takes, in the order of the state machine.
pub fn offers(node: &Node, policy: Policy) -> Vec<Offer> {
    use ProvisionState::{Cleaning, Deleting};
    let is_event =
        |verb: Verb| matches!(verb, Verb::Done | Verb::Fail | Verb::Hold | Verb::Wait | Verb::Resume);
    let state = node.provision_state;
    // Ironic's table has `manage` and `clean` there, for the conductor.
    if matches!(state, Cleaning | Deleting) {
        return Vec::new();
    }
    let taken = |verb: &Verb| !is_event(*verb) && transition(state, *verb).is_ok();
    let offer = |verb| {
        let (does, risk, needs) = facts(node, verb, policy);
        Offer { verb, does, risk, needs, refused: check_node(node, verb).err() }
    };
    Verb::ALL.into_iter().filter(taken).map(offer).collect()
}

type Facts = (&'static str, Option<Risk>, &'static [&'static str]);

fn facts(node: &Node, verb: Verb, policy: Policy) -> Facts {
    use ProvisionState as P;
    let is_failed_service = node.provision_state == P::ServiceFail;
    match verb {
        Verb::Manage if node.provision_state == P::Enroll => {
            ("has its BMC verified and takes it under management", None, &[])
        }
        Verb::Manage => ("takes it out of the free nodes and leaves it as it is, manageable", None, &[]),
        Verb::Adopt => ("takes the workload that runs on it as its own, and changes nothing", None, &[]),
        Verb::Clean => ("runs the clean steps that you choose", Some(Risk::Erase), &["clean_steps"]),
        Verb::Inspect => ("learns what hardware it is; the node boots", None, &[]),
        Verb::Provide if policy.cleans(node) => {
            ("cleans it and makes it available: its disks are erased", Some(Risk::Erase), &[])
        }
        Verb::Provide => {
            ("makes it available without cleaning: automated cleaning is switched off", None, &[])
        }
        Verb::Deploy => ("deploys it: its disks are overwritten", Some(Risk::Overwrite), &[]),
        Verb::Rebuild => ("deploys it again: its workload is lost", Some(Risk::Overwrite), &[]),
        Verb::Delete => {
            ("takes it out of use: its workload is lost, and its disks are cleaned", Some(Risk::Erase), &[])
        }
        Verb::Rescue => (
            "boots it into a ramdisk with a login; its workload stops",
            Some(Risk::Interrupt),
            &["rescue_password"],
        ),
        Verb::Unrescue => ("ends the rescue and starts its workload", Some(Risk::Interrupt), &[]),
        Verb::Service => (
            "runs the service steps that you choose; its workload stops",
            Some(Risk::Interrupt),
            &["service_steps"],
        ),
        Verb::Abort if is_failed_service => (
            "gives the service up: the node is active again, and its workload starts with a reboot",
            None,
            &[],
        ),
        Verb::Abort => ("stops what is under way; a step that cannot be stopped ends first", None, &[]),
        Verb::Unhold => ("lets the run go on", None, &[]),
        Verb::Override => (
            "makes it available although its cleaning failed: nothing certifies its disks",
            Some(Risk::Trust),
            &["reason"],
        ),
        Verb::Done | Verb::Fail | Verb::Hold | Verb::Wait | Verb::Resume => ("", None, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{VerbRequest, apply_verb};
    use crate::step::{RequestedStep, StepKind};
    use crate::time::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    const POLICY: Policy = Policy { automated_clean: true };

    fn node(state: ProvisionState) -> Node {
        let mut node = Node::enrolled(Uuid::from_u128(7), "fake-hardware", Timestamp(0));
        node.provision_state = state;
        node
    }

    /// A request that has all that the verb needs.
    fn request(verb: Verb) -> VerbRequest {
        let step: RequestedStep =
            serde_json::from_value(json!({"interface": "deploy", "step": "x"})).unwrap();
        let request = VerbRequest {
            rescue_hash: Some("hash".to_owned()),
            reason: Some("tested".to_owned()),
            ..VerbRequest::of(verb)
        };
        match verb {
            Verb::Clean => request.with_steps(StepKind::Clean, vec![step]),
            Verb::Service => request.with_steps(StepKind::Service, vec![step]),
            _ => request,
        }
    }

    /// Exactly what is offered without an objection is accepted, in every state and under every flag.
    #[test]
    fn what_is_offered_is_what_is_accepted() {
        for state in ProvisionState::ALL {
            for flags in 0..8 {
                let mut node = node(state);
                (node.retired, node.protected, node.maintenance) =
                    (flags & 1 > 0, flags & 2 > 0, flags & 4 > 0);
                let offered: Vec<_> = offers(&node, POLICY)
                    .into_iter()
                    .filter(|offer| offer.refused.is_none())
                    .map(|offer| offer.verb)
                    .collect();
                let accepted: Vec<_> = Verb::ALL
                    .into_iter()
                    .filter(|verb| apply_verb(&node, request(*verb), POLICY, Timestamp(1)).is_ok())
                    .collect();
                assert_eq!(offered, accepted, "{state:?} {flags}");
            }
        }
    }

    #[test]
    fn what_erases_is_said_to_erase() {
        let offer = |node: &Node, verb| {
            offers(node, POLICY).into_iter().find(|offer| offer.verb == verb).expect("an offer")
        };
        let mut manageable = node(ProvisionState::Manageable);
        assert_eq!(offer(&manageable, Verb::Provide).risk, Some(Risk::Erase));
        manageable.automated_clean = Some(false);
        assert_eq!(offer(&manageable, Verb::Provide).risk, None);
        assert_eq!(offer(&node(ProvisionState::Active), Verb::Delete).risk, Some(Risk::Erase));
        assert_eq!(offer(&node(ProvisionState::Active), Verb::Rebuild).risk, Some(Risk::Overwrite));
        assert_eq!(offer(&node(ProvisionState::CleanFail), Verb::Override).needs, ["reason"]);
        // Every verb of a user says what it does.
        for state in ProvisionState::ALL {
            assert!(offers(&node(state), POLICY).iter().all(|offer| !offer.does.is_empty()), "{state:?}");
        }
    }
}
