//! `image.*`: make a written image boot.

use super::command::{Command, IpaCompatibility, Mode, command_panicked, failed};

/// Of every command that would write an image, or make one boot that was written.
pub(super) const NO_IMAGES: &str = "anneal-agent cannot write images yet: nothing was written to any disk. Deploy with the \
                                    ramdisk of ironic-python-agent";

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "image.install_bootloader",
    mode: Mode::Async,
    required: &["root_uuid"],
    optional: &[
        "efi_system_part_uuid",
        "prep_boot_part_uuid",
        "target_boot_mode",
        "ignore_bootloader_failure",
    ],
    run: |_| failed(NO_IMAGES),
    panicked: command_panicked,
    compatibility: IpaCompatibility::Fails(NO_IMAGES),
}];
