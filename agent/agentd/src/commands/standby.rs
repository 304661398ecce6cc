//! `standby.*`: leave the ramdisk.

use super::command::{Command, IpaCompatibility, Mode};
use super::image::{NO_IMAGES, no_images};
use crate::registry::Ending;
use ramdisk_init::Exit;
use serde_json::{Map, Value};

pub(super) const COMMANDS: &[Command] = &[
    Command::new("standby.power_off", Mode::Async, IpaCompatibility::Same, |call| {
        call.state.exit(Exit::PowerOff);
        Ending::done(None)
    }),
    Command::new("standby.run_image", Mode::Async, IpaCompatibility::Same, |call| {
        call.state.exit(Exit::Reboot);
        Ending::done(None)
    }),
    Command::new("standby.sync", Mode::Sync, IpaCompatibility::Same, |call| {
        // Outside the ramdisk nothing is mounted for the agent: erase steps flush what they write.
        if call.state.in_ramdisk() {
            nix::unistd::sync();
        }
        Ending::done(None)
    }),
    // What an agent says that has written no image.
    Command::new("standby.get_partition_uuids", Mode::Sync, IpaCompatibility::Same, |_| {
        Ending::done(Some(Value::Object(Map::new())))
    }),
    Command::new("standby.prepare_image", Mode::Async, IpaCompatibility::Fails(NO_IMAGES), no_images)
        .with(&["image_info"], &["configdrive"]),
    Command::new("standby.execute_bootc_install", Mode::Async, IpaCompatibility::Fails(NO_IMAGES), no_images)
        .with(&["image_source"], &["instance_info", "pull_secret", "configdrive"]),
];
