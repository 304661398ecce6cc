//! `system.lockdown`: the machine stays on and accepts no connection any more.

use super::command::{Command, IpaCompatibility, Mode};
use crate::registry::Ending;
use ramdisk_init::Exit;

pub(super) const COMMANDS: &[Command] = &[Command::new(
    "system.lockdown",
    Mode::Sync,
    IpaCompatibility::Differs(
        "the kernel is halted, where ironic-python-agent takes its links down: nothing runs until a reset by the BMC",
    ),
    |call| {
        call.state.exit(Exit::Halt);
        Ending::done(None)
    },
)];
