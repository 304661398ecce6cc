//! The evidence that an agent signs for a step that erases or deploys, and the controller's checks of it.

use crate::claim;
use crate::deployment;
use crate::{Document, PublicKey, Refused, Signed, SigningKey};
use agent_protocol::deployment::{BootEntries, WrittenDisk};
use agent_protocol::record::{DiskRecord, EraseReport, IgnoredController, RequiredVerification};
use serde::{Deserialize, Serialize};

/// The results of one step for the disks of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// [`crate::VERSION`].
    pub version: u32,
    /// The agent that signed it.
    pub agent: AgentName,
    /// The machine, by its firmware (SMBIOS).
    pub machine: Machine,
    /// UUID of the node, as the controller named it with the command.
    pub node: String,
    /// Id of the command, the controller's.
    pub command_id: String,
    /// The step.
    pub step: StepName,
    /// The hardware manager that ran it.
    pub manager: ManagerName,
    /// Whether the step ended as a success.
    pub succeeded: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Every disk that the agent saw, touched or not; none of a deployment.
    pub disks: Vec<DiskRecord>,
    /// Storage controllers without a driver, or without its firmware, that the node's operator lets be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_controllers: Vec<IgnoredController>,
    /// The disk that an image was written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<WrittenDisk>,
    /// The boot entries of the firmware, after an image was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_entries: Option<BootEntries>,
}

/// The agent of one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentName {
    /// Version of the program.
    pub version: String,
    /// Boot id of the ramdisk.
    pub boot_id: String,
    /// Id of the process.
    pub process_id: String,
}

/// What the machine's firmware calls it; empty where it says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Manufacturer.
    pub manufacturer: String,
    /// Product.
    pub product_name: String,
    /// Serial number.
    pub serial_number: String,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepName {
    /// `clean`, `deploy` or `service`.
    pub kind: String,
    /// Its interface, `deploy`.
    pub interface: String,
    /// Its name, `erase_devices`.
    pub step: String,
}

/// The command that makes the firmware begin with the image: kind, interface and name, as its evidence names it.
pub const INSTALL_BOOTLOADER: [&str; 3] = ["deploy", "image", "install_bootloader"];

impl StepName {
    /// By its kind, interface and name.
    pub fn of([kind, interface, step]: [&str; 3]) -> Self {
        Self { kind: kind.to_owned(), interface: interface.to_owned(), step: step.to_owned() }
    }
}

/// A hardware manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerName {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The step that the evidence must be about, as the controller knows it.
#[derive(Debug, Clone)]
pub struct Expected<'a> {
    /// UUID of the node.
    pub node: &'a str,
    /// Id of the command.
    pub command_id: &'a str,
    /// Boot of the agent that was heard.
    pub boot_id: &'a str,
    /// The step.
    pub step: StepName,
    /// Whether the command succeeded.
    pub succeeded: bool,
    /// The report in the command's result; empty where it is none of an erase.
    pub report: &'a EraseReport,
    /// The disk in it that an image was written to.
    pub deployed: Option<&'a WrittenDisk>,
    /// The boot entries in it.
    pub boot_entries: Option<&'a BootEntries>,
    /// What each erased disk must have been verified by.
    pub required: RequiredVerification,
}

impl Evidence {
    /// Sign it.
    pub fn sign(&self, key: &SigningKey) -> Signed {
        Signed::make(Document::Evidence, self, key)
    }

    /// Signed by `sign`, which has the private half of `key` and gets the payload: see [`sign_evidence`].
    ///
    /// # Errors
    /// That of `sign`.
    pub fn signed_by<E>(
        &self,
        key: &PublicKey,
        sign: impl FnOnce(&str) -> Result<[u8; 64], E>,
    ) -> Result<Signed, E> {
        // Plain data with string keys: this cannot fail, and an empty payload is rejected everywhere.
        let payload = serde_json::to_string(self).unwrap_or_default();
        let signature = signing::hex(&sign(&payload)?);
        Ok(Signed { payload, key: key.to_string(), signature })
    }

    /// `erasure` or `deployment`: what the certificate of it is called.
    pub fn kind(&self) -> &'static str {
        if self.deployed.is_some() || self.boot_entries.is_some() { "deployment" } else { "erasure" }
    }

    /// Every disk that counts as erased was seen to be, and one that counts as deployed holds its image.
    pub(crate) fn check_claims(&self) -> Result<(), Refused> {
        self.disks.iter().try_for_each(claim::check)?;
        let kinds = [!self.disks.is_empty(), self.deployed.is_some(), self.boot_entries.is_some()];
        if kinds.iter().filter(|there| **there).count() > 1 {
            return Err(Refused::AnotherResult(
                "what the step did: it erases, writes an image or makes boot entries",
            ));
        }
        self.deployed.as_ref().map_or(Ok(()), deployment::check)
    }
}

/// The signature of a payload as that of evidence, and of nothing else.
pub fn sign_evidence(payload: &str, key: &SigningKey) -> [u8; 64] {
    key.sign(&Document::Evidence.message(payload))
}

/// The evidence in `signed`, if `key` has signed it, it is about the expected step, and its claims follow from its records.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn judge(signed: &Signed, key: &PublicKey, expected: &Expected) -> Result<Evidence, Refused> {
    let evidence: Evidence = signed.open(Document::Evidence, key)?;
    if evidence.node != expected.node {
        return Err(Refused::AnotherNode { found: evidence.node, wanted: expected.node.to_owned() });
    }
    let label = |step: &StepName| format!("{} {}.{}", step.kind, step.interface, step.step);
    for (what, found, wanted) in [
        ("command", evidence.command_id.clone(), expected.command_id.to_owned()),
        ("boot", evidence.agent.boot_id.clone(), expected.boot_id.to_owned()),
        ("step", label(&evidence.step), label(&expected.step)),
    ] {
        if found != wanted {
            return Err(Refused::AnotherCommand { what, found, wanted });
        }
    }
    if evidence.succeeded != expected.succeeded {
        return Err(Refused::AnotherResult("how the step ended"));
    }
    if evidence.disks != expected.report.disks {
        return Err(Refused::AnotherResult("the disks"));
    }
    if evidence.ignored_controllers != expected.report.ignored_controllers {
        return Err(Refused::AnotherResult("the controllers without a driver or its firmware"));
    }
    if evidence.deployed.as_ref() != expected.deployed {
        return Err(Refused::AnotherResult("the disk that the image was written to"));
    }
    if evidence.boot_entries.as_ref() != expected.boot_entries {
        return Err(Refused::AnotherResult("the boot entries"));
    }
    evidence.check_claims()?;
    evidence.disks.iter().try_for_each(|disk| claim::suffices(disk, expected.required))?;
    Ok(evidence)
}
