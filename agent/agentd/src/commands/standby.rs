//! `standby.*`: leave the ramdisk.

use super::command::{Command, IpaCompatibility, Mode};
use super::image::{NO_IMAGES, last_written, no_images};
use crate::registry::Ending;
use agent_protocol::command::CommandList;
use ramdisk_init::Exit;
use serde_json::{Value, json};

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
    Command::new("standby.get_partition_uuids", Mode::Sync, IpaCompatibility::Same, |call| {
        Ending::done(Some(partition_uuids(&call.state.commands())))
    }),
    Command::new("standby.prepare_image", Mode::Async, IpaCompatibility::Fails(NO_IMAGES), no_images)
        .with(&["image_info"], &["configdrive"]),
    Command::new("standby.execute_bootc_install", Mode::Async, IpaCompatibility::Fails(NO_IMAGES), no_images)
        .with(&["image_source"], &["instance_info", "pull_secret", "configdrive"]),
];

/// Of the image that was written last: the identifier of its MBR, which is zero for a GPT. Nothing without one.
fn partition_uuids(list: &CommandList) -> Value {
    let id = last_written(list).and_then(|image| image.pointer("/record/disk_id").cloned());
    id.map_or_else(|| json!({}), |id| json!({ "root uuid": id }))
}

#[cfg(test)]
mod tests {
    use super::partition_uuids;
    use agent_protocol::command::CommandList;
    use serde_json::{Value, json};

    fn uuids(commands: Value) -> Value {
        let list: CommandList = serde_json::from_value(json!({ "commands": commands })).expect("commands");
        partition_uuids(&list)
    }

    #[test]
    fn the_disk_that_was_written_last_is_named_as_by_ironics_agent() {
        let step = |status: &str, id: &str| {
            json!({
                "id": id, "command_name": "execute_deploy_step", "command_params": {}, "command_status": status,
                "command_error": null,
                "command_result": {"deploy_result": {"image": {"record": {"disk_id": id}}}, "deploy_step": {}},
            })
        };
        assert_eq!(uuids(json!([])), json!({}));
        let all = json!([step("SUCCEEDED", "0x1"), step("SUCCEEDED", "0x00000000"), step("FAILED", "0x3")]);
        assert_eq!(uuids(all), json!({"root uuid": "0x00000000"}));
    }
}
