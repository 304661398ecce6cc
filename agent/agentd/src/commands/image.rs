//! `image.*`: make a written image boot.

use super::command::{Call, Command, IpaCompatibility, Mode, failed};
use crate::evidence;
use crate::registry::Ending;
use crate::uefi::{self, Machine};
use agent_protocol::command::{ANNEAL, CommandList, Status};
use serde_json::{Value, json};
use std::path::Path;

/// Of the commands that write an image and are not the step `write_image`.
pub(super) const NO_IMAGES: &str = "anneal-agent writes images by the deploy step write_image only: nothing was written to any \
                                    disk";

/// There on machines that booted by UEFI.
const UEFI: &str = "/sys/firmware/efi";

pub(super) const COMMANDS: &[Command] = &[Command::new(
    "image.install_bootloader",
    Mode::Async,
    IpaCompatibility::Differs(
        "BIOS: the image brings its boot loader, and nothing is changed. UEFI: one entry, for the disk that write_image \
         wrote; entries whose partition is on no disk go too; the result names what was added and removed",
    ),
    install_bootloader,
)
.with(
    &["root_uuid"],
    &["efi_system_part_uuid", "prep_boot_part_uuid", "target_boot_mode", "ignore_bootloader_failure", ANNEAL],
)];

pub(super) fn no_images(_: &Call) -> Ending {
    failed(NO_IMAGES)
}

/// What the step `write_image` that succeeded last says of its image.
pub(super) fn last_written(list: &CommandList) -> Option<Value> {
    list.commands.iter().rev().find_map(|command| {
        let result =
            command.command_result.as_ref().filter(|_| command.command_status == Status::Succeeded)?;
        result.pointer("/deploy_result/image").cloned()
    })
}

fn install_bootloader(call: &Call) -> Ending {
    let ignore = call.params.get("ignore_bootloader_failure").and_then(Value::as_bool) == Some(true);
    match bootable(call) {
        Ok(result) => {
            let node = call.params.get(ANNEAL).and_then(|added| added["node"].as_str()).unwrap_or_default();
            let mut ending = Ending::done(Some(result));
            evidence::attach_boot_entries(call.state, node, call.id, &mut ending);
            ending
        }
        Err(problem) if ignore => {
            tracing::warn!(
                problem,
                "the node may not boot its image; the controller wants that to be ignored"
            );
            Ending::done(Some(json!({ "result": format!("install_bootloader: ignored: {problem}") })))
        }
        Err(problem) => failed(&problem),
    }
}

fn bootable(call: &Call) -> Result<Value, String> {
    let wanted = call.params.get("target_boot_mode").and_then(Value::as_str);
    if !changes_entries(Path::new(UEFI).exists(), wanted, call.state.in_ramdisk())? {
        let text =
            "install_bootloader: the image brings the boot loader that the BIOS starts; nothing was changed";
        return Ok(json!({ "result": text }));
    }
    let written = last_written(&call.state.commands());
    let device = written.as_ref().and_then(|image| image["device"].as_str());
    let device = device.ok_or("no image was written since the agent started: nothing was changed")?;
    let machine = Machine::here()?;
    let report = ramdisk_init::with_writable_efi_variables(|| uefi::install(&machine, device))??;
    tracing::info!(?report, "the firmware starts the image first");
    let text = format!("install_bootloader: {} starts {device} first", report.entry);
    Ok(json!({ "result": text, evidence::BOOT_ENTRIES: report }))
}

/// Whether the firmware needs a boot entry: not where the node booted by BIOS. An image for the other mode would not be
/// found; `wanted` is what the controller asks for. Outside the ramdisk the entries are not the agent's to change.
fn changes_entries(uefi: bool, wanted: Option<&str>, in_ramdisk: bool) -> Result<bool, String> {
    let name = |mode: &str| match mode {
        "uefi" => "UEFI".to_owned(),
        "bios" => "BIOS".to_owned(),
        other => format!("{other:?}"),
    };
    let here = if uefi { "uefi" } else { "bios" };
    match wanted {
        Some(wanted) if wanted != here => Err(format!(
            "the node booted by {}, but {} is asked: nothing was changed; set the boot mode of the node, or \
             instance_info/capabilities boot_mode:{here}",
            name(here),
            name(wanted)
        )),
        _ if uefi && !in_ramdisk => {
            Err("anneal-agent changes boot entries in the ramdisk only: nothing was changed".to_owned())
        }
        _ => Ok(uefi),
    }
}

#[cfg(test)]
mod tests {
    use super::changes_entries;

    #[test]
    fn entries_are_changed_in_the_ramdisk_and_for_the_mode_in_which_the_node_booted() {
        for (uefi, wanted, in_ramdisk, expected) in [
            (false, None, true, Ok(false)),
            (false, Some("bios"), false, Ok(false)),
            (true, None, true, Ok(true)),
            (true, Some("uefi"), true, Ok(true)),
            (true, Some("uefi"), false, Err("anneal-agent changes boot entries in the ramdisk only")),
            (true, Some("bios"), true, Err("the node booted by UEFI, but BIOS is asked")),
            (false, Some("uefi"), true, Err("the node booted by BIOS, but UEFI is asked")),
            (false, Some("x\n"), true, Err(r#"the node booted by BIOS, but "x\n" is asked"#)),
        ] {
            let found = changes_entries(uefi, wanted, in_ramdisk);
            match (&found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(*found, expected),
                (Err(problem), Err(expected)) => assert!(problem.starts_with(expected), "{problem}"),
                _ => panic!("{uefi} {wanted:?}: {found:?}"),
            }
        }
    }
}
