//! `standby.*`: leave the ramdisk.

use super::{Command, Mode, command_panicked};
use crate::agent::Exit;
use crate::registry::Ending;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "standby.power_off",
        mode: Mode::Async,
        required: &[],
        optional: &[],
        run: |call| {
            call.agent.exit(Exit::PowerOff);
            Ending::done(None)
        },
        panicked: command_panicked,
    },
    Command {
        name: "standby.run_image",
        mode: Mode::Async,
        required: &[],
        optional: &[],
        run: |call| {
            call.agent.exit(Exit::Reboot);
            Ending::done(None)
        },
        panicked: command_panicked,
    },
    Command {
        name: "standby.sync",
        mode: Mode::Sync,
        required: &[],
        optional: &[],
        run: |call| {
            // Outside the ramdisk nothing is mounted for the agent: erase steps flush what they write.
            if call.agent.in_ramdisk() {
                nix::unistd::sync();
            }
            Ending::done(None)
        },
        panicked: command_panicked,
    },
];
