//! The logs of the ramdisk: collected after the failure of a run is stored, or before the ramdisk is stopped.
//!
//! They are for diagnosis only: whether collecting them succeeds or fails, nothing else of the node changes.

use super::view::View;
use super::wait::unexpected;
use crate::decision::{Action, Change, Outcome};
use crate::log_archive::SUFFIX;
use crate::settings::CollectLogs;
use model::history::{EventKind, Severity};
use model::request::event;
use model::run::Logs;
use model::{Node, Timestamp};
use time::OffsetDateTime;

/// Whether there is an agent that was heard recently. Asking a silent one would only delay the node.
pub(super) fn can_be_asked(view: &View) -> bool {
    let contact = &view.snapshot.contact;
    let heard =
        contact.last_heartbeat_at.is_some_and(|at| view.snapshot.now.since(at) < view.silence_limit());
    view.settings.logs_collect != CollectLogs::Never && contact.callback_url.is_some() && heard
}

/// Whether to collect the logs of a successful run before its ramdisk is stopped.
pub(super) fn before_the_end(view: &View) -> bool {
    view.settings.logs_collect == CollectLogs::Always
        && view.run.booted
        && view.run.logs.is_none()
        && can_be_asked(view)
}

/// Whether the run of a node has ended and its logs are to be collected.
pub(super) fn are_wanted(node: &Node) -> bool {
    node.run.as_ref().is_some_and(|run| run.logs == Some(Logs::Wanted))
}

/// Collect them. A controller that repeats the action after a crash uses the same file name.
pub(super) fn action(node: &Node) -> Action {
    Action::CollectLogs(file_name(node))
}

/// `NODE_TIME_OPERATION.tar.gz`. No part of it comes from the node's own data.
fn file_name(node: &Node) -> String {
    let operation = node.run.as_ref().map_or("run", |run| run.kind.operation());
    let micros = node.provision_updated_at.map_or(0, |at| i128::from(at.0));
    let at = OffsetDateTime::from_unix_timestamp_nanos(micros * 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, (hour, minute, second)) = (at.date(), at.to_hms());
    let (month, day) = (u8::from(date.month()), date.day());
    let day = format!("{:04}-{month:02}-{day:02}", date.year());
    format!("{}_{day}-{hour:02}-{minute:02}-{second:02}_{operation}{SUFFIX}", node.uuid)
}

/// Record where they are stored, or why they are missing.
pub(super) fn apply_outcome(mut change: Change, name: &str, outcome: Outcome, now: Timestamp) -> Change {
    let logs = match outcome {
        Outcome::Done => {
            let text = format!("the logs of the ramdisk are kept in {name}");
            change.events.push(event(EventKind::Agent, Severity::Info, text, now));
            Logs::Kept(name.to_owned())
        }
        Outcome::Failed(error) => Logs::Missing(error.text),
        other => Logs::Missing(unexpected("asking for logs", &other).text),
    };
    if let Some(run) = &mut change.node.run {
        run.logs = Some(logs);
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Run, RunKind};
    use uuid::Uuid;

    #[test]
    fn a_file_is_named_after_node_time_and_operation() {
        let mut node = Node::enrolled(Uuid::from_u128(7), "fake-hardware", Timestamp(0));
        // A name that a user could have chosen.
        node.name = Some("../../etc/passwd".into());
        node.provision_updated_at = Some(Timestamp(1_795_229_965_688_786));
        node.run = Some(Run::new(RunKind::AutomatedClean, Timestamp(0)));
        let name = "00000000-0000-0000-0000-000000000007_2026-11-21-02-59-25_clean.tar.gz";
        assert_eq!(file_name(&node), name);
    }
}
