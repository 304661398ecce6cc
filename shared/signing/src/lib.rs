//! Keys that sign, and keys that say who did: Ed25519 (RFC 8032). Bundles and erasure certificates have them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "ed25519:";
const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Bytes of a signature.
pub const SIGNATURE: usize = 64;

/// Bytes of a digest, a key or a signature in hexadecimal, lower case.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 as it is written everywhere.
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// A public key, written `ed25519:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

/// Why a text is no key, or no list of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The form.
    #[error("{0:?} is not a public key: ed25519: and 64 hexadecimal digits")]
    Form(String),
    /// A line of a list.
    #[error("line {line}: {source}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        source: Box<KeyError>,
    },
}

impl PublicKey {
    /// From its 32 bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// By what it is called in manifests and answers: the first 16 hexadecimal digits of its SHA-256.
    pub fn id(&self) -> String {
        hex(&digest(&SHA256, &self.0).as_ref()[..8])
    }

    /// Whether it has signed `message`.
    pub fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }

    /// The keys of a text with one a line; `#` begins a comment, also behind a key.
    pub fn list(text: &str) -> Result<Vec<Self>, KeyError> {
        let lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default().trim()));
        let keys = lines.filter(|(_, line)| !line.is_empty());
        keys.map(|(line, text)| {
            text.parse().map_err(|source| KeyError::Line { line, source: Box::new(source) })
        })
        .collect()
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let wrong = || KeyError::Form(text.chars().take(100).collect());
        let digits = text.trim().strip_prefix(PREFIX).ok_or_else(wrong)?;
        let pairs: Vec<&[u8]> = digits.as_bytes().chunks(2).collect();
        let byte = |pair: &&[u8]| {
            let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
            u8::try_from(digit(0)? * 16 + digit(1)?).ok()
        };
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", hex(&self.0))
    }
}

/// A key that signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
}

/// Why there is no key. Never says what stands in a file.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The system gave no random numbers, or refused to make a key of them.
    #[error("no key could be made")]
    Make,
    /// Not what [`SigningKey::generate`] or `openssl genpkey -algorithm ed25519` writes.
    #[error("is not an Ed25519 private key in PEM form (PKCS #8)")]
    Form,
}

impl SigningKey {
    /// A new one, and the text to keep it as (PKCS #8 in PEM form).
    pub fn generate() -> Result<(Self, String), SigningKeyError> {
        let document =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| SigningKeyError::Make)?;
        let key = Self::from_der(document.as_ref())?;
        Ok((key, format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", STANDARD.encode(document))))
    }

    /// From the text of a key file.
    pub fn from_pem(text: &str) -> Result<Self, SigningKeyError> {
        let body = text.split_once(PEM_BEGIN).and_then(|(_, rest)| rest.split_once(PEM_END));
        let (body, _) = body.ok_or(SigningKeyError::Form)?;
        let body: String = body.split_whitespace().collect();
        Self::from_der(&STANDARD.decode(body).map_err(|_| SigningKeyError::Form)?)
    }

    fn from_der(der: &[u8]) -> Result<Self, SigningKeyError> {
        // OpenSSL leaves the public half out.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|_| SigningKeyError::Form)?;
        Ok(Self { pair })
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey::new(bytes)
    }

    /// Its signature of `message`.
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE] {
        let mut bytes = [0; SIGNATURE];
        bytes.copy_from_slice(self.pair.sign(message).as_ref());
        bytes
    }
}

/// Whether a text is what [`PublicKey::id`] makes.
pub fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first test vector of RFC 8032, 7.1.
    const KEY: &str = "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

    #[test]
    fn a_key_is_read_named_and_used() {
        let key: PublicKey = KEY.parse().unwrap();
        assert_eq!(key.to_string(), KEY);
        assert_eq!(key.id(), "21fe31dfa154a261");
        let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        let signature: Vec<u8> =
            (0..64).map(|at| u8::from_str_radix(&signature[2 * at..2 * at + 2], 16).unwrap()).collect();
        assert!(key.signed(b"", &signature));
        assert!(
            !key.signed(b"x", &signature) && !key.signed(b"", &signature[1..]) && !key.signed(b"", &[0; 64])
        );
        let (new, pem) = SigningKey::generate().unwrap();
        let again = SigningKey::from_pem(&pem).unwrap();
        assert!(new.public().signed(b"x", &again.sign(b"x")) && again.public() == new.public());
    }

    #[test]
    fn a_list_has_comments_and_names_the_line_that_is_wrong() {
        let text = format!("# keys of the site\n\n{KEY} # ACME\n");
        assert_eq!(PublicKey::list(&text).unwrap(), [KEY.parse().unwrap()]);
        for bad in
            ["", "ed25519:", "ed25519:00", &KEY[..KEY.len() - 1], &KEY[8..], "rsa:00", &format!("{KEY}0")]
        {
            assert!(bad.parse::<PublicKey>().is_err(), "{bad}");
        }
        let error = PublicKey::list(&format!("{KEY}\ned25519:é")).unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
    }
}
