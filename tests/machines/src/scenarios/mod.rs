//! One story a file.

mod apparent_configuration;
mod bundle;
mod clean_uefi;
mod controller_killed;
mod deploy_and_service;
mod drives;
mod foreign_metadata;
mod hold;
mod hostile_bundles;
mod inspect_in_band;
mod ipmi_sim;
mod layered;
mod locked_drive;
mod lvm_md_node;
mod power_cut;
mod public_listener;
mod read_only_disk;
mod replace_ipa;
pub mod resumed;
mod sushy;
mod tutorial;
mod two_agents;
mod vanishing_disk;
mod write_errors;
mod wrong_token;

use std::pin::Pin;

use anyhow::{Result, ensure};

use crate::stage::Stage;

type Story = Pin<Box<dyn Future<Output = Result<()>>>>;

/// A scenario.
pub struct Scenario {
    /// For `--filter`, `PASS` and `FAIL`.
    pub name: &'static str,
    /// One line for `--list`.
    pub about: &'static str,
    /// What needs the network of this machine, done before.
    pub prepare: fn() -> Result<()>,
    /// What happens; an error is a failure.
    pub story: fn(Stage) -> Story,
}

/// The longest first: the others fill the gaps.
static ALL: &[Scenario] = &[
    Scenario {
        name: "power_cut_mid_erase",
        about: "the node loses power, several times: cleaned anew, then clean failed with a reason, never available",
        prepare: || Ok(()),
        story: |stage| Box::pin(power_cut::story(stage)),
    },
    Scenario {
        name: "deploy_and_service",
        about: "not deployed without an image; serviced, not rescued without a login, torn down and erased",
        prepare: || Ok(()),
        story: |stage| Box::pin(deploy_and_service::story(stage)),
    },
    Scenario {
        name: "drives",
        about: "SATA and SAS drives in user space: sanitize, secure erase, format; frozen, reserved, lying, busy ones",
        prepare: || Ok(()),
        story: |stage| Box::pin(drives::story(stage)),
    },
    Scenario {
        name: "locked_drive",
        about: "the power goes in a secure erase: the drive is found locked, unlocked, and erased after all",
        prepare: || Ok(()),
        story: |stage| Box::pin(locked_drive::story(stage)),
    },
    Scenario {
        name: "hostile_bundles",
        about: "a fork bomb, a flood, a burglar, a thief of steps, and those that hang or exit: the disk is erased",
        prepare: || Ok(()),
        story: |stage| Box::pin(hostile_bundles::story(stage)),
    },
    Scenario {
        name: "tutorial",
        about: "the manager of docs/write-a-hardware-manager.md, made and bundled as it says, works on a node",
        prepare: || Ok(()),
        story: |stage| Box::pin(tutorial::story(stage)),
    },
    Scenario {
        name: "layered",
        about: "LVM on LUKS on md, mounted, swap, an array without a member: taken down and erased",
        prepare: || Ok(()),
        story: |stage| Box::pin(layered::story(stage)),
    },
    Scenario {
        name: "hold",
        about: "a manual cleaning that is held twice, with the power off and on again in between",
        prepare: || Ok(()),
        story: |stage| Box::pin(hold::story(stage)),
    },
    Scenario {
        name: "resumed",
        about: "power lost in a long overwrite: it goes on from its checkpoint, and its certificate holds on a desk",
        prepare: || Ok(()),
        story: |stage| Box::pin(resumed::story(stage)),
    },
    Scenario {
        name: "foreign_metadata",
        about: "a VMFS datastore next to LUKS2 and BlueStore refuses the run; released by name, all metadata goes",
        prepare: || Ok(()),
        story: |stage| Box::pin(foreign_metadata::story(stage)),
    },
    Scenario {
        name: "two_agents",
        about: "one token for one agent: an impostor gets nowhere, a rebooted node gets in again",
        prepare: || Ok(()),
        story: |stage| Box::pin(two_agents::story(stage)),
    },
    Scenario {
        name: "lvm_md_node",
        about: "members of md and LVM: metadata alone, then everything; blkid finds nothing",
        prepare: || Ok(()),
        story: |stage| Box::pin(lvm_md_node::story(stage)),
    },
    Scenario {
        name: "sushy",
        about: "outside judge: sushy-emulator over libvirt, driver redfish",
        prepare: crate::judges::sushy::install,
        story: |stage| Box::pin(sushy::story(stage)),
    },
    Scenario {
        name: "replace_ipa",
        about: "a real Ironic with our kernel and ramdisk, as docs/replace-ipa.md says: redfish, iPXE, erased, available",
        prepare: crate::judges::ironic::install,
        story: |stage| Box::pin(replace_ipa::story(stage)),
    },
    Scenario {
        name: "ipmi_sim",
        about: "outside judge: OpenIPMI's BMC simulator, driver ipmi",
        prepare: || Ok(()),
        story: |stage| Box::pin(ipmi_sim::story(stage)),
    },
    Scenario {
        name: "clean_uefi",
        about: "a UEFI node with a disk of every kind, from old data to available",
        prepare: || Ok(()),
        story: |stage| Box::pin(clean_uefi::story(stage)),
    },
    Scenario {
        name: "apparent_configuration",
        about: "boot mode, boot order, persistent boot device, BIOS settings are the same after a cleaning",
        prepare: || Ok(()),
        story: |stage| Box::pin(apparent_configuration::story(stage)),
    },
    Scenario {
        name: "bundle",
        about: "a vendor's bundle added to a running controller: the next boot has its manager, its step runs",
        prepare: || Ok(()),
        story: |stage| Box::pin(bundle::story(stage)),
    },
    Scenario {
        name: "inspect_in_band",
        about: "the ramdisk reports what is in the machine, and the node's properties follow",
        prepare: || Ok(()),
        story: |stage| Box::pin(inspect_in_band::story(stage)),
    },
    Scenario {
        name: "controller_killed_mid_erase",
        about: "SIGKILL of the controller, several times: the erase goes on and is not started again",
        prepare: || Ok(()),
        story: |stage| Box::pin(controller_killed::story(stage)),
    },
    Scenario {
        name: "write_errors",
        about: "a disk that cannot be written: named, the node held, the other disks' records kept",
        prepare: || Ok(()),
        story: |stage| Box::pin(write_errors::story(stage)),
    },
    Scenario {
        name: "read_only_disk",
        about: "refused with its reason, and nothing is written to any disk",
        prepare: || Ok(()),
        story: |stage| Box::pin(read_only_disk::story(stage)),
    },
    Scenario {
        name: "vanishing_disk",
        about: "a disk pulled during its erase: named, the node held, the other disk done",
        prepare: || Ok(()),
        story: |stage| Box::pin(vanishing_disk::story(stage)),
    },
    Scenario {
        name: "public_listener",
        about: "outside of loopback only agents are served, and only over TLS",
        prepare: || Ok(()),
        story: |stage| Box::pin(public_listener::story(stage)),
    },
    Scenario {
        name: "wrong_token",
        about: "heartbeats of strangers are refused and change nothing",
        prepare: || Ok(()),
        story: |stage| Box::pin(wrong_token::story(stage)),
    },
];

/// The scenarios with `filter` in their names.
///
/// # Errors
/// When there is none.
pub fn chosen(filter: Option<&str>) -> Result<Vec<&'static Scenario>> {
    let filter = filter.unwrap_or_default();
    let chosen: Vec<_> = ALL.iter().filter(|scenario| scenario.name.contains(filter)).collect();
    ensure!(!chosen.is_empty(), "no scenario has {filter:?} in its name");
    Ok(chosen)
}
