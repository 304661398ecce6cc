//! Trusted Platform Modules (TPM 2.0 Library, Parts 1 to 3; TCG PC Client Platform Firmware Profile; TCG EK Credential Profile).
//!
//! ```text
//!   agent       Prover over a Transport: endorsement key, attestation key ─▶ activate ─▶ quote
//!   controller  make_credential(keys, secret) ─▶ …
//!               predict(what is booted) ─▶ judge(Shown, Expected) ─▶ Proof, or the Refusal that names what failed
//! ```
//!
//! No C and no `unsafe`. Everything but [`Tpm`] and [`Prover`] is pure; parsers take any bytes and allocate no more than they were given.

mod algorithm;
mod authenticode;
mod bytes;
mod certificate;
mod credential;
mod device;
mod digest;
mod event_log;
mod fuzz;
mod judge;
mod kdf;
mod key;
mod measurements;
mod pcr;
mod program;
mod quote;
mod refusal;
mod replay;

pub use bytes::Malformed;
pub use credential::{Credential, CredentialError, SECRET, make_credential};
pub use device::{Channel, ClearAuthority, Prover, Quoted, Tpm, TpmError, Transport, open};
pub use digest::{Digest, DigestError};
pub use event_log::{Event, EventLog, LogError, parse as parse_event_log};
#[doc(hidden)]
pub use fuzz::fuzz;
pub use judge::{Expected, Proof, Shown, binding, judge};
pub use key::{AttestationKey, EndorsementKey, KeyError, Name};
pub use measurements::{Change, Measurements};
pub use pcr::{PCRS, Pcrs};
pub use program::{Initramfs, Prediction, ProgramError, predict, predict_loaded};
pub use quote::{Quote, QuoteError, verify as verify_quote};
pub use refusal::Refusal;
pub use replay::replay;
