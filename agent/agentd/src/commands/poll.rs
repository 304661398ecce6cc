//! `poll.get_hardware_info`: the inventory.

use super::{Command, Mode, command_panicked};
use crate::registry::Ending;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "poll.get_hardware_info",
    mode: Mode::Sync,
    required: &[],
    optional: &[],
    run: |call| match serde_json::to_value(&*call.agent.rediscover()) {
        Ok(inventory) => Ending::done(Some(inventory)),
        Err(error) => {
            Ending::failed("CommandExecutionError", "Command execution failed", format!("inventory: {error}"))
        }
    },
    panicked: command_panicked,
}];
