//! From a node in any power state to a ramdisk that has sent its first heartbeat.
//!
//! The node is always powered off first. Its agent's token is forgotten while the BMC reports that the node is off, so
//! an agent of an earlier boot cannot be mistaken for the new one, and no second token is given out within a boot. In the same
//! write the next boot gets its nonce, which the boot script passes to the agent.
//!
//! A node that cannot be seen off (it is never powered off, or its BMC reports no power state) is reset instead. Its agent's
//! token is forgotten, and the nonce made, when the BMC has accepted the reset; the fetch of the boot script since then shows
//! that the boot has begun (docs/decisions/0031). The boot device counts for one boot: it is set shortly before the reset,
//! after the firmware that an earlier reset started has chosen what it boots, and again before the reset is repeated.

use super::fail::{self, retry_or_fail};
use super::medium;
use super::next_step::command_id;
use super::power::{power_pending, reported};
use super::power_loss;
use super::second_agent;
use super::success::succeeded;
use super::transition::{at_work, in_wait};
use super::view::View;
use super::wait::{is_due, is_overdue, sleep_in, sleep_on, unexpected, waiting_for_agent};
use crate::decision::{Action, Change, Decision, Outcome};
use model::agent::UnsignedAgent;
use model::boot::{AGENT_KIND, Boot, BootStart};
use model::image::{PREPARE_INSTANCE_BOOT, is_step};
use model::run::{Cursor, PersistentBoot};
use model::{PowerState, PowerTarget, RunKind, Wait};
use serde_json::Value;
use std::time::Duration;

/// How long a boot device that was set for one boot is relied on without being set again.
pub const BOOT_DEVICE_NEW: Duration = Duration::from_secs(30);

/// The boot device of [`Action::SetBootDevice`].
const NETWORK: &str = "pxe";

pub(super) fn decide(view: &View) -> Decision {
    let snapshot = view.snapshot;
    if view.run.cursor == Cursor::RestoreBootDevice
        && let Some(eject) = medium::eject_first(view)
    {
        return eject;
    }
    match view.run.cursor {
        Cursor::AwaitAgent => await_agent(view),
        _ if !is_due(snapshot) => sleep_on(&snapshot.node),
        Cursor::PowerOff if snapshot.node.never_powers_off() && medium::is_used(view) => {
            Decision::Record(Box::new(fail::failed(view, NEEDS_OFF)))
        }
        Cursor::PowerOff if snapshot.node.never_powers_off() => Decision::Record(Box::new(to_reset(view))),
        Cursor::PowerOff if snapshot.node.power_state.is_none() => Decision::Act(Action::ReadPower),
        Cursor::PowerOff => Decision::Act(Action::SetPower(PowerTarget::Off)),
        Cursor::ReadBootDevice => Decision::Act(Action::ReadBootDevice),
        Cursor::SetBootDevice => match reset_pause(view) {
            Some(wait) => sleep_in(wait),
            None if medium::is_used(view) => medium::insert(view),
            None => Decision::Act(Action::SetBootDevice),
        },
        Cursor::RestoreBootDevice => match view.run.boot_before.clone() {
            Some(before) => Decision::Act(Action::RestoreBootDevice(before)),
            None => Decision::Record(Box::new(view.advance(after_boot(view.run.kind)))),
        },
        Cursor::Reboot => Decision::Act(Action::SetPower(PowerTarget::Reboot)),
        Cursor::PowerOn
            if begins_with_reset(view) && !view.run.starts_instance() && !is_boot_device_new(view) =>
        {
            Decision::Record(Box::new(view.with_run(|run| run.cursor = Cursor::SetBootDevice)))
        }
        Cursor::PowerOn if begins_with_reset(view) => Decision::Act(Action::SetPower(PowerTarget::Reboot)),
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
    if let Some(unsigned) = &snapshot.contact.unsigned {
        return Decision::Record(Box::new(fail::failed(view, &unsigned_agent(unsigned))));
    }
    if let Some(change) = second_agent::before_first_heartbeat(view) {
        return Decision::Record(Box::new(change));
    }
    let reason = "the ramdisk to boot and its agent to send a heartbeat";
    let limit = view.budget();
    let wait = waiting_for_agent(view, reason, limit);
    if is_overdue(&wait, snapshot.now) {
        let doing = view.run.kind.doing();
        let check = medium::without_agent(view).unwrap_or_else(|| {
            format!("Please check if the ramdisk responsible for the {doing} is running on the node.")
        });
        let text = format!(
            "Timeout reached while {doing} the node: no heartbeat of an agent within {} s of power-on. {check}",
            limit.as_secs()
        );
        return Decision::Record(Box::new(fail::failed(view, &text)));
    }
    match medium::unread(view, &wait) {
        Some(change) => Decision::Record(Box::new(change)),
        None => power_loss::sleep_or_look(view, wait),
    }
}

/// A node whose medium is inserted has to be seen off before: its nonce is made then, and the medium is made of it.
const NEEDS_OFF: &str = "The node cannot be booted from a boot medium: that needs a BMC that reports the power state, and a node that is \
                         powered off (disable_power_off is not set). The boot interface ipxe needs neither.";

/// Another agent than the one that was booted has the token. Nothing can come of this boot, nor of another like it.
fn unsigned_agent(agent: &UnsignedAgent) -> String {
    format!(
        "The agent at {} was not accepted: the node boots Anneal's agent, which signs its evidence, and this agent does not \
         sign. Property {AGENT_KIND:?} declares another agent.",
        second_agent::place(agent.address)
    )
}

/// The ramdisk has booted: restore the persistent boot device, if it was changed.
pub(super) fn booted(view: &View) -> Change {
    let restore = view.run.boot_before.is_some() || view.snapshot.node.medium_inserted;
    view.advance(if restore { Cursor::RestoreBootDevice } else { after_boot(view.run.kind) })
}

fn after_boot(kind: RunKind) -> Cursor {
    match kind {
        RunKind::Inspect => Cursor::TearDown,
        kind if kind.steps().is_some() => Cursor::LearnSteps,
        _ => Cursor::NextStep,
    }
}

/// Whether the next boot is to begin with a reset, because the node could not be seen off.
fn begins_with_reset(view: &View) -> bool {
    view.run.boot_start == BootStart::ResetAccepted
}

/// The wait for the firmware that an earlier reset started to choose what it boots, if it may not have done so yet.
fn reset_pause(view: &View) -> Option<Wait> {
    let snapshot = view.snapshot;
    let reset_at = snapshot.node.reset_at.filter(|_| begins_with_reset(view))?;
    let until = reset_at.after(view.settings.reset_pause());
    let reason = "the boot that an earlier reset began to pass the choice of its boot device".to_owned();
    (until > snapshot.now).then_some(Wait { reason, since: snapshot.now, deadline: Some(until) })
}

/// Whether this process set the boot device, a moment ago, and has not ordered a reset since: a reset of which the outcome is
/// not stored may have used it up.
fn is_boot_device_new(view: &View) -> bool {
    let (snapshot, set_at) = (view.snapshot, view.snapshot.node.reset_at);
    set_at.is_some_and(|at| at >= snapshot.listening_since && snapshot.now.since(at) <= BOOT_DEVICE_NEW)
}

/// The boot device is next. Ours is set for one boot; what the user's ramdisk is booted from is set for every boot.
fn to_boot_device(view: &View) -> Change {
    if !view.run.starts_instance() {
        return view.advance(Cursor::ReadBootDevice);
    }
    let mut change = view.advance(Cursor::RestoreBootDevice);
    if let Some(run) = &mut change.node.run {
        run.boot_before = Some(PersistentBoot { device: NETWORK.to_owned(), mode: None });
    }
    change
}

/// The node cannot be seen off: it is to be reset in the place of being powered on.
fn to_reset(view: &View) -> Change {
    let mut change = to_boot_device(view);
    if let Some(run) = &mut change.node.run {
        run.boot_start = BootStart::ResetAccepted;
    }
    change
}

/// The outcome of a power action, of which this power state was reported.
fn powered(view: &View, action: &Action, state: Option<PowerState>) -> Change {
    match (&view.run.cursor, state) {
        (Cursor::PowerOff, None) if medium::is_used(view) => fail::failed(view, NEEDS_OFF),
        (Cursor::PowerOff, None) if *action == Action::ReadPower => to_reset(view),
        (Cursor::PowerOff, state) if *action == Action::ReadPower => {
            let mut change = view.with_run(|_| {});
            change.node.power_state = state;
            change
        }
        (Cursor::PowerOff, Some(PowerState::Off)) => {
            let mut change = to_boot_device(view);
            if let Some(run) = &mut change.node.run {
                run.boot_start = BootStart::OffObserved;
            }
            change.node.power_state = Some(PowerState::Off);
            change.forget_agent = true;
            change.next_boot = (!view.run.starts_instance()).then(Boot::fresh);
            change
        }
        (Cursor::PowerOff, state) => power_pending(view, state, PowerState::Off),
        (Cursor::Reboot, Some(PowerState::On) | None) => {
            let mut change = view.advance(Cursor::NextStep);
            change.node.power_state = state;
            change.forget_agent = true;
            change
        }
        (Cursor::PowerOn, Some(PowerState::On)) if view.run.starts_instance() => started(view, state),
        (Cursor::PowerOn, None) if view.run.starts_instance() && begins_with_reset(view) => {
            started(view, state)
        }
        (Cursor::PowerOn, Some(PowerState::On) | None) if begins_with_reset(view) => reset(view, state),
        (Cursor::PowerOn, Some(PowerState::On)) => powered_on(view, "powered on"),
        (_, state) => power_pending(view, state, PowerState::On),
    }
}

/// The user's ramdisk boots: the step that starts it has succeeded. What ran before has ended, with its agent.
fn started(view: &View, state: Option<PowerState>) -> Change {
    let Some(index) = view.run.index else {
        return fail::failed(view, "internal: a ramdisk was started without a step");
    };
    let mut change = succeeded(view, command_id(view, index), Value::Null);
    change.node.power_state = state;
    change.forget_agent = true;
    change
}

/// The BMC has accepted the reset that stands for an observed power-off: what ran on the node before has ended.
fn reset(view: &View, state: Option<PowerState>) -> Change {
    let mut change = powered_on(view, "reset, and no power-off was observed,");
    change.node.power_state = state;
    change.forget_agent = true;
    change.next_boot = Some(Boot::after(BootStart::ResetAccepted));
    if let Some(run) = &mut change.node.run {
        run.off_unobserved = true;
    }
    change
}

/// The node boots the ramdisk.
fn powered_on(view: &View, how: &str) -> Change {
    // ironic-python-agent sends the inventory before it looks itself up.
    let inspects = view.run.kind == RunKind::Inspect;
    let next = if inspects { Cursor::AwaitInventory } else { Cursor::AwaitAgent };
    let mut change = view.advance(next);
    change.node.power_state = Some(PowerState::On);
    change.node.last_error = None;
    let from = medium::source(view);
    in_wait(&mut change, &format!("{how} to boot the ramdisk from {from}"), view.snapshot.now);
    change
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    if view.run.cursor == Cursor::AwaitAgent {
        return power_loss::while_booting(view, &outcome);
    }
    if *action == Action::EjectMedium {
        return medium::ejected(view, outcome);
    }
    if let Some(state) = reported(&outcome) {
        return powered(view, action, state);
    }
    match (&view.run.cursor, outcome) {
        (Cursor::ReadBootDevice, Outcome::BootDevice(before)) => boot_device_read(view, before),
        // Not every BMC reports it. Then there is nothing to restore.
        (Cursor::ReadBootDevice, Outcome::Failed(error)) if !error.retryable => boot_device_read(view, None),
        (Cursor::RestoreBootDevice, Outcome::Done) => {
            // The step that asks for the disk needs no other boot: the agent and its steps are known.
            let current = view.run.current();
            let goes_on = current.is_some_and(|planned| is_step(&planned.step, PREPARE_INSTANCE_BOOT));
            let mut change = view.advance(match goes_on {
                _ if view.run.starts_instance() => Cursor::PowerOn,
                true => Cursor::NextStep,
                false => after_boot(view.run.kind),
            });
            if let Some(run) = &mut change.node.run {
                run.boot_before = None;
            }
            change
        }
        (Cursor::SetBootDevice, Outcome::Done) => network_boot_chosen(view),
        (_, Outcome::Failed(error)) => {
            let what = match action {
                Action::ReadBootDevice => "Failed to read what the node boots from",
                Action::RestoreBootDevice(_) if view.run.starts_instance() => {
                    "Failed to set the node to boot from the network"
                }
                Action::RestoreBootDevice(_) => "Failed to let the node boot from what it did before",
                Action::SetBootDevice => "Failed to set the node to boot from the network",
                Action::InsertMedium => "Failed to let the node boot from its boot medium",
                Action::SetPower(PowerTarget::Reboot) if view.run.cursor == Cursor::PowerOn => {
                    "Failed to reset the node to boot the ramdisk"
                }
                Action::SetPower(PowerTarget::Reboot) => "Failed to reboot the node after a step",
                Action::ReadPower | Action::SetPower(PowerTarget::Off) => {
                    "Failed to power off the node before booting the ramdisk"
                }
                _ => "Failed to power on the node to boot the ramdisk",
            };
            let mut change = retry_or_fail(view, error, what);
            if let Some(run) = change.node.run.as_mut()
                && run.cursor == Cursor::PowerOn
                && begins_with_reset(view)
                && !view.run.starts_instance()
            {
                run.cursor = Cursor::SetBootDevice;
            }
            change
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
    if before.as_ref().is_some_and(|before| before.device == NETWORK) && !medium::is_used(view) {
        return network_boot_chosen(view);
    }
    let mut change = view.advance(Cursor::SetBootDevice);
    if let (Some(run), Some(before)) = (&mut change.node.run, before) {
        run.boot_before = Some(before);
    }
    change
}

fn network_boot_chosen(view: &View) -> Change {
    let resets = begins_with_reset(view);
    let mut change = if resets {
        // A failed reset comes back here, so its attempts go on counting.
        view.with_run(|run| run.cursor = Cursor::PowerOn)
    } else {
        view.advance(Cursor::PowerOn)
    };
    if resets {
        change.node.reset_at = Some(view.snapshot.now);
    }
    if let Some(run) = &mut change.node.run {
        run.booted = true;
    }
    change
}
