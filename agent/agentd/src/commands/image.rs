//! `image.*`: make a written image boot.

use super::command::{Call, Command, IpaCompatibility, Mode, failed};
use crate::registry::Ending;
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
        "BIOS: the image brings its boot loader, and nothing is changed. UEFI: always ends FAILED, boot entries are not \
         made yet",
    ),
    |call| {
        let wanted = call.params.get("target_boot_mode").and_then(Value::as_str);
        match bootable(Path::new(UEFI).exists(), wanted) {
            Ok(text) => Ending::done(Some(json!({ "result": text }))),
            Err(problem) => failed(&problem),
        }
    },
)
.with(
    &["root_uuid"],
    &["efi_system_part_uuid", "prep_boot_part_uuid", "target_boot_mode", "ignore_bootloader_failure"],
)];

pub(super) fn no_images(_: &Call) -> Ending {
    failed(NO_IMAGES)
}

/// Why a whole-disk image boots on a machine that has booted in this mode; `wanted` is what the controller asks for.
fn bootable(uefi: bool, wanted: Option<&str>) -> Result<&'static str, String> {
    let here = if uefi { "uefi" } else { "bios" };
    match wanted {
        Some(wanted) if wanted != here => Err(format!(
            "the node has booted in mode {here}, and is to boot its image in mode {wanted}: nothing was changed"
        )),
        _ if uefi => Err(
            "anneal-agent cannot make UEFI boot entries yet: nothing was changed. Deploy with the boot mode \
                          bios, or with the ramdisk of ironic-python-agent"
                .to_owned(),
        ),
        _ => Ok(
            "install_bootloader: the image brings the boot loader that the BIOS starts; nothing was changed",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::bootable;

    #[test]
    fn only_a_bios_machine_is_bootable_without_boot_entries() {
        assert!(bootable(false, None).is_ok() && bootable(false, Some("bios")).is_ok());
        for (uefi, wanted, expected) in [
            (true, None, "UEFI boot entries"),
            (true, Some("uefi"), "UEFI boot entries"),
            (true, Some("bios"), "booted in mode uefi"),
            (false, Some("uefi"), "booted in mode bios"),
        ] {
            let problem = bootable(uefi, wanted).expect_err(expected);
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
