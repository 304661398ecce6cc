//! What happens next, and when.

use super::facts::Facts;
use crate::kept_ramdisk::KeptRamdisk;
use crate::node::Node;
use crate::phase::Phase;
use crate::provision::ProvisionState;
use crate::run::{Cursor, Logs, Run};
use crate::step::PlannedStep;
use crate::time::Timestamp;

/// The one that acts next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The controller, by itself.
    Controller,
    /// A user: without a command nothing happens.
    User,
}

impl By {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::User => "user",
        }
    }
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// By whom.
    pub by: By,
    /// One sentence, without a full stop.
    pub text: String,
    /// When, at the latest; in the past: it is due. `None`: no time is stored.
    pub at: Option<Timestamp>,
}

pub(super) fn of(facts: &Facts) -> Next {
    let node = facts.node;
    let phase = node.provision_state.phase();
    let run = node.run.as_ref().filter(|run| run.is_active());
    let mut next = match (phase, run) {
        (Phase::Stable | Phase::Failed, _) => at_rest(node),
        (Phase::Held, _) => user("nothing happens before a user says \"unhold\" or \"abort\""),
        (Phase::Verifies, _) => verifies(node),
        (Phase::Works, Some(run)) => works(node, run),
        (Phase::Works, None) => due(node, "the controller finds no run stored, and fails the node"),
    };
    match (next.by, facts.conductor, facts.locked_by) {
        (By::User, ..) => {}
        (_, None, _) => {
            next.text = format!("nothing before a controller drives the node; then {}", next.text);
            next.at = None;
        }
        (.., Some(holder)) => next.text = format!("{} (controller {holder} is at it now)", next.text),
        _ => {}
    }
    next
}

fn user(text: &str) -> Next {
    Next { by: By::User, text: text.to_owned(), at: None }
}

/// The controller does it at the stored wake-up time.
fn due(node: &Node, text: &str) -> Next {
    Next { by: By::Controller, text: text.to_owned(), at: node.next_wake_at }
}

fn at_rest(node: &Node) -> Next {
    let run = node.run.as_ref();
    if let Some(target) = node.target_power_state {
        let text = match &node.wait {
            None => format!("the controller asks the BMC for {}", target.as_str()),
            Some(_) => {
                let reached = target.resulting_state().as_str();
                format!("the controller reads the power state until it is {reached}, or gives up")
            }
        };
        return due(node, &text);
    }
    match run.and_then(|run| run.ramdisk_kept) {
        Some(KeptRamdisk::PoweringOff(_)) => {
            return due(node, "the controller powers off the ramdisk that the cleaning left running");
        }
        Some(KeptRamdisk::Since(_)) => {
            return user(
                "nothing happens before a command: the ramdisk of the cleaning keeps running for a deployment, and is powered \
                 off if none comes",
            );
        }
        None => {}
    }
    if run.is_some_and(|run| run.logs == Some(Logs::Wanted)) {
        return user(
            "the controller collects the logs of the ramdisk; nothing else happens before a command",
        );
    }
    user("nothing happens before a command")
}

fn verifies(node: &Node) -> Next {
    let (verb, fails) = match node.provision_state {
        ProvisionState::Adopting => ("adopted", "\"adopt failed\""),
        _ => ("verified", "\"enroll\""),
    };
    due(
        node,
        &format!(
            "the controller asks the BMC; the node is {verb} when it answers, and goes to {fails} when it does not in time"
        ),
    )
}

/// What the next action of a run is, and what becomes of the run when what is awaited does not come.
fn works(node: &Node, run: &Run) -> Next {
    let label = run.current().map(PlannedStep::label).unwrap_or_default();
    let deadline = node.wait.as_ref().and_then(|wait| wait.deadline).or(node.next_wake_at);
    let awaited = |text: &str| Next { by: By::Controller, text: text.to_owned(), at: deadline };
    if let Some(hung) = &run.hung {
        return due(node, &format!("the controller stops step {label}, then the run fails: {hung}"));
    }
    if run.abort {
        return due(node, &format!("the run ends, because a user aborted it, when step {label} has stopped"));
    }
    let next = match &run.cursor {
        Cursor::AwaitAgent => {
            awaited("its first heartbeat lets the run go on; without one until then the run fails")
        }
        Cursor::AwaitInventory => {
            awaited("the inventory ends the wait; without one until then the run fails")
        }
        Cursor::AwaitHello { .. } => {
            awaited("the hello ends the deployment; without one until then it fails")
        }
        Cursor::Pause { until: Some(_), .. } => awaited("the next step begins"),
        Cursor::Pause { until: None, .. } => {
            awaited("a heartbeat lets the run go on; without one until then the step fails")
        }
        cursor => due(node, &action(cursor, run, &label)),
    };
    match run.attempts {
        0 => next,
        1 => Next { text: format!("{}, again: the last attempt failed", next.text), ..next },
        times => Next { text: format!("{}, again: the last {times} attempts failed", next.text), ..next },
    }
}

/// The action that the cursor names.
fn action(cursor: &Cursor, run: &Run, label: &str) -> String {
    let text = match cursor {
        Cursor::Start => "the controller finds out whether the run needs the ramdisk",
        Cursor::PowerOff => "the controller asks the BMC to power the node off",
        Cursor::ReadBootDevice => "the controller reads the boot device from the BMC",
        Cursor::SetBootDevice => "the controller asks the BMC to make the next boot a network boot",
        Cursor::PowerOn => "the controller asks the BMC to power the node on",
        Cursor::RestoreBootDevice => "the controller asks the BMC to set the boot device",
        Cursor::LearnSteps => "the controller asks the agent for its steps",
        Cursor::NextStep => match run.next_index() {
            Some(_) => "the controller begins the next step",
            None => "the controller ends the run: every step has succeeded",
        },
        Cursor::Issued { accepted: false, .. } => {
            return format!("the controller sends step {label} to the agent");
        }
        Cursor::Issued { .. } => return format!("the controller asks the agent how step {label} stands"),
        Cursor::OutOfBand { polling: false, .. } => return format!("the controller runs step {label}"),
        Cursor::OutOfBand { .. } => return format!("the controller asks the BMC how step {label} stands"),
        Cursor::Reboot => "the controller asks the BMC to reboot the node",
        Cursor::AskInventory => "the controller asks the BMC for its inventory",
        Cursor::TearDown => "the controller ends the run, and stops the node where that belongs to it",
        Cursor::Restart => "the controller asks the BMC to start the workload",
        Cursor::Hold
        | Cursor::Pause { .. }
        | Cursor::AwaitAgent
        | Cursor::AwaitInventory
        | Cursor::AwaitHello { .. } => "the controller waits",
        Cursor::Done => "the controller finds the run ended, and fails the node",
    };
    text.to_owned()
}
