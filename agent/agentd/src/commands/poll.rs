//! `poll.get_hardware_info`: the inventory.

use super::command::{Command, IpaCompatibility, Mode, command_panicked, failed};
use crate::registry::Ending;

pub(super) const COMMANDS: &[Command] = &[HARDWARE, SET_NODE];

const HARDWARE: Command = Command {
    name: "poll.get_hardware_info",
    mode: Mode::Sync,
    required: &[],
    optional: &[],
    run: |call| match serde_json::to_value(&*call.state.rediscover()) {
        Ok(inventory) => Ending::done(Some(inventory)),
        Err(error) => failed(&format!("inventory: {error}")),
    },
    panicked: command_panicked,
    compatibility: IpaCompatibility::Differs(
        "the inventory has what hardware managers reported under `anneal`",
    ),
};

const NO_STANDALONE: &str =
    "Node lookup data can only be set when the Ironic Python Agent is running in standalone mode.";

/// As of an ironic-python-agent that has a controller; ours always has one.
const SET_NODE: Command = Command {
    name: "poll.set_node_info",
    mode: Mode::Sync,
    required: &[],
    optional: &["node_info"],
    run: |_| failed(NO_STANDALONE),
    panicked: command_panicked,
    compatibility: IpaCompatibility::Invalid(NO_STANDALONE),
};
