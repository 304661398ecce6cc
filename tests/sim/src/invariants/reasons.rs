//! "or in a -fail state with the true reason".

use super::{Broken, Write};
use crate::ground_truth::{End, LATE_LOOKUP};
use model::{Cursor, ProvisionState, Run};

/// Part of an error text, and a check whether it is true.
type Reason = (&'static str, fn(&Write, &Run, &str) -> bool);

/// How late a heartbeat or a lookup may arrive, in microseconds: its agent may be gone by then.
const LATEST_US: i64 = 200_000_000;

/// Sentences by what they contain; the first that fits is judged.
const REASONS: &[Reason] = &[
    ("internal:", |_, _, _| false),
    ("By request, the", |write, run, _| write.chronicle.aborted.contains(&run.id)),
    ("the agent has not been heard for", silent),
    ("its boot script was fetched again", |write, run, _| came_and_went(write, run, &["power", "reset"])),
    ("the boot script was fetched from", |_, _, _| false),
    ("the node rebooted in the middle", |write, run, _| came_and_went(write, run, &["power off", "reset"])),
    ("the node lost power", |write, run, _| came_and_went(write, run, &["power"])),
    ("the node went off before its instance", |write, run, _| came_and_went(write, run, &["power"])),
    ("the agent was restarted", |write, run, _| came_and_went(write, run, &["agent", "power"])),
    ("the controller was interrupted", |write, run, _| {
        write.interruptions.iter().any(|at| *at >= run.started_at)
    }),
    // Its own lookup that arrives late looks like one of another agent.
    ("another asks for its token", |write, run, _| {
        came_and_went(write, run, &["agent", "power", "reset", LATE_LOOKUP])
    }),
    ("sent no heartbeat, and another asks", |write, run, _| {
        came_and_went(write, run, &["agent", "power", "reset", LATE_LOOKUP])
    }),
    ("the controller does not know the agent any more", |_, _, _| false),
    ("no agent came back within", no_agent_was_heard),
    ("the step hangs", hangs),
    ("the step has taken longer", hangs),
    ("another step's success", |_, _, _| false),
    ("but the record of disk", lied),
    ("the evidence of the erase is refused", lied),
    ("without a report of the disks", lied),
    ("has no disk of the node", lied),
    ("is missing: the report of step", lied),
    ("the agent is heard, but could not be", |write, run, _| {
        write.chronicle.has(run.started_at, &["a command's message", "agent"])
    }),
    ("no heartbeat of an agent within", no_agent_was_heard),
    ("no inventory within", |write, run, _| write.old.inspection_finished_at.is_none() && run.is_active()),
    ("no heartbeat came during the step wait", no_agent_was_heard),
    ("Could not find method", |write, run, _| {
        write.chronicle.has(run.started_at, &["hardware managers changed"])
    }),
    ("the hardware managers of the agent kept changing", |write, run, _| {
        let offered = write.chronicle.advertised.iter().filter(|offered| offered.at >= run.started_at);
        let mut versions: Vec<u32> = offered.map(|offered| offered.offers.version).collect();
        versions.dedup();
        u32::try_from(versions.len()).is_ok_and(|versions| versions >= write.max_replans)
    }),
    ("the BMC accepted", |_, _, _| false),
    ("node does not support this", |_, run, _| !run.requested.is_empty()),
    ("requires the ramdisk", |_, run, _| run.disable_ramdisk),
    // Every other error cites something that happened by its number.
    ("#", numbered),
];

/// The last step claimed a success that its report does not show.
fn lied(write: &Write, _: &Run, _: &str) -> bool {
    write.chronicle.executions.last().is_some_and(|last| matches!(last.ended, Some((_, End::Lied))))
}

/// "the node is where it would have been or in a `-fail` state with the true reason": a failure has a reason, the
/// reason is in an event, and it is true.
pub fn a_failure_states_the_true_reason(write: &Write) -> Broken {
    let (before, after) = (write.old.provision_state, write.new.provision_state);
    let failed = |state: ProvisionState| state.as_str().ends_with("failed");
    let unverified = before == ProvisionState::Verifying && after == ProvisionState::Enroll;
    let torn = before == ProvisionState::Deleting && after == ProvisionState::Error;
    if write.by.lease.is_none() || !(unverified || torn || failed(after) && !failed(before)) {
        return Ok(());
    }
    let Some(text) = write.new.last_error.as_deref() else { return Err("no reason is stored".to_owned()) };
    if !write.events.iter().any(|event| event.text.contains(text)) {
        return Err(format!("{text:?} is in no event"));
    }
    let run = match &write.old.run {
        Some(run) if !unverified => run.clone(),
        _ => Run::new(model::RunKind::Inspect, write.began.unwrap_or(write.now)),
    };
    let Some((words, is_true)) = REASONS.iter().find(|(words, _)| text.contains(words)) else {
        return Err(format!("{text:?} is no reason that is known"));
    };
    if !is_true(write, &run, text) {
        return Err(format!("{text:?} is not true ({words})"));
    }
    // Of several controllers one may die in the middle of a step of its own, although nothing else goes wrong.
    let own = text.contains("the controller was interrupted") && !write.interruptions.is_empty();
    let peaceful = own || text.contains("By request") || text.contains("node does not support");
    if write.calm.is_some_and(|calm| run.started_at >= calm) && !peaceful {
        return Err(format!("nothing went wrong, and {text:?}"));
    }
    Ok(())
}

/// Something of this sort happened since the command was written down, or since the agent was heard before that.
fn came_and_went(write: &Write, run: &Run, what: &[&str]) -> bool {
    let since = match &run.cursor {
        Cursor::Issued { at, .. } => {
            let heard = write.chronicle.heard_before(*at).unwrap_or(run.started_at);
            heard.shifted(-LATEST_US).max(run.started_at)
        }
        _ => run.started_at,
    };
    write.chronicle.has(since, what)
}

/// No heartbeat was accepted since the run waits in its present place.
fn no_agent_was_heard(write: &Write, run: &Run, _text: &str) -> bool {
    let since = write.old.wait.as_ref().map_or(run.started_at, |wait| wait.since);
    write.chronicle.heard.last().is_none_or(|heard| *heard < since)
}

fn silent(write: &Write, _run: &Run, text: &str) -> bool {
    let claimed: Option<u64> =
        text.split("for ").last().and_then(|tail| tail.split(' ').next()?.parse().ok());
    let really = write.chronicle.heard.last().map(|heard| write.now.since(*heard).as_secs());
    claimed.is_some() && really.is_none_or(|really| Some(really) >= claimed)
}

fn hangs(write: &Write, run: &Run, _text: &str) -> bool {
    write.chronicle.has(run.started_at, &["hangs"])
}

/// The numbers in a text are facts of this node, of this run.
fn numbered(write: &Write, run: &Run, text: &str) -> bool {
    let mut numbers = text.split('#').skip(1).filter_map(|tail| {
        let digits: String = tail.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    });
    numbers.any(|number| write.chronicle.fact(number).is_some_and(|fact| fact.at >= run.started_at))
}
