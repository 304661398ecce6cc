//! What a controller that died may have had under way at its node.

use crate::agents;
use model::run::Cursor;
use model::{Contact, Node};

/// Whether it may have been a call that no epoch fences, by the row of the node as its successor finds it.
///
/// What a controller does follows from the row, and it stores where a run goes on before it acts there. At some places of a run it asks
/// the agent and decides, and changes nothing at the BMC. What it sends an agent carries its epoch; only an ironic-python-agent knows of none,
/// so a step that it was sent may reach it late.
pub fn may_be_unfenced(node: &Node, contact: &Contact) -> bool {
    let run = node.run.as_ref().filter(|run| run.is_active() && node.provision_state.phase().has_run());
    match run.map(|run| &run.cursor) {
        Some(Cursor::Issued { .. }) => !agents::of(contact).takes_command_ids(),
        Some(
            Cursor::AwaitAgent | Cursor::LearnSteps | Cursor::NextStep | Cursor::Hold | Cursor::Pause { .. },
        ) => false,
        _ => true,
    }
}
