//! One story a file.

mod add_on_firmware;
mod apparent_configuration;
mod bad_images;
mod behind_proxy;
mod boots;
mod bundle;
mod clean_uefi;
mod configdrive;
mod controller_killed;
mod deploy_and_service;
mod deploy_interrupted;
mod deployed;
mod deployed_4k;
mod deployed_uefi;
mod discovery;
mod driverless_hba;
mod drives;
mod early_impostor;
mod erase_under_lockdown;
mod failing_disks;
mod fast_track;
mod foreign_metadata;
mod hold;
mod hostile_bundles;
mod http_boot;
mod http_boot_dhcp;
mod inspect_in_band;
mod ipa_media;
mod ipmi_sim;
mod ironic_deploys;
mod ironic_media;
mod layered;
mod locked_drive;
mod lvm_md_node;
mod mute_agent;
mod never_powered_off;
mod power_cut;
mod public_listener;
mod pxe_ipv6;
mod ramdisk_interface;
mod read_only_disk;
mod replace_ipa;
mod rescue_login;
pub mod resumed;
mod secure_boot;
mod secure_boot_enrolled;
mod shim;
mod sushy;
mod tpm;
mod tutorial;
mod two_agents;
mod unsigned_impostor;
mod virtual_media;
pub mod virtual_media_killed;
mod virtual_media_networks;
mod wrong_token;

use std::pin::Pin;

use anyhow::{Result, ensure};

use crate::options::Table;
use crate::stage::Stage;

type Story = Pin<Box<dyn Future<Output = Result<()>>>>;

/// A scenario: its name, for `--filter`, `PASS` and `FAIL`; one line for `--list`; what happens, where an error is a
/// failure.
pub type Scenario = (&'static str, &'static str, fn(Stage) -> Story);

/// The longest first: the others fill the gaps.
static ALL: &[Scenario] = &[
    ("hostile_bundles", hostile_bundles::ABOUT, |stage| Box::pin(hostile_bundles::story(stage))),
    ("power_cut_mid_erase", power_cut::ABOUT, |stage| Box::pin(power_cut::story(stage))),
    ("deploy_and_service", deploy_and_service::ABOUT, |stage| Box::pin(deploy_and_service::story(stage))),
    ("deploy_interrupted", deploy_interrupted::ABOUT, |stage| Box::pin(deploy_interrupted::story(stage))),
    ("bad_images", bad_images::ABOUT, |stage| Box::pin(bad_images::story(stage))),
    ("discovery", discovery::ABOUT, |stage| Box::pin(discovery::story(stage))),
    ("deployed", deployed::ABOUT, |stage| Box::pin(deployed::story(stage))),
    ("deployed_uefi", deployed_uefi::ABOUT, |stage| Box::pin(deployed_uefi::story(stage))),
    ("ironic_deploys_uefi", ironic_deploys::UEFI, |stage| Box::pin(ironic_deploys::by_uefi(stage))),
    ("ironic_iso", ironic_media::ISO, |stage| Box::pin(ironic_media::from_ready_iso(stage))),
    ("rescue_login", rescue_login::ABOUT, |stage| Box::pin(rescue_login::story(stage))),
    ("drives", drives::ABOUT, |stage| Box::pin(drives::story(stage))),
    ("locked_drive", locked_drive::ABOUT, |stage| Box::pin(locked_drive::story(stage))),
    ("fast_track", fast_track::ABOUT, |stage| Box::pin(fast_track::story(stage))),
    ("tutorial", tutorial::ABOUT, |stage| Box::pin(tutorial::story(stage))),
    ("configdrive", configdrive::ABOUT, |stage| Box::pin(configdrive::story(stage))),
    ("layered", layered::ABOUT, |stage| Box::pin(layered::story(stage))),
    ("hold", hold::ABOUT, |stage| Box::pin(hold::story(stage))),
    ("resumed", resumed::ABOUT, |stage| Box::pin(resumed::story(stage))),
    ("foreign_metadata", foreign_metadata::ABOUT, |stage| Box::pin(foreign_metadata::story(stage))),
    ("two_agents", two_agents::ABOUT, |stage| Box::pin(two_agents::story(stage))),
    ("lvm_md_node", lvm_md_node::ABOUT, |stage| Box::pin(lvm_md_node::story(stage))),
    ("sushy_media", sushy::MEDIA, |stage| Box::pin(sushy::by_virtual_media(stage))),
    ("replace_ipa", replace_ipa::ABOUT, |stage| Box::pin(replace_ipa::story(stage))),
    ("ipmi_sim", ipmi_sim::ABOUT, |stage| Box::pin(ipmi_sim::story(stage))),
    ("virtual_media_uefi", virtual_media::UEFI, |stage| Box::pin(virtual_media::by_uefi(stage))),
    ("tpm", tpm::ABOUT, |stage| Box::pin(tpm::story(stage))),
    ("secure_boot", secure_boot::ABOUT, |stage| Box::pin(secure_boot::story(stage))),
    ("erase_under_lockdown", erase_under_lockdown::ABOUT, |stage| {
        Box::pin(erase_under_lockdown::story(stage))
    }),
    ("http_boot", http_boot::ABOUT, |stage| Box::pin(http_boot::story(stage))),
    ("clean_uefi", clean_uefi::ABOUT, |stage| Box::pin(clean_uefi::story(stage))),
    ("never_powered_off", never_powered_off::ABOUT, |stage| Box::pin(never_powered_off::story(stage))),
    ("apparent_configuration", apparent_configuration::ABOUT, |stage| {
        Box::pin(apparent_configuration::story(stage))
    }),
    ("ramdisk_interface", ramdisk_interface::ABOUT, |stage| Box::pin(ramdisk_interface::story(stage))),
    ("inspect_in_band", inspect_in_band::ABOUT, |stage| Box::pin(inspect_in_band::story(stage))),
    ("controller_killed_mid_erase", controller_killed::ABOUT, |stage| {
        Box::pin(controller_killed::story(stage))
    }),
    ("early_impostor", early_impostor::ABOUT, |stage| Box::pin(early_impostor::story(stage))),
    ("driverless_hba", driverless_hba::ABOUT, |stage| Box::pin(driverless_hba::story(stage))),
    ("failing_disks", failing_disks::ABOUT, |stage| Box::pin(failing_disks::story(stage))),
    ("read_only_disk", read_only_disk::ABOUT, |stage| Box::pin(read_only_disk::story(stage))),
    ("mute_agent", mute_agent::ABOUT, |stage| Box::pin(mute_agent::story(stage))),
    ("unsigned_impostor", unsigned_impostor::ABOUT, |stage| Box::pin(unsigned_impostor::story(stage))),
    ("public_listener", public_listener::ABOUT, |stage| Box::pin(public_listener::story(stage))),
    ("wrong_token", wrong_token::ABOUT, |stage| Box::pin(wrong_token::story(stage))),
];

/// Those for which `cargo xtask test` has no time: of each, a shorter form or one of its kind is above. The longest first.
static LONG: &[Scenario] = &[
    ("hostile_bundles", hostile_bundles::ABOUT, |stage| Box::pin(hostile_bundles::story(stage))),
    ("bad_images", bad_images::ABOUT, |stage| Box::pin(bad_images::story(stage))),
    ("ironic_deploys", ironic_deploys::BIOS, |stage| Box::pin(ironic_deploys::by_bios(stage))),
    ("sushy", sushy::ABOUT, |stage| Box::pin(sushy::story(stage))),
    ("bundle", bundle::ABOUT, |stage| Box::pin(bundle::story(stage))),
    ("deployed_4k", deployed_4k::ABOUT, |stage| Box::pin(deployed_4k::story(stage))),
];

/// The scenarios of a table with `filter` in their names. Deployments and boot times are none.
///
/// # Errors
/// When there is none.
pub fn chosen(filter: Option<&str>, table: Table) -> Result<Vec<&'static Scenario>> {
    let filter = filter.unwrap_or_default();
    let table = match table {
        Table::Run => ALL,
        Table::Long => LONG,
        Table::Boots => boots::ALL,
        Table::Deployments | Table::BootTimes => &[],
    };
    let chosen: Vec<_> = table.iter().filter(|(name, ..)| name.contains(filter)).collect();
    ensure!(!chosen.is_empty(), "no scenario has {filter:?} in its name");
    Ok(chosen)
}
