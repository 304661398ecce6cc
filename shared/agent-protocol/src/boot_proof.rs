//! An agent proves by its TPM what was booted, before its lookup.
//!
//! ```text
//!   agent ── POST /v1/anneal/boot_proof ────────▶ controller    its keys, answered with a challenge
//!   agent ── POST /v1/anneal/boot_proof/answer ─▶ controller    a quote and the event log, answered with 204
//! ```
//!
//! Only to a controller whose root document says so ([`Capabilities`]). Bytes are base64 of the standard alphabet with padding;
//! the structures are those of TPM 2.0 Library, Part 2, as the TPM marshals them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this exchange.
pub const VERSION: u32 = 1;

/// Path of [`Start`] below the API's root.
pub const START_PATH: &str = "/v1/anneal/boot_proof";

/// Path of [`Answer`] below the API's root.
pub const ANSWER_PATH: &str = "/v1/anneal/boot_proof/answer";

/// Bytes of the longest event log that an agent sends and a controller takes: some times that of a server, and in base64 less than a
/// controller reads from someone it does not know (256 KiB).
pub const LONGEST_EVENT_LOG: usize = 160 * 1024;

/// What the object `anneal` of the root document (`GET /`) says of this exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Highest [`VERSION`] that the controller understands; 0 for none.
    #[serde(default)]
    pub boot_proof: u32,
}

/// Whose keys these are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// MAC addresses of the machine, as a lookup shows them.
    pub addresses: Vec<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Public part of the endorsement key: `TPMT_PUBLIC`.
    pub endorsement_key: String,
    /// Its maker's certificate, DER, where the TPM stores one.
    #[serde(default)]
    pub endorsement_certificate: Option<String>,
    /// Public part of the key that signs the quote: `TPMT_PUBLIC`.
    pub attestation_key: String,
}

/// What the agent's TPM has to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// 32 bytes that no other challenge has.
    pub nonce: String,
    /// `TPM2B_ID_OBJECT` without its size: a secret that only a TPM with both keys decrypts.
    pub credential: String,
    /// `TPM2B_ENCRYPTED_SECRET` without its size.
    pub secret: String,
    /// The PCRs to quote, of the SHA-256 bank, in ascending order.
    pub pcrs: Vec<u8>,
}

/// The proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// As it was sent before.
    pub start: Start,
    /// Of the challenge.
    pub nonce: String,
    /// The secret of the challenge's credential.
    pub activated: String,
    /// `TPMS_ATTEST`.
    pub quote: String,
    /// `TPMT_SIGNATURE` of it.
    pub signature: String,
    /// Values of the quoted PCRs: 64 hexadecimal digits each, lower case.
    pub pcrs: BTreeMap<u8, String>,
    /// The firmware's log of what it measured (TCG PC Client Platform Firmware Profile, section 10), at most
    /// [`LONGEST_EVENT_LOG`] bytes.
    pub event_log: String,
    /// SHA-256 of the agent's TLS certificate (DER): 64 hexadecimal digits, lower case.
    pub tls_certificate: String,
    /// The key that signs the agent's evidence: `ed25519:` and its bytes.
    pub evidence_key: String,
}
