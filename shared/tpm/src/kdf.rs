//! Key derivation (TPM 2.0 Library, Part 1, section 11.4.10), with SHA-256 and at most one block.

use crate::digest::Digest;
use ring::hmac::{HMAC_SHA256, Key, sign};

/// `KDFa`: a key of 256 bits from a key. `bits` of it are wanted.
pub(crate) fn kdfa(key: &[u8], label: &str, context: &[u8], bits: u32) -> [u8; 32] {
    let key = Key::new(HMAC_SHA256, key);
    let message = [&1_u32.to_be_bytes()[..], label.as_bytes(), &[0], context, &bits.to_be_bytes()].concat();
    let mut derived = [0; 32];
    derived.copy_from_slice(sign(&key, &message).as_ref());
    derived
}

/// `KDFe`: a key of 256 bits from the agreed coordinate `z` of two parties with these coordinates.
pub(crate) fn kdfe(z: &[u8], label: &str, party_u: &[u8], party_v: &[u8]) -> [u8; 32] {
    Digest::of_all(&[&1_u32.to_be_bytes(), z, label.as_bytes(), &[0], party_u, party_v]).0
}
