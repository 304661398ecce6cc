//! What can be done: the commands that lead out of where a node stands, each of which is accepted now.

use super::command::Command;
use super::facts::Facts;
use crate::boot::RamdiskAgent;
use crate::kind::RunKind;
use crate::node::Node;
use crate::phase::Phase;
use crate::power::PowerTarget;
use crate::provision::{ProvisionState, Verb, transition};
use crate::request::{RequestError, check_node};
use crate::storage;

/// A command, and what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The command.
    pub command: Command,
    /// What it does.
    pub does: String,
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Help {
    /// One sentence: which of the commands is the usual one, or that none is needed or helps and why.
    pub text: String,
    /// Alternatives, the usual one first.
    pub commands: Vec<Advice>,
}

pub(super) fn of(facts: &Facts) -> Help {
    let node = facts.node;
    let phase = node.provision_state.phase();
    let waits_for_power = phase.is_at_rest() && node.target_power_state.is_some();
    if facts.conductor.is_none() && (waits_for_power || !phase.is_at_rest()) {
        let text = format!(
            "no command for the node helps: start a controller of conductor group {:?}, or one without a group",
            node.conductor_group()
        );
        return Help { text, commands: Vec::new() };
    }
    if waits_for_power {
        return none(
            "no command is needed: the controller asks the BMC until it reports the power state, or gives up",
        );
    }
    let commands = commands(facts);
    if facts.awaits_accepted_measurements() {
        let text = "if what changed is your doing, the first command lets the run go on: its agent proves its boot again";
        return Help { text: text.to_owned(), commands };
    }
    let text = match (phase, commands.is_empty()) {
        (Phase::Works, true) if node.run.as_ref().is_some_and(|run| run.abort) => {
            "no command is needed: a user has aborted the run, which ends when its step has stopped"
        }
        (Phase::Works | Phase::Verifies, true) => {
            "no command is needed, and none is taken in this state: the controller goes on by itself"
        }
        (Phase::Works | Phase::Verifies, false) => "no command is needed: the controller goes on by itself",
        (Phase::Held, _) => "one of these commands ends the hold",
        (Phase::Failed, _) => {
            "when the cause is removed, these commands lead out of the state, the usual one first"
        }
        (Phase::Stable, true) => "no command is needed",
        (Phase::Stable, false) if node.last_error.is_some() => {
            "when the cause of the last error is removed, these commands lead on, the usual one first"
        }
        (Phase::Stable, false) => "these commands lead on, the usual one first",
    };
    Help { text: text.to_owned(), commands }
}

fn none(text: &str) -> Help {
    Help { text: text.to_owned(), commands: Vec::new() }
}

fn commands(facts: &Facts) -> Vec<Advice> {
    let node = facts.node;
    let mut commands = Commands { node, all: Vec::new() };
    let phase = node.provision_state.phase();
    if phase.is_at_rest() {
        commands.removes_the_cause(facts);
    }
    if node.tpm.as_ref().is_some_and(|tpm| tpm.changed.is_some()) {
        let does = "accepts what the last boot measured in place of what is recorded, which it shows; only if the change is yours";
        commands.add(Command::AcceptMeasurements, does.to_owned());
    }
    // The next run takes back the maintenance that a failed one has set.
    if phase == Phase::Stable && node.maintenance {
        commands.unset_maintenance();
    }
    for (verb, does) in ways_out(facts) {
        commands.verb(verb, does);
    }
    if phase == Phase::Failed && node.maintenance && node.fault.is_none() {
        commands.unset_maintenance();
    }
    commands.all
}

/// The verbs of a state, the usual one first; not all that it takes: none that destroys a workload where another leads out.
fn ways_out(facts: &Facts) -> Vec<(Verb, &'static str)> {
    use ProvisionState as P;
    const ABORT: (Verb, &str) =
        (Verb::Abort, "stops what is under way; a step that cannot be stopped ends first");
    const DELETE: (Verb, &str) =
        (Verb::Delete, "takes the node out of use: its workload is lost, and its disks are cleaned");
    const MANAGE: (Verb, &str) = (Verb::Manage, "leaves the node as it is, manageable");
    const UNHOLD: (Verb, &str) = (Verb::Unhold, "lets the run go on");
    let (node, run) = (facts.node, facts.node.run.as_ref());
    match node.provision_state {
        P::Enroll => vec![(
            Verb::Manage,
            "has its BMC verified and takes it under management; `anneal node set` changes address and credentials",
        )],
        P::Manageable if facts.policy.cleans(node) => vec![
            (Verb::Provide, "cleans it and makes it available"),
            (Verb::Inspect, "learns what hardware it is"),
        ],
        P::Manageable => vec![
            (Verb::Provide, "makes it available without cleaning: automated cleaning is switched off"),
            (Verb::Inspect, "learns what hardware it is"),
        ],
        P::Available => vec![(Verb::Deploy, deploys(node)), (Verb::Manage, "takes it out of the free nodes")],
        P::Active => vec![DELETE],
        P::Error => vec![(Verb::Delete, "tries the tear-down again, then cleans")],
        P::Rescue => vec![(Verb::Unrescue, "ends the rescue and starts the workload")],
        P::CleanFail if run.is_none_or(|run| run.kind != RunKind::ManualClean) => {
            vec![(Verb::Provide, "cleans it again and makes it available"), MANAGE]
        }
        P::CleanFail => vec![MANAGE, (Verb::Provide, "cleans it and makes it available")],
        P::DeployFail => vec![
            (Verb::Deploy, deploys(node)),
            (Verb::Delete, "gives the deployment up; the disks are cleaned"),
        ],
        P::InspectFail => vec![(Verb::Inspect, "inspects it again"), MANAGE],
        P::AdoptFail => vec![(Verb::Adopt, "tries to adopt it again"), MANAGE],
        P::RescueFail => vec![
            (Verb::Unrescue, "gives the rescue up and starts the workload"),
            (Verb::Rescue, "tries the rescue again; it asks for a password"),
        ],
        P::UnrescueFail => vec![
            (Verb::Unrescue, "tries to start the workload again"),
            (Verb::Rescue, "goes back to the rescue; it asks for a password"),
        ],
        P::ServiceFail => vec![
            (
                Verb::Abort,
                "gives the service up: the node is active again, and its workload starts with a reboot",
            ),
            DELETE,
        ],
        P::DeployHold | P::CleanHold | P::ServiceHold => vec![UNHOLD, ABORT],
        P::DeployWait | P::CleanWait | P::InspectWait | P::RescueWait | P::ServiceWait => {
            let aborts = run.is_some_and(|run| run.abort);
            if aborts { Vec::new() } else { vec![ABORT] }
        }
        P::Verifying
        | P::Adopting
        | P::Deploying
        | P::Cleaning
        | P::Deleting
        | P::Inspecting
        | P::Rescuing
        | P::Unrescuing
        | P::Servicing => Vec::new(),
    }
}

fn deploys(node: &Node) -> &'static str {
    match node.instance_info.contains_key("image_source") {
        true => "deploys it with the image of its instance_info; --image URL --checksum DIGEST names another",
        false => {
            "deploys it; its instance_info names no image, so add --image URL --checksum DIGEST where one is to be written"
        }
    }
}

/// A list that has each command once, and none that is not accepted.
struct Commands<'a> {
    node: &'a Node,
    all: Vec<Advice>,
}

impl Commands<'_> {
    fn add(&mut self, command: Command, does: String) {
        if !self.all.iter().any(|known| known.command == command) {
            self.all.push(Advice { command, does });
        }
    }

    /// A verb that the state takes; in its place, what has to be said first where a flag of the node forbids it.
    fn verb(&mut self, verb: Verb, does: &str) {
        if transition(self.node.provision_state, verb).is_err() {
            return;
        }
        let because = |reason: &Option<String>| {
            reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
        };
        match check_node(self.node, verb) {
            Ok(()) => self.add(Command::Verb(verb), does.to_owned()),
            Err(RequestError::Retired { .. }) => {
                let does = format!(
                    "lets it enter service again: it is retired{}",
                    because(&self.node.retired_reason)
                );
                self.add(Command::UnsetRetired, does);
            }
            Err(RequestError::Protected(_)) => {
                let does = format!(
                    "lets it be deleted and rebuilt: it is protected{}",
                    because(&self.node.protected_reason)
                );
                self.add(Command::UnsetProtected, does);
            }
            Err(RequestError::Maintenance { .. }) => self.unset_maintenance(),
            Err(_) => {}
        }
    }

    fn unset_maintenance(&mut self) {
        self.add(Command::UnsetMaintenance, "puts it into service again: it is in maintenance".to_owned());
    }

    /// What removes the cause of a failure, where the stored answer names it.
    fn removes_the_cause(&mut self, facts: &Facts) {
        let node = self.node;
        let error = node.last_error.as_deref().unwrap_or_default();
        if let Some(target) = refused_power(error) {
            self.add(Command::Power(target), "asks for the power again".to_owned());
        }
        for disk in &node.disks.known {
            let name = disk.name();
            let is_missing = error.contains(&format!("disk {name} is missing"));
            // What the properties expect cannot be retired.
            if is_missing && storage::retire(&mut node.clone(), name, "", node.created_at).is_ok() {
                let does = format!("accepts that disk {name} has left the node; only if that is so");
                self.add(Command::RetireDisk(name.to_owned()), does);
            }
        }
        if facts.contact.unsigned.is_some() && RamdiskAgent::of(&node.properties) == RamdiskAgent::Anneal {
            let does =
                "declares that the node boots ironic-python-agent, which signs nothing; only if that is so"
                    .to_owned();
            self.add(Command::SetAgentKind("ironic-python-agent"), does);
        }
    }
}

/// The power that a user asked for and the BMC did not bring, by the text that is stored of it.
fn refused_power(error: &str) -> Option<PowerTarget> {
    let failed = |target: &PowerTarget| {
        let name = target.as_str();
        error.starts_with(&format!("Failed to change power state to '{name}':"))
            || error.starts_with(&format!("{name} was accepted by the BMC but"))
    };
    PowerTarget::ALL.into_iter().find(failed)
}
