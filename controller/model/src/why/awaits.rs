//! What a node waits for, and since when.

use super::facts::Facts;
use crate::node::{Node, Wait};
use crate::phase::Phase;
use crate::provision::ProvisionState;
use crate::run::{Cursor, Run};
use crate::step::PlannedStep;
use crate::time::Timestamp;

/// The thing or person that is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// Nothing: the node is in use.
    Nothing,
    /// A user.
    User,
    /// The controller, which acts next; or any controller, where none that drives the node is alive.
    Controller,
    /// The BMC.
    Bmc,
    /// The ramdisk, which boots.
    Ramdisk,
    /// An answer or a heartbeat of the agent.
    Agent,
    /// The end of a step.
    Step,
    /// The hello of the instance.
    Instance,
    /// A time.
    Time,
}

impl Awaited {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Nothing,
        Self::User,
        Self::Controller,
        Self::Bmc,
        Self::Ramdisk,
        Self::Agent,
        Self::Step,
        Self::Instance,
        Self::Time,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::User => "user",
            Self::Controller => "controller",
            Self::Bmc => "bmc",
            Self::Ramdisk => "ramdisk",
            Self::Agent => "agent",
            Self::Step => "step",
            Self::Instance => "instance",
            Self::Time => "time",
        }
    }
}

/// What a node waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaits {
    /// The thing or person.
    pub what: Awaited,
    /// The same as text, which goes on a sentence: "it waits for …".
    pub text: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// After this the controller acts on the silence; `None`: it waits without a limit, or acts at once.
    pub until: Option<Timestamp>,
}

pub(super) fn of(facts: &Facts) -> Awaits {
    let node = facts.node;
    let changed = Some(node.provision_updated_at.unwrap_or(node.created_at));
    let phase = node.provision_state.phase();
    let is_asked = node.target_power_state.is_some();
    if facts.conductor.is_none() && (is_asked || !phase.is_at_rest()) {
        let text = format!(
            "a controller that drives it: none of its conductor group {:?} is alive",
            node.conductor_group()
        );
        return Awaits { what: Awaited::Controller, text, since: changed, until: None };
    }
    let run = node.run.as_ref().filter(|run| run.is_active());
    let (what, text) = match (phase, node.target_power_state, run) {
        (Phase::Stable | Phase::Failed, Some(target), _) => {
            (Awaited::Bmc, format!("the BMC to do what a user asked for: {}", target.as_str()))
        }
        (Phase::Stable | Phase::Failed, None, _) => at_rest(node),
        (Phase::Verifies, ..) => (Awaited::Bmc, "the BMC to answer".to_owned()),
        (Phase::Held | Phase::Works, _, Some(run)) => by_cursor(run),
        // A state that needs a run and has none: the controller's next look fails it.
        (Phase::Held | Phase::Works, _, None) => {
            (Awaited::Controller, "the controller, which finds no run stored".to_owned())
        }
    };
    let since = run.and_then(|run| began(&run.cursor)).or(changed);
    if facts.awaits_accepted_measurements() {
        let noted = node.tpm.as_ref().and_then(|tpm| tpm.changed.as_ref());
        let text = "a user to accept what its boot measured: that is not as recorded, and its agent gets no token before".to_owned();
        let until = node.wait.as_ref().and_then(|wait| wait.deadline);
        return Awaits { what: Awaited::User, text, since: noted.map(|changed| changed.at), until };
    }
    match node.wait.as_ref().filter(|_| is_asked || !phase.is_at_rest()) {
        Some(Wait { reason, since, deadline }) => {
            Awaits { what, text: reason.clone(), since: Some(*since), until: *deadline }
        }
        None => Awaits { what, text, since, until: None },
    }
}

/// When what the cursor stands for began, where that is stored.
fn began(cursor: &Cursor) -> Option<Timestamp> {
    match cursor {
        Cursor::Issued { at, .. } | Cursor::OutOfBand { at, .. } => Some(*at),
        Cursor::Pause { since, .. } | Cursor::AwaitHello { since, .. } => Some(*since),
        _ => None,
    }
}

fn at_rest(node: &Node) -> (Awaited, String) {
    use ProvisionState as P;
    let text = match node.provision_state {
        P::Active if !node.maintenance => return (Awaited::Nothing, "nothing: it is in use".to_owned()),
        P::Enroll if node.last_error.is_some() => "a user: its BMC could not be verified",
        P::Enroll => "a user to take it under management",
        P::Manageable if node.retired => "nothing but a user's decision: it is retired",
        P::Manageable => "a user to make it available",
        P::Available => "a user or a scheduler to deploy it",
        P::Active => "a user: it is in use",
        P::Rescue => "a user to end the rescue",
        P::Error => "a user: its workload could not be torn down",
        P::DeployFail => "a user: its deployment failed or was aborted",
        P::CleanFail => "a user: its cleaning failed or was aborted",
        P::InspectFail => "a user: its inspection failed or was aborted",
        P::AdoptFail => "a user: it could not be adopted",
        P::RescueFail => "a user: its rescue failed or was aborted",
        P::UnrescueFail => "a user: its workload could not be started after the rescue",
        P::ServiceFail => "a user: its service failed or was aborted",
        _ => "a user",
    };
    let maintenance = if node.maintenance { "; it is in maintenance" } else { "" };
    (Awaited::User, format!("{text}{maintenance}"))
}

/// Where the conductor has stored no reason: what the next action of a run needs.
fn by_cursor(run: &Run) -> (Awaited, String) {
    let label = run.current().map(PlannedStep::label).unwrap_or_default();
    let (what, text) = match &run.cursor {
        Cursor::Start => (Awaited::Controller, "the controller to find out what the run needs"),
        Cursor::NextStep => (Awaited::Controller, "the controller to begin the next step"),
        Cursor::Done => (Awaited::Controller, "the controller, which finds the run ended"),
        Cursor::PowerOff => (Awaited::Bmc, "the BMC to power the node off before it boots the ramdisk"),
        Cursor::ReadBootDevice => (Awaited::Bmc, "the BMC to say what the node boots from"),
        Cursor::SetBootDevice => (Awaited::Bmc, "the BMC to make the next boot a network boot"),
        Cursor::PowerOn => (Awaited::Bmc, "the BMC to power the node on"),
        Cursor::RestoreBootDevice => (Awaited::Bmc, "the BMC to set the boot device of before"),
        Cursor::Reboot => (Awaited::Bmc, "the BMC to reboot the node after a step"),
        Cursor::TearDown => (Awaited::Bmc, "the BMC to stop the node at the end of the run"),
        Cursor::Restart => (Awaited::Bmc, "the BMC to start the workload"),
        Cursor::AskInventory => (Awaited::Bmc, "the BMC to report its inventory"),
        Cursor::AwaitAgent => (Awaited::Ramdisk, "the ramdisk to boot and its agent to send a heartbeat"),
        Cursor::AwaitInventory => (Awaited::Ramdisk, "the ramdisk to send the inventory"),
        Cursor::LearnSteps => (Awaited::Agent, "the agent to say which steps it offers"),
        Cursor::Issued { accepted: false, .. } => {
            return (Awaited::Agent, format!("the agent to take step {label}"));
        }
        Cursor::Issued { .. } | Cursor::OutOfBand { .. } => {
            return (Awaited::Step, format!("step {label} to end"));
        }
        Cursor::Hold => (Awaited::User, "a user to say \"unhold\" (or \"abort\")"),
        Cursor::Pause { until: Some(_), .. } => (Awaited::Time, "the time of the step wait to pass"),
        Cursor::Pause { until: None, .. } => (Awaited::Agent, "a heartbeat of the agent"),
        Cursor::AwaitHello { .. } => (Awaited::Instance, "the instance to say hello"),
    };
    (what, text.to_owned())
}
