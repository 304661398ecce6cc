//! The ways to boot that only `cargo xtask soak --part boot` tries; the others are in the table of all scenarios.

use super::{
    Scenario, behind_proxy, http_boot_dhcp, pxe_ipv6, virtual_media, virtual_media_killed,
    virtual_media_networks,
};

/// The longest first.
pub static ALL: &[Scenario] = &[
    ("virtual_media_killed", virtual_media_killed::ABOUT, |stage| {
        Box::pin(virtual_media_killed::story(stage))
    }),
    ("virtual_media_bios", virtual_media::BIOS, |stage| Box::pin(virtual_media::by_bios(stage))),
    ("virtual_media_usb", virtual_media::USB, |stage| Box::pin(virtual_media::by_bios_from_usb(stage))),
    ("virtual_media_networks", virtual_media_networks::ABOUT, |stage| {
        Box::pin(virtual_media_networks::story(stage))
    }),
    ("pxe_ipv6", pxe_ipv6::ABOUT, |stage| Box::pin(pxe_ipv6::story(stage))),
    ("behind_proxy", behind_proxy::ABOUT, |stage| Box::pin(behind_proxy::story(stage))),
    ("http_boot_dhcp", http_boot_dhcp::ABOUT, |stage| Box::pin(http_boot_dhcp::story(stage))),
];
