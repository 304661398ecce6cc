//! `system.lockdown`: the machine stays on and accepts no connection any more.

use super::command::{Command, IpaCompatibility, Mode, command_panicked};
use crate::registry::Ending;
use ramdisk_init::Exit;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "system.lockdown",
    mode: Mode::Sync,
    required: &[],
    optional: &[],
    run: |call| {
        call.state.exit(Exit::Halt);
        Ending::done(None)
    },
    panicked: command_panicked,
    compatibility: IpaCompatibility::Differs(
        "the kernel is halted, where ironic-python-agent takes its links down: nothing runs until a reset by the BMC",
    ),
}];
