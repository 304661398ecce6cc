//! The certificate that a controller signs.

use crate::{Document, Evidence, Signed, SigningKey};
use agent_protocol::record::{DiskRecord, Outcome};
use serde::{Deserialize, Serialize};

/// The result of one step that erases or deploys, for the disks of one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// [`crate::VERSION`].
    pub version: u32,
    /// Which of the node's certificates it is, from 1.
    pub number: u64,
    /// Digest of the previous certificate ([`Signed::digest`]); `None` in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// When the controller stored it: RFC 3339, UTC, by its clock.
    pub issued_at: String,
    /// Issuer of the certificate.
    pub controller: Controller,
    /// Whose disks they were.
    pub node: NodeName,
    /// Where the node stands, as far as the operator has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// In which run of the node.
    pub run: RunName,
    /// What the node's TPM proved of the boot in which the agent ran; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_proof: Option<BootProof>,
    /// The finding.
    pub finding: Finding,
    /// Disks that left the node since the previous certificate, each accepted by an operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired_disks: Vec<RetiredDisk>,
    /// Of a deployment: what the certificates before it say of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_before: Option<DiskBefore>,
    /// The key that the agent sent over its authenticated channel.
    pub evidence_key: String,
    /// The evidence that the agent signed.
    pub evidence: Signed,
}

/// A controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    /// Its name.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeName {
    /// Its UUID.
    pub uuid: String,
    /// Name of the node at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where a node stands, in the operator's words at that time. What was not said is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The site of the controller (setting `[conductor] site`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The place within it: `properties.place` of the node, for example its rack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The `description` of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunName {
    /// Its id.
    pub id: String,
    /// What it was for: `automated_clean`, `manual_clean`, `service` …
    pub kind: String,
    /// Place of the step in its plan, from 0.
    pub step: u64,
    /// The API request that started it; `None` where the controller does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<RequestSender>,
    /// Whether the node was seen off before each boot of the run; `None` in certificates of earlier versions, which do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_off: Option<PowerOff>,
}

/// What a TPM proved of a boot: that it was one of the signed ramdisk, and that the key of the evidence is of that boot's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootProof {
    /// SHA-256 of the quote (`TPMS_ATTEST`), 64 hexadecimal digits.
    pub quote_sha256: String,
    /// Name of the TPM's endorsement key: 68 hexadecimal digits.
    pub endorsement_key: String,
}

/// What shows that nothing of an earlier boot ran on the node during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerOff {
    /// The BMC reported the node off before each boot.
    Observed,
    /// At least one boot began with a reset that the BMC accepted, and with a fetch of the boot script since.
    NotObserved,
}

impl PowerOff {
    /// What a certificate says about it, in words.
    pub fn in_words(said: Option<Self>) -> &'static str {
        match said {
            Some(Self::Observed) => "power-off observed",
            Some(Self::NotObserved) => "power-off not observed",
            None => "not stated",
        }
    }
}

/// The API request that started a run, and its sender. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSender {
    /// Name of the user; `None`: the request was not authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The project that the user's role was limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// IP address that the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Id of the request, as in the controller's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A disk that left a node, accepted by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredDisk {
    /// Serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// World wide name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The operator's reason.
    pub reason: String,
    /// When it was accepted: RFC 3339, UTC, by the controller's clock.
    pub at: String,
}

/// A disk before an image was written to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskBefore {
    /// Id of the certificate of its last erase; `None` where it was not erased since the node was deployed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_by: Option<String>,
}

/// Finding of a step. It is derived from the evidence alone and verified against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Every disk of the node was erased.
    Erased,
    /// At least one disk was erased, and at least one was left alone, lost its metadata only or was not verified, or disks
    /// may be behind a controller that was ignored.
    ErasedWithExceptions,
    /// No disk was erased; of those not left alone partition tables and signatures were removed.
    MetadataErased,
    /// No disk was written, or the node had none.
    NothingErased,
    /// An image was written to a disk and read back.
    Deployed,
    /// The firmware begins with the image that was written.
    BootEntriesMade,
    /// The step failed. The record of each disk has its result.
    Failed,
}

impl Finding {
    /// The finding that follows from `evidence`.
    pub fn of(evidence: &Evidence) -> Self {
        let count = |outcome| evidence.disks.iter().filter(|disk| disk.outcome == outcome).count();
        if !evidence.succeeded || count(Outcome::Failed) > 0 {
            return Self::Failed;
        }
        if evidence.deployed.is_some() {
            return Self::Deployed;
        }
        if evidence.boot_entries.is_some() {
            return Self::BootEntriesMade;
        }
        let verified = |disk: &DiskRecord| disk.verification.as_ref().is_some_and(|seen| seen.passed);
        let exceptions = !evidence.ignored_controllers.is_empty() || !evidence.disks.iter().all(verified);
        match (count(Outcome::Erased), count(Outcome::MetadataErased)) {
            (0, 0) => Self::NothingErased,
            (0, _) => Self::MetadataErased,
            (erased, _) if erased == evidence.disks.len() && !exceptions => Self::Erased,
            _ => Self::ErasedWithExceptions,
        }
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Erased => "erased",
            Self::ErasedWithExceptions => "erased_with_exceptions",
            Self::MetadataErased => "metadata_erased",
            Self::NothingErased => "nothing_erased",
            Self::Deployed => "deployed",
            Self::BootEntriesMade => "boot_entries_made",
            Self::Failed => "failed",
        }
    }
}

impl Certificate {
    /// Sign it.
    pub fn sign(&self, key: &SigningKey) -> Signed {
        Signed::make(Document::Certificate, self, key)
    }
}
