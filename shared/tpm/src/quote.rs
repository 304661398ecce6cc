//! Quotes (`TPMS_ATTEST`; TPM 2.0 Library, Part 2, section 10.12) and their signatures.

use crate::algorithm::{ECDSA, SHA256};
use crate::bytes::{Malformed, Reader};
use crate::digest::Digest;
use crate::key::{AttestationKey, COORDINATE};
use crate::pcr::selected;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

/// `TPM_GENERATED_VALUE`: a restricted key signs nothing from outside that begins with it.
const GENERATED: u32 = 0xff54_4347;
/// `TPM_ST_ATTEST_QUOTE`.
const ATTEST_QUOTE: u16 = 0x8018;

/// What a quote says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// What was given to the TPM to be signed with it.
    pub extra_data: Vec<u8>,
    /// The PCRs that it covers, of the SHA-256 bank, in ascending order.
    pub pcrs: Vec<u8>,
    /// SHA-256 of their values.
    pub digest: Digest,
}

/// Why a quote is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    /// Not what a TPM writes.
    #[error("the quote cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// The signature is none of ECDSA.
    #[error("the signature of the quote cannot be read: {0}")]
    Signature(Malformed),
    /// Another key, or another quote.
    #[error("the attestation key has not signed the quote")]
    NotSigned,
    /// Another key signed than a primary key of the endorsement hierarchy.
    #[error("the attestation key is no primary key of the endorsement hierarchy")]
    Hierarchy,
}

impl Quote {
    /// Of a `TPMS_ATTEST`, and the qualified name of the key that signed it.
    pub(crate) fn parse(quote: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader::new(quote);
        if reader.u32()? != GENERATED {
            return Err(Malformed("no TPM has made it"));
        }
        if reader.u16()? != ATTEST_QUOTE {
            return Err(Malformed("it attests something else than PCRs"));
        }
        let signer = reader.sized()?;
        let extra_data = reader.sized()?.to_vec();
        // Clock, number of resets and of restarts, whether the clock is safe; version of the firmware.
        reader.take(8 + 4 + 4 + 1 + 8)?;
        let pcrs = selected(&mut reader)?;
        let digest = Digest::from_slice(reader.sized()?).ok_or(Malformed("its digest is none of SHA-256"))?;
        reader.end()?;
        Ok((Self { extra_data, pcrs, digest }, signer))
    }
}

/// Reads a `TPMS_ATTEST` whose `TPMT_SIGNATURE` is that of this key.
///
/// # Errors
/// See [`QuoteError`].
pub fn verify(key: &AttestationKey, quote: &[u8], signature: &[u8]) -> Result<Quote, QuoteError> {
    let signature = raw(signature).map_err(QuoteError::Signature)?;
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.point());
    public.verify(quote, &signature).map_err(|_| QuoteError::NotSigned)?;
    let (quote, signer) = Quote::parse(quote)?;
    if signer != key.name().qualified().bytes() {
        return Err(QuoteError::Hierarchy);
    }
    Ok(quote)
}

/// Both numbers of a `TPMT_SIGNATURE` of ECDSA, in full length.
pub(crate) fn raw(signature: &[u8]) -> Result<[u8; 2 * COORDINATE], Malformed> {
    let mut reader = Reader::new(signature);
    if (reader.u16()?, reader.u16()?) != (ECDSA, SHA256) {
        return Err(Malformed("it is none of ECDSA with SHA-256"));
    }
    let mut raw = [0; 2 * COORDINATE];
    for place in raw.chunks_mut(COORDINATE) {
        let number = reader.sized()?;
        let free = place.len().checked_sub(number.len()).ok_or(Malformed("a number is too long"))?;
        place[free..].copy_from_slice(number);
    }
    reader.end()?;
    Ok(raw)
}
