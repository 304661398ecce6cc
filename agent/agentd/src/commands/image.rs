//! `image.*`: make a written image boot.

use super::command::{Call, Command, IpaCompatibility, Mode, failed};
use crate::registry::Ending;

/// Of every command that would write an image, or make one boot that was written.
pub(super) const NO_IMAGES: &str = "anneal-agent cannot write images yet: nothing was written to any disk. Deploy with the \
                                    ramdisk of ironic-python-agent";

pub(super) const COMMANDS: &[Command] =
    &[Command::new("image.install_bootloader", Mode::Async, IpaCompatibility::Fails(NO_IMAGES), no_images)
        .with(
            &["root_uuid"],
            &["efi_system_part_uuid", "prep_boot_part_uuid", "target_boot_mode", "ignore_bootloader_failure"],
        )];

pub(super) fn no_images(_: &Call) -> Ending {
    failed(NO_IMAGES)
}
