//! The firmware's log of what it measured (TCG PC Client Platform Firmware Profile 1.06, section 10), as Linux gives it in
//! `binary_bios_measurements`.
//!
//! Only digests count: they must give the PCRs that a TPM has signed. Types and data are what anyone may have written.

use crate::algorithm::SHA256;
use crate::bytes::{Malformed, Reader};
use crate::digest::Digest;

/// `EV_NO_ACTION`: was not measured.
pub(crate) const NO_ACTION: u32 = 3;
/// Begins the data of the first event.
const SIGNATURE: &[u8; 16] = b"Spec ID Event03\0";
/// More algorithms no firmware has.
const ALGORITHMS: u32 = 16;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// Into which PCR it was measured.
    pub pcr: u32,
    /// `TCG_EVENTTYPE`.
    pub kind: u32,
    /// What extended the PCR of the SHA-256 bank.
    pub digest: Digest,
    /// `event`.
    pub data: &'a [u8],
}

/// Events that were measured, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventLog<'a>(pub Vec<Event<'a>>);

/// Why a log is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// It breaks off, or begins with something else.
    #[error("the event log cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// The firmware does not use it.
    #[error("the event log has no digests of SHA-256")]
    NoSha256,
}

impl EventLog<'_> {
    /// Those of one PCR.
    pub fn of(&self, pcr: u8) -> impl Iterator<Item = &Event<'_>> {
        self.0.iter().filter(move |event| event.pcr == u32::from(pcr))
    }
}

/// Read a log.
///
/// # Errors
/// See [`LogError`].
pub fn parse(log: &[u8]) -> Result<EventLog<'_>, LogError> {
    let mut reader = Reader::new(log);
    let algorithms = header(&mut reader)?;
    if !algorithms.iter().any(|(algorithm, length)| (*algorithm, *length) == (SHA256, 32)) {
        return Err(LogError::NoSha256);
    }
    let mut events = Vec::new();
    while !reader.is_empty() {
        let event = event(&mut reader, &algorithms)?;
        if event.kind != NO_ACTION {
            events.push(event);
        }
    }
    Ok(EventLog(events))
}

/// `TCG_PCClientPCREvent` with `TCG_EfiSpecIDEvent`: the algorithms, and the bytes of their digests.
fn header(reader: &mut Reader) -> Result<Vec<(u16, u16)>, Malformed> {
    let (_pcr, kind, _digest) = (reader.u32_le()?, reader.u32_le()?, reader.take(20)?);
    let length = reader.u32_le()?;
    let mut data = Reader::new(reader.take(length as usize)?);
    if kind != NO_ACTION || data.take(SIGNATURE.len())? != SIGNATURE {
        return Err(Malformed("it does not begin as a log of TPM 2.0"));
    }
    // Class of the platform; minor and major version, errata, size of UINTN.
    data.take(4 + 4)?;
    let count = data.u32_le()?;
    if count > ALGORITHMS {
        return Err(Malformed("it has too many algorithms"));
    }
    (0..count).map(|_| Ok((data.u16_le()?, data.u16_le()?))).collect()
}

/// `TCG_PCR_EVENT2`.
fn event<'a>(reader: &mut Reader<'a>, algorithms: &[(u16, u16)]) -> Result<Event<'a>, Malformed> {
    let (pcr, kind, count) = (reader.u32_le()?, reader.u32_le()?, reader.u32_le()?);
    if count > ALGORITHMS {
        return Err(Malformed("an event has too many digests"));
    }
    let mut digest = None;
    for _ in 0..count {
        let algorithm = reader.u16_le()?;
        let known = algorithms.iter().find(|(known, _)| *known == algorithm);
        let (_, length) =
            known.ok_or(Malformed("an event has a digest of an algorithm that the log does not name"))?;
        let bytes = reader.take(usize::from(*length))?;
        if algorithm == SHA256 {
            digest = Digest::from_slice(bytes);
        }
    }
    let length = reader.u32_le()?;
    let data = reader.take(length as usize)?;
    let digest = digest.ok_or(Malformed("an event has no digest of SHA-256"))?;
    Ok(Event { pcr, kind, digest, data })
}
