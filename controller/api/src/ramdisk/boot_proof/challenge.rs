//! Challenges, of which the controller keeps nothing: their secret is computed again from what the answer shows.

use model::Timestamp;
use model::boot::BootNonce;
use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::rand::SystemRandom;
use std::time::Duration;
use tpm::Name;
use uuid::Uuid;

/// How long an answer may take: slow TPMs need some seconds for their keys.
const VALID: Duration = Duration::from_secs(60);
/// Bytes of the time at which a challenge expires, at the start of its nonce: microseconds since 1970, most significant first.
const EXPIRY: usize = 8;

/// The key of all challenges of this process. Never stored: after a restart, or at another controller, agents begin anew.
#[derive(Clone)]
pub struct ChallengeKey(Option<Key>);

impl Default for ChallengeKey {
    /// A new one; without randomness of the operating system one that makes no secrets.
    fn default() -> Self {
        Self(Key::generate(HMAC_SHA256, &SystemRandom::new()).ok())
    }
}

impl std::fmt::Debug for ChallengeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChallengeKey(******)")
    }
}

/// All that the secret of a challenge depends on.
pub struct Bound<'a> {
    /// Of the challenge.
    pub nonce: &'a [u8; 32],
    /// Whose boot it is.
    pub node: Uuid,
    /// The nonce of that boot.
    pub boot: &'a BootNonce,
    /// Boot id of the agent.
    pub boot_id: &'a str,
    /// Name of the endorsement key.
    pub endorsement: &'a Name,
    /// Name of the attestation key.
    pub attestation: &'a Name,
}

impl ChallengeKey {
    /// The secret that only the TPM with both keys can decrypt; `None`: the operating system had no randomness for a key.
    pub fn secret(&self, bound: &Bound) -> Option<[u8; tpm::SECRET]> {
        let key = self.0.as_ref()?;
        let Bound { nonce, node, boot, boot_id, endorsement, attestation } = bound;
        let mut text = b"anneal boot proof secret 1\0".to_vec();
        let parts: [&[u8]; 6] = [
            *nonce,
            node.as_bytes(),
            boot.expose().as_bytes(),
            boot_id.as_bytes(),
            endorsement.bytes(),
            attestation.bytes(),
        ];
        for part in parts {
            text.extend((part.len() as u64).to_be_bytes());
            text.extend(part);
        }
        let mut secret = [0; tpm::SECRET];
        secret.copy_from_slice(sign(key, &text).as_ref());
        Some(secret)
    }
}

/// A new nonce, good for [`VALID`] from now on.
///
/// # Errors
/// The operating system has no randomness.
pub fn nonce(now: Timestamp) -> Result<[u8; 32], getrandom::Error> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce)?;
    nonce[..EXPIRY].copy_from_slice(&now.after(VALID).0.to_be_bytes());
    Ok(nonce)
}

/// Whether a nonce is not expired, nor from a future that no challenge was made in. That it is one of ours is shown by the secret.
pub fn is_fresh(nonce: &[u8; 32], now: Timestamp) -> bool {
    let mut expiry = [0; EXPIRY];
    expiry.copy_from_slice(&nonce[..EXPIRY]);
    let expiry = Timestamp(i64::from_be_bytes(expiry));
    expiry > now && expiry <= now.after(VALID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_expires_after_a_minute() {
        let (first, second) = (nonce(Timestamp(5)).unwrap(), nonce(Timestamp(5)).unwrap());
        assert_ne!(first, second);
        let at = |seconds: u64| Timestamp(5).after(Duration::from_secs(seconds));
        assert!(is_fresh(&first, at(0)) && is_fresh(&first, at(59)));
        assert!(!is_fresh(&first, at(60)) && !is_fresh(&first, Timestamp(4)));
        assert!(!is_fresh(&[0xff; 32], at(0)) && !is_fresh(&[0x7f; 32], at(0)));
    }

    #[test]
    fn a_secret_is_of_one_challenge_one_boot_and_these_keys() {
        let key = ChallengeKey::default();
        let names = ["11", "22"].map(|byte| format!("000b{}", byte.repeat(32)).parse::<Name>().unwrap());
        let (boot, other_boot) = (BootNonce::shown("b"), BootNonce::shown("c"));
        let bound = || Bound {
            nonce: &[1; 32],
            node: Uuid::from_u128(7),
            boot: &boot,
            boot_id: "x",
            endorsement: &names[0],
            attestation: &names[1],
        };
        let secret = key.secret(&bound());
        assert!(secret.is_some());
        assert_eq!(key.secret(&bound()), secret);
        for (what, other) in [
            ("nonce", Bound { nonce: &[2; 32], ..bound() }),
            ("node", Bound { node: Uuid::from_u128(8), ..bound() }),
            ("boot", Bound { boot: &other_boot, ..bound() }),
            ("boot id", Bound { boot_id: "y", ..bound() }),
            ("endorsement key", Bound { endorsement: &names[1], ..bound() }),
            ("attestation key", Bound { attestation: &names[0], ..bound() }),
        ] {
            assert_ne!(key.secret(&other), secret, "{what}");
        }
        assert_ne!(ChallengeKey::default().secret(&bound()), secret, "another process");
    }
}
