//! `poll.get_hardware_info`: the inventory.

use super::command::{Command, IpaCompatibility, Mode, failed};
use crate::registry::Ending;

pub(super) const COMMANDS: &[Command] = &[HARDWARE, SET_NODE];

const HARDWARE: Command = Command::new(
    "poll.get_hardware_info",
    Mode::Sync,
    IpaCompatibility::Differs("the inventory has what hardware managers reported under `anneal`"),
    |call| match serde_json::to_value(&*call.state.rediscover()) {
        Ok(inventory) => Ending::done(Some(inventory)),
        Err(error) => failed(&format!("inventory: {error}")),
    },
);

const NO_STANDALONE: &str =
    "Node lookup data can only be set when the Ironic Python Agent is running in standalone mode.";

/// As of an ironic-python-agent that has a controller; ours always has one.
const SET_NODE: Command =
    Command::new("poll.set_node_info", Mode::Sync, IpaCompatibility::Invalid(NO_STANDALONE), |_| {
        failed(NO_STANDALONE)
    })
    .with(&[], &["node_info"]);
