//! `standby.*`: leave the ramdisk.

use super::command::{Command, IpaCompatibility, Mode, command_panicked, failed};
use super::image::NO_IMAGES;
use crate::registry::Ending;
use ramdisk_init::Exit;
use serde_json::{Map, Value};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "standby.power_off",
        mode: Mode::Async,
        required: &[],
        optional: &[],
        run: |call| {
            call.state.exit(Exit::PowerOff);
            Ending::done(None)
        },
        panicked: command_panicked,
        compatibility: IpaCompatibility::Same,
    },
    Command {
        name: "standby.run_image",
        mode: Mode::Async,
        required: &[],
        optional: &[],
        run: |call| {
            call.state.exit(Exit::Reboot);
            Ending::done(None)
        },
        panicked: command_panicked,
        compatibility: IpaCompatibility::Same,
    },
    Command {
        name: "standby.sync",
        mode: Mode::Sync,
        required: &[],
        optional: &[],
        run: |call| {
            // Outside the ramdisk nothing is mounted for the agent: erase steps flush what they write.
            if call.state.in_ramdisk() {
                nix::unistd::sync();
            }
            Ending::done(None)
        },
        panicked: command_panicked,
        compatibility: IpaCompatibility::Same,
    },
    Command {
        name: "standby.get_partition_uuids",
        mode: Mode::Sync,
        required: &[],
        optional: &[],
        // What an agent says that has written no image.
        run: |_| Ending::done(Some(Value::Object(Map::new()))),
        panicked: command_panicked,
        compatibility: IpaCompatibility::Same,
    },
    Command {
        name: "standby.prepare_image",
        mode: Mode::Async,
        required: &["image_info"],
        optional: &["configdrive"],
        run: |_| failed(NO_IMAGES),
        panicked: command_panicked,
        compatibility: IpaCompatibility::Fails(NO_IMAGES),
    },
    Command {
        name: "standby.execute_bootc_install",
        mode: Mode::Async,
        required: &["image_source"],
        optional: &["instance_info", "pull_secret", "configdrive"],
        run: |_| failed(NO_IMAGES),
        panicked: command_panicked,
        compatibility: IpaCompatibility::Fails(NO_IMAGES),
    },
];
