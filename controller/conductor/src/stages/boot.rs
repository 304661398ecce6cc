//! From a node in any power state to a ramdisk that has sent its first heartbeat.
//!
//! The node is always powered off first. Its agent's token is forgotten while the BMC reports that the node is off, so
//! an agent of an earlier boot cannot be mistaken for the new one, and no second token is given out within a boot. In the same
//! write the next boot gets its nonce, which the boot script passes to the agent.

use super::fail::{self, retry_or_fail};
use super::power::power_pending;
use super::second_agent;
use super::transition::{at_work, in_wait};
use super::view::View;
use super::wait::{is_due, is_overdue, sleep_in, sleep_on, unexpected, waiting_for_agent};
use crate::decision::{Action, Change, Decision, Outcome};
use model::boot::Boot;
use model::run::{Cursor, PersistentBoot};
use model::{PowerState, PowerTarget, RunKind};

/// The boot device of [`Action::SetBootDevice`].
const NETWORK: &str = "pxe";

pub(super) fn decide(view: &View) -> Decision {
    let snapshot = view.snapshot;
    match view.run.cursor {
        Cursor::AwaitAgent => await_agent(view),
        _ if !is_due(snapshot) => sleep_on(&snapshot.node),
        Cursor::PowerOff => Decision::Act(Action::SetPower(PowerTarget::Off)),
        Cursor::ReadBootDevice => Decision::Act(Action::ReadBootDevice),
        Cursor::SetBootDevice => Decision::Act(Action::SetBootDevice),
        Cursor::RestoreBootDevice => match view.run.boot_before.clone() {
            Some(before) => Decision::Act(Action::RestoreBootDevice(before)),
            None => Decision::Record(Box::new(view.advance(after_boot(view.run.kind)))),
        },
        Cursor::Reboot => Decision::Act(Action::SetPower(PowerTarget::Reboot)),
        _ => Decision::Act(Action::SetPower(PowerTarget::On)),
    }
}

fn await_agent(view: &View) -> Decision {
    let snapshot = view.snapshot;
    if snapshot.contact.callback_url.is_some() {
        let mut change = booted(view);
        at_work(&mut change, "the agent sent its first heartbeat", snapshot.now);
        return Decision::Record(Box::new(change));
    }
    if let Some(change) = second_agent::before_first_heartbeat(view) {
        return Decision::Record(Box::new(change));
    }
    let reason = "the ramdisk to boot and its agent to send a heartbeat";
    let limit = view.budget();
    let wait = waiting_for_agent(view, reason, limit);
    if is_overdue(&wait, snapshot.now) {
        let doing = view.run.kind.doing();
        let text = format!(
            "Timeout reached while {doing} the node: no heartbeat of an agent within {} s of power-on. \
             Please check if the ramdisk responsible for the {doing} is running on the node.",
            limit.as_secs()
        );
        return Decision::Record(Box::new(fail::failed(view, &text)));
    }
    sleep_in(wait)
}

/// The ramdisk has booted: restore the persistent boot device, if it was changed.
pub(super) fn booted(view: &View) -> Change {
    let restore = view.run.boot_before.is_some();
    view.advance(if restore { Cursor::RestoreBootDevice } else { after_boot(view.run.kind) })
}

fn after_boot(kind: RunKind) -> Cursor {
    match kind {
        RunKind::Inspect => Cursor::TearDown,
        kind if kind.steps().is_some() => Cursor::LearnSteps,
        _ => Cursor::NextStep,
    }
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    let now = view.snapshot.now;
    match (&view.run.cursor, outcome) {
        (Cursor::PowerOff, Outcome::Power(PowerState::Off)) => {
            let mut change = view.advance(Cursor::ReadBootDevice);
            change.node.power_state = Some(PowerState::Off);
            change.forget_agent = true;
            change.next_boot = Some(Boot::fresh());
            change
        }
        (Cursor::PowerOff, Outcome::Power(state)) => power_pending(view, state, PowerState::Off),
        (Cursor::ReadBootDevice, Outcome::BootDevice(before)) => boot_device_read(view, before),
        // Not every BMC reports it. Then there is nothing to restore.
        (Cursor::ReadBootDevice, Outcome::Failed(error)) if !error.retryable => boot_device_read(view, None),
        (Cursor::RestoreBootDevice, Outcome::Done) => {
            let mut change = view.advance(after_boot(view.run.kind));
            if let Some(run) = &mut change.node.run {
                run.boot_before = None;
            }
            change
        }
        (Cursor::SetBootDevice, Outcome::Done) => network_boot_chosen(view),
        (Cursor::Reboot, Outcome::Power(PowerState::On)) => {
            let mut change = view.advance(Cursor::NextStep);
            change.node.power_state = Some(PowerState::On);
            change.forget_agent = true;
            change
        }
        (Cursor::Reboot, Outcome::Power(state)) => power_pending(view, state, PowerState::On),
        (Cursor::PowerOn, Outcome::Power(PowerState::On)) => {
            // ironic-python-agent sends the inventory before it looks itself up.
            let inspects = view.run.kind == RunKind::Inspect;
            let next = if inspects { Cursor::AwaitInventory } else { Cursor::AwaitAgent };
            let mut change = view.advance(next);
            change.node.power_state = Some(PowerState::On);
            change.node.last_error = None;
            in_wait(&mut change, "powered on to boot the ramdisk from the network", now);
            change
        }
        (Cursor::PowerOn, Outcome::Power(state)) => power_pending(view, state, PowerState::On),
        (_, Outcome::Failed(error)) => {
            let what = match action {
                Action::ReadBootDevice => "Failed to read what the node boots from",
                Action::RestoreBootDevice(_) => "Failed to let the node boot from what it did before",
                Action::SetBootDevice => "Failed to set the node to boot from the network",
                Action::SetPower(PowerTarget::Reboot) => "Failed to reboot the node after a step",
                Action::SetPower(PowerTarget::Off) => {
                    "Failed to power off the node before booting the ramdisk"
                }
                _ => "Failed to power on the node to boot the ramdisk",
            };
            retry_or_fail(view, error, what)
        }
        (_, other) => {
            let error = unexpected(&format!("{action:?}"), &other);
            retry_or_fail(view, error, "Failed to boot the ramdisk")
        }
    }
}

/// Store the persistent boot device, to be restored after the boot. A node that always boots from the network keeps its
/// setting.
fn boot_device_read(view: &View, before: Option<PersistentBoot>) -> Change {
    if before.as_ref().is_some_and(|before| before.device == NETWORK) {
        return network_boot_chosen(view);
    }
    let mut change = view.advance(Cursor::SetBootDevice);
    if let (Some(run), Some(before)) = (&mut change.node.run, before) {
        run.boot_before = Some(before);
    }
    change
}

fn network_boot_chosen(view: &View) -> Change {
    let mut change = view.advance(Cursor::PowerOn);
    if let Some(run) = &mut change.node.run {
        run.booted = true;
    }
    change
}
