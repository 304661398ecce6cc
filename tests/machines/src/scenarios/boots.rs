//! The ways to boot that only `cargo xtask soak --part boot` tries; the others are in the table of all scenarios.

use super::{
    Scenario, add_on_firmware, behind_proxy, http_boot_dhcp, ipa_media, ironic_media, pxe_ipv6, secure_boot,
    secure_boot_enrolled, shim, virtual_media, virtual_media_killed, virtual_media_networks,
};

/// The longest first.
pub static ALL: &[Scenario] = &[
    ("ipa_media_uefi", ipa_media::UEFI, |stage| Box::pin(ipa_media::by_uefi(stage))),
    ("ipa_media_bios", ipa_media::BIOS, |stage| Box::pin(ipa_media::by_bios(stage))),
    ("virtual_media_killed", virtual_media_killed::ABOUT, |stage| {
        Box::pin(virtual_media_killed::story(stage))
    }),
    ("virtual_media_bios", virtual_media::BIOS, |stage| Box::pin(virtual_media::by_bios(stage))),
    ("virtual_media_usb", virtual_media::USB, |stage| Box::pin(virtual_media::by_bios_from_usb(stage))),
    ("virtual_media_networks", virtual_media_networks::ABOUT, |stage| {
        Box::pin(virtual_media_networks::story(stage))
    }),
    ("ironic_media", ironic_media::MADE, |stage| Box::pin(ironic_media::from_made_iso(stage))),
    ("add_on_firmware", add_on_firmware::ABOUT, |stage| Box::pin(add_on_firmware::story(stage))),
    ("secure_boot_enrolled", secure_boot_enrolled::ABOUT, |stage| {
        Box::pin(secure_boot_enrolled::story(stage))
    }),
    ("secure_boot_http", secure_boot::HTTP, |stage| Box::pin(secure_boot::by_http(stage))),
    ("shim_http", shim::HTTP, |stage| Box::pin(shim::by_http(stage))),
    ("shim", shim::ABOUT, |stage| Box::pin(shim::story(stage))),
    ("pxe_ipv6", pxe_ipv6::ABOUT, |stage| Box::pin(pxe_ipv6::story(stage))),
    ("behind_proxy", behind_proxy::ABOUT, |stage| Box::pin(behind_proxy::story(stage))),
    ("http_boot_dhcp", http_boot_dhcp::ABOUT, |stage| Box::pin(http_boot_dhcp::story(stage))),
];
