//! `system.lockdown`: nobody may talk to this machine any more, and it may not be powered off.

use super::{Command, Likeness, Mode, command_panicked};
use crate::agent::Exit;
use crate::registry::Ending;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "system.lockdown",
    mode: Mode::Sync,
    required: &[],
    optional: &[],
    run: |call| {
        call.agent.exit(Exit::Halt);
        Ending::done(None)
    },
    panicked: command_panicked,
    likeness: Likeness::Differs(
        "the kernel is halted, where ironic-python-agent takes its links down: nothing runs until a reset by the BMC",
    ),
}];
