//! `image.*`: make a written image boot.

use super::command::{Call, Command, IpaCompatibility, Mode, failed};
use crate::registry::Ending;

/// Of the commands that write an image and are not the step `write_image`.
pub(super) const NO_IMAGES: &str = "anneal-agent writes images by the deploy step write_image only: nothing was written to any \
                                    disk";

/// Of the command that makes a written image boot by UEFI.
const NO_ENTRIES: &str = "anneal-agent cannot make UEFI boot entries yet: nothing was changed. Deploy with the boot mode bios, or \
                          with the ramdisk of ironic-python-agent";

pub(super) const COMMANDS: &[Command] =
    &[Command::new("image.install_bootloader", Mode::Async, IpaCompatibility::Fails(NO_ENTRIES), |_| {
        failed(NO_ENTRIES)
    })
    .with(
        &["root_uuid"],
        &["efi_system_part_uuid", "prep_boot_part_uuid", "target_boot_mode", "ignore_bootloader_failure"],
    )];

pub(super) fn no_images(_: &Call) -> Ending {
    failed(NO_IMAGES)
}
