//! Events in the log of the process.

use model::history::Severity;
use model::{Event, Node};

/// Log the events of a write, at their own severity. `node` is the node as the write left it.
///
/// Call it after the store has returned `Ok`: the log must not report what a stale or failed write did not do.
pub fn log_events(node: &Node, events: &[Event]) {
    macro_rules! log {
        ($level:ident, $event:ident) => {
            tracing::$level!(
                node_uuid = %node.uuid,
                provision_state = node.provision_state.as_str(),
                kind = $event.kind.as_str(),
                command_id = $event.command_id.as_deref(),
                request_id = $event.request_id.as_deref(),
                user = $event.sender.as_ref().and_then(|sender| sender.user.as_deref()),
                "{}",
                $event.text
            )
        };
    }
    for event in events {
        match event.severity {
            Severity::Info => log!(info, event),
            Severity::Error => log!(error, event),
        }
    }
}
