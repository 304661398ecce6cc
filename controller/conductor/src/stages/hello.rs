//! The instance was started from its disk, and the deployment asks for its hello: only that ends the step that started it.

use super::fail;
use super::power_loss::{self, PowerCheck};
use super::success::succeeded;
use super::transition::in_wait;
use super::view::View;
use super::wait::{is_due, is_overdue, sleep_on, unexpected, waiting_for_agent};
use crate::decision::{Action, Change, Decision, Outcome};
use model::hello::Hello;
use model::history::{EventKind, Severity};
use model::image::{BOOT_INSTANCE, is_step};
use model::request::event;
use model::run::Cursor;
use model::{PlannedStep, PowerState, PowerTarget, Timestamp, Wait};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Whether a plan can bring the hello that the run awaits: one of its steps starts the instance.
pub(super) fn is_possible(view: &View, plan: &[PlannedStep]) -> bool {
    view.run.hello.is_none() || plan.iter().any(|planned| is_step(&planned.step, BOOT_INSTANCE))
}

/// Whether the run awaits a hello that has not come.
pub(super) fn is_missing(view: &View) -> bool {
    view.run.hello.as_ref().is_some_and(|hello| hello.heard_at.is_none())
}

/// The step has started the instance, whose hello is still to come.
pub(super) fn begin(view: &View, command_id: String, state: PowerState) -> Change {
    let now = view.snapshot.now;
    let mut change = view.advance(Cursor::AwaitHello { command_id, since: now });
    change.node.power_state = Some(state);
    in_wait(&mut change, "the instance was started; it is to say hello", now);
    change
}

pub(super) fn decide(view: &View) -> Decision {
    let (Cursor::AwaitHello { command_id, .. }, Some(hello)) = (&view.run.cursor, &view.run.hello) else {
        return Decision::Record(Box::new(fail::failed(view, "internal: no hello is awaited")));
    };
    if hello.heard_at.is_some() {
        return Decision::Record(Box::new(succeeded(view, command_id.clone(), Value::Null)));
    }
    let wait = wait(view, hello);
    if is_overdue(&wait, view.snapshot.now) {
        // Whether the node is on says where to look.
        return Decision::Act(Action::ReadPower);
    }
    if view.snapshot.node.power_state == Some(PowerState::Off) {
        return match is_due(view.snapshot) {
            true => Decision::Act(Action::SetPower(PowerTarget::On)),
            false => sleep_on(&view.snapshot.node),
        };
    }
    power_loss::sleep_or_look(view, wait)
}

/// The instance calls again until its own tries are over, so a controller that was away for long hears it when it is back.
fn wait(view: &View, hello: &Hello) -> Wait {
    waiting_for_agent(view, "the instance to say hello", hello.limit())
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    let (Cursor::AwaitHello { command_id, since }, Some(hello)) = (&view.run.cursor, &view.run.hello) else {
        return fail::failed(view, "internal: no hello is awaited");
    };
    if hello.heard_at.is_some() {
        // It came while the power state was read.
        return succeeded(view, command_id.clone(), Value::Null);
    }
    if *action != Action::ReadPower {
        return powered_on_again(view, &outcome);
    }
    if !is_overdue(&wait(view, hello), view.snapshot.now) {
        return match power_loss::looked(view, &outcome) {
            PowerCheck::Waits(change) => *change,
            PowerCheck::Off => lost_power(view),
        };
    }
    overdue(view, hello, *since, outcome)
}

/// The node lost power, or its instance switched it off, before the hello: it is powered on again.
fn lost_power(view: &View) -> Change {
    let mut run = view.run.clone();
    run.interrupt();
    let text =
        format!("the node went off before its instance said hello (interruption {})", run.interruptions);
    let mut change = if run.fruitless > view.settings.max_interruptions {
        fail::step_failed(view, &text, Value::Null)
    } else {
        let event = event(
            EventKind::Power,
            Severity::Error,
            format!("{text}; it is powered on again"),
            view.snapshot.now,
        );
        let mut change = view.with_run(|run| {
            run.interrupt();
            run.attempts = 0;
        });
        change.node.wait = view.snapshot.node.wait.clone();
        change.with_event(event)
    };
    change.node.power_state = Some(PowerState::Off);
    change
}

/// The outcome of powering the node on again. What fails is tried again until the time for the hello is over.
fn powered_on_again(view: &View, outcome: &Outcome) -> Change {
    let mut change = view.with_run(|_| {});
    change.node.wait = view.snapshot.node.wait.clone();
    change.node.next_wake_at = Some(view.snapshot.now.after(view.settings.retry_pause()));
    if let Outcome::Power(state) = outcome {
        change.node.power_state = Some(*state);
    }
    change
}

/// The time is over. The node stays on: what its console and its network say shows why.
fn overdue(view: &View, hello: &Hello, since: Timestamp, outcome: Outcome) -> Change {
    let (power, now) = match outcome {
        Outcome::Power(PowerState::On) => (Some(PowerState::On), "it is still on".to_owned()),
        Outcome::Power(state) => (Some(state), format!("now it is {}", state.as_str())),
        Outcome::PowerUnknown => (None, "the BMC reports no power state now".to_owned()),
        Outcome::Failed(error) => (None, format!("its power state is unknown: {}", error.text)),
        other => return fail::failed(view, &unexpected("ReadPower", &other).text),
    };
    let text = format!(
        "The node was powered on into its disk at {}; no hello of its instance came within {} s; {now}",
        utc(since),
        hello.limit_s
    );
    let mut change = fail::step_failed(view, &text, Value::Null);
    change.node.power_state = power.or(change.node.power_state);
    change
}

/// `2026-11-24T00:10:57Z`.
fn utc(at: Timestamp) -> String {
    let at = OffsetDateTime::from_unix_timestamp(at.0.div_euclid(1_000_000));
    at.ok().and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default()
}
