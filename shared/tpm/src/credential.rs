//! Credentials (TPM 2.0 Library, Part 1, section 24): a secret that a TPM decrypts only if it has the endorsement key, and next to it
//! the key with this name.

use crate::bytes::Writer;
use crate::kdf::{kdfa, kdfe};
use crate::key::{AttestationKey, COORDINATE, EndorsementKey};
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::rand::SystemRandom;

/// Bytes of the secret: as many as a digest of an endorsement key with SHA-256.
pub const SECRET: usize = 32;

/// An encrypted secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// `TPM2B_ID_OBJECT` without its size.
    pub credential: Vec<u8>,
    /// `TPM2B_ENCRYPTED_SECRET` without its size.
    pub secret: Vec<u8>,
}

/// Why nothing was encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The system has no random numbers.
    #[error("no random numbers are to be had")]
    Random,
    /// The point is not on the curve.
    #[error("the endorsement key is no point on P-256")]
    Point,
}

/// Encrypt `secret` for the TPM with this endorsement key, if it has this attestation key.
///
/// # Errors
/// See [`CredentialError`].
pub fn make_credential(
    endorsement: &EndorsementKey,
    attestation: &AttestationKey,
    secret: &[u8; SECRET],
) -> Result<Credential, CredentialError> {
    let random = SystemRandom::new();
    let ephemeral =
        EphemeralPrivateKey::generate(&ECDH_P256, &random).map_err(|_| CredentialError::Random)?;
    let public = ephemeral.compute_public_key().map_err(|_| CredentialError::Random)?;
    let (ours, theirs) = (x(public.as_ref()), x(endorsement.point()));
    let peer = UnparsedPublicKey::new(&ECDH_P256, endorsement.point());
    let seed = agree_ephemeral(ephemeral, &peer, |z| kdfe(z, "IDENTITY", ours, theirs));
    let seed = seed.map_err(|_| CredentialError::Point)?;
    let y = &public.as_ref()[1 + COORDINATE..];
    Ok(Credential {
        credential: sealed(&seed, attestation.name().bytes(), secret),
        secret: Writer::default().sized(ours).sized(y).done(),
    })
}

/// The first coordinate of a point that is not compressed.
fn x(point: &[u8]) -> &[u8] {
    &point[1..=COORDINATE]
}

/// `TPMS_ID_OBJECT` (Part 1, section 24.4): encrypted, and authenticated together with the name.
fn sealed(seed: &[u8; 32], name: &[u8], secret: &[u8; SECRET]) -> Vec<u8> {
    let storage = kdfa(seed, "STORAGE", name, 128);
    let mut identity = Writer::default().sized(secret).done();
    encrypt(&storage, &mut identity);
    let integrity = Key::new(HMAC_SHA256, &kdfa(seed, "INTEGRITY", &[], 256));
    let mac = sign(&integrity, &[&identity, name].concat());
    Writer::default().sized(mac.as_ref()).raw(&identity).done()
}

/// AES-128 in CFB mode with an initialization vector of zeros, by the first half of `key`.
fn encrypt(key: &[u8; 32], data: &mut [u8]) {
    let mut half = [0; 16];
    half.copy_from_slice(&key[..16]);
    let cipher = Aes128::new(&half.into());
    let mut previous = [0_u8; 16];
    for chunk in data.chunks_mut(16) {
        let mut mask = previous.into();
        cipher.encrypt_block(&mut mask);
        for (byte, mask) in chunk.iter_mut().zip(mask.iter()) {
            *byte ^= mask;
        }
        previous[..chunk.len()].copy_from_slice(chunk);
    }
}
