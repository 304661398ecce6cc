//! Whether what an agent shows proves its boot. Pure.

use crate::credential::SECRET;
use crate::digest::Digest;
use crate::event_log::{self, Event, EventLog};
use crate::key::{AttestationKey, EndorsementKey, Name};
use crate::measurements::{Change, Measurements};
use crate::pcr::{PCRS, Pcrs};
use crate::program::{Initramfs, Prediction};
use crate::quote;
use crate::refusal::Refusal;
use crate::replay::replay;

/// Bytes of the longest text that a firmware measures as an action.
const LONGEST_ACTION: usize = 255;

/// What an agent shows.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// Its endorsement key.
    pub endorsement_key: &'a EndorsementKey,
    /// The certificate of that, DER.
    pub endorsement_certificate: Option<&'a [u8]>,
    /// The key that signed the quote.
    pub attestation_key: &'a AttestationKey,
    /// The secret of the credential.
    pub activated: &'a [u8],
    /// `TPMS_ATTEST`.
    pub quote: &'a [u8],
    /// `TPMT_SIGNATURE`.
    pub signature: &'a [u8],
    /// Values of the quoted PCRs.
    pub pcrs: &'a Pcrs,
    /// Of the firmware.
    pub event_log: &'a [u8],
}

/// What the controller expects.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Name of the node's endorsement key, if it is enrolled.
    pub endorsement_key: Option<&'a Name>,
    /// The secret that the credential had.
    pub secret: &'a [u8; SECRET],
    /// Of this challenge, this boot and these keys: [`binding`].
    pub binding: &'a Digest,
    /// Of what is to be booted.
    pub program: &'a Prediction,
    /// Of the node, if it is enrolled.
    pub recorded: Option<&'a Measurements>,
}

/// A boot of the ramdisk on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// SHA-256 of the quote (`TPMS_ATTEST`).
    pub quote: Digest,
    /// Of this boot.
    pub measurements: Measurements,
    /// How they differ from what was recorded. Of a machine that is not enrolled: the programs that it started besides the
    /// ramdisk, which an operator should have seen before.
    pub changes: Vec<Change>,
}

/// What the quote's extra data must be, so that it counts only for this challenge, this boot, and an agent with these two keys.
/// `tls_certificate` is SHA-256 of its DER; `evidence_key` as heartbeats show it.
pub fn binding(nonce: &[u8; 32], tls_certificate: &Digest, evidence_key: &str, boot_id: &str) -> Digest {
    let parts: [&[u8]; 6] = [
        b"anneal boot proof 1\0",
        nonce,
        &tls_certificate.0,
        evidence_key.as_bytes(),
        &[0],
        boot_id.as_bytes(),
    ];
    Digest::of_all(&parts)
}

/// Judge what was shown. Whether the challenge has expired is for the caller to judge before.
///
/// # Errors
/// The first thing that failed, in the order of [`Refusal`].
pub fn judge(shown: &Shown, expected: &Expected) -> Result<Proof, Refusal> {
    identity(shown, expected)?;
    let quoted = quote::verify(shown.attestation_key, shown.quote, shown.signature)?;
    if quoted.extra_data != expected.binding.0 {
        return Err(Refusal::OtherChallenge);
    }
    if quoted.pcrs != PCRS {
        return Err(Refusal::OtherPcrs(quoted.pcrs));
    }
    if !shown.pcrs.0.keys().eq(&PCRS) || shown.pcrs.digest() != quoted.digest {
        return Err(Refusal::PcrValues);
    }
    let log = event_log::parse(shown.event_log)?;
    // The values of the others are compared themselves, so that no firmware fails whose log of them is wrong.
    for pcr in [4, 9] {
        let (replayed, quoted) = (replay(&log, pcr), shown.pcrs.value(pcr));
        if replayed != quoted {
            return Err(Refusal::Replay { pcr, replayed, quoted });
        }
    }
    command_line(&log, expected.program)?;
    let programs = other_programs(&log, expected.program)?;
    initramfs(&log, shown.pcrs, expected.program.initramfs)?;
    let measurements = Measurements::new(shown.pcrs, programs);
    let changes = match expected.recorded {
        Some(recorded) => recorded.changes(&measurements),
        None => Measurements::default().new_programs(&measurements),
    };
    Ok(Proof { quote: Digest::of(shown.quote), measurements, changes })
}

/// That it is this node's TPM, and that the attestation key is in it.
fn identity(shown: &Shown, expected: &Expected) -> Result<(), Refusal> {
    let name = shown.endorsement_key.name();
    if let Some(enrolled) = expected.endorsement_key.filter(|enrolled| *enrolled != name) {
        return Err(Refusal::OtherTpm { shown: *name, enrolled: *enrolled });
    }
    let fits = |certificate| shown.endorsement_key.is_certified_by(certificate);
    if !shown.endorsement_certificate.is_none_or(fits) {
        return Err(Refusal::Certificate);
    }
    if !same(shown.activated, expected.secret) {
        return Err(Refusal::NotActivated);
    }
    Ok(())
}

/// In a time that does not depend on where two secrets differ: MACs of them are compared.
fn same(shown: &[u8], expected: &[u8]) -> bool {
    use ring::hmac::{HMAC_SHA256, Key, sign, verify};
    let key = Key::new(HMAC_SHA256, expected);
    verify(&key, shown, sign(&key, expected).as_ref()).is_ok()
}

/// The kernel measures its command line before anything else that it measures into PCR 9. What comes later an attacker could
/// have measured who had changed the command line.
fn command_line(log: &EventLog, program: &Prediction) -> Result<(), Refusal> {
    let first = log.of(9).next().ok_or(Refusal::NotMeasured)?;
    if first.digest == program.command_line {
        return Ok(());
    }
    Err(Refusal::CommandLine { measured: first.digest, predicted: program.command_line })
}

/// The programs in PCR 4 besides those of the ramdisk.
fn other_programs(log: &EventLog, program: &Prediction) -> Result<Vec<Digest>, Refusal> {
    let started = log.of(4).filter(|event| !is_no_program(event)).map(|event| event.digest);
    let started: Vec<Digest> = started.collect();
    if let Some(missing) = program.required().iter().find(|own| !started.contains(own)) {
        return Err(Refusal::Program { started, predicted: *missing });
    }
    Ok(started.into_iter().filter(|digest| !program.programs.contains(digest)).collect())
}

/// That nothing else of the ramdisk was changed.
fn initramfs(log: &EventLog, pcrs: &Pcrs, predicted: Initramfs) -> Result<(), Refusal> {
    let parts = |predicted| match pcrs.value(11) {
        measured if measured == predicted => Ok(()),
        measured => Err(Refusal::Parts { measured, predicted }),
    };
    match predicted {
        Initramfs::Parts(predicted) => parts(predicted),
        Initramfs::Initrd(predicted) => {
            // The kernel measures it next after its command line, which the caller has compared.
            let measured = log.of(9).nth(1).map(|event| event.digest);
            if measured != Some(predicted) {
                return Err(Refusal::Initrd { measured: measured.unwrap_or(Digest::ZERO), predicted });
            }
            parts(Digest::ZERO)
        }
    }
}

/// Separators and texts of the firmware ("Calling EFI Application from Boot Option"), whose digests are those of their data. The
/// bytes of a program are not printable.
fn is_no_program(event: &Event) -> bool {
    let is_text =
        event.data.len() <= LONGEST_ACTION && event.data.iter().all(|byte| (b' '..=b'~').contains(byte));
    let is_separator = matches!(event.data, [0, 0, 0, 0] | [0xff, 0xff, 0xff, 0xff]);
    (is_text || is_separator) && event.digest == Digest::of(event.data)
}
