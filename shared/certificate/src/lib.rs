//! Certificates of erases and deployments: evidence that an agent signs, certificates that a controller signs, and their verification.
//!
//! ```text
//!   agent       EraseReport, WrittenDisk ─▶ Evidence ── key of its boot ──▶ Signed
//!   controller  judge(Signed, key of the heartbeat) ─▶ Certificate ── its durable key ──▶ Signed, in the store
//!   auditor     verify(file, public key) ─▶ Verified, or the first error
//! ```
//!
//! The signature covers the text of a payload, stored as a string ([`Signed`]), so no canonical JSON is needed.
//! `docs/certificate.md` is the text for auditors.

mod certificate;
mod chain;
mod claim;
mod deployment;
mod evidence;
mod key_change;
pub mod log;
mod method;
mod refused;
mod signed;
mod verify;

pub use certificate::{
    BootProof, Certificate, Controller, DiskBefore, Finding, NodeName, Place, PowerOff, RequestSender,
    RetiredDisk, RunName,
};
pub use chain::{Chain, erased_by, verify_chains};
pub use evidence::{
    AgentName, Evidence, Expected, INSTALL_BOOTLOADER, Machine, ManagerName, StepName, judge, sign_evidence,
};
pub use key_change::{KeyChange, SignedKeyChange, keys_from};
pub use log::{Log, LogEntry};
pub use refused::{Document, Refused};
pub use signed::Signed;
pub use signing::{KeyError, PublicKey, SigningKey, SigningKeyError};
pub use verify::{Verified, Wanted, evidence_in, verify, verify_with_any};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Version of the payloads that is written and understood here.
pub const VERSION: u32 = 1;

/// Key of the evidence in a command's result, next to the result of the step.
pub const EVIDENCE: &str = "anneal_evidence";

/// An instant in microseconds since 1970, as certificates write it: RFC 3339 in UTC.
pub fn instant(microseconds: i64) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(microseconds) * 1000);
    at.unwrap_or(OffsetDateTime::UNIX_EPOCH).format(&Rfc3339).unwrap_or_default()
}
