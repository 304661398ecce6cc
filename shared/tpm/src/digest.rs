//! SHA-256.

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 digest. As text, also in JSON: 64 hexadecimal digits, lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest(pub [u8; 32]);

/// Text that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 digest has 64 hexadecimal digits, lower case")]
pub struct DigestError;

impl Digest {
    /// Before anything is measured.
    pub const ZERO: Self = Self([0; 32]);

    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_all(&[bytes])
    }

    /// Of all of them, one behind the other.
    pub fn of_all(parts: &[&[u8]]) -> Self {
        let mut context = Context::new(&SHA256);
        for part in parts {
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        Self(digest)
    }

    /// What a PCR with this value holds after `TPM2_PCR_Extend`.
    #[must_use]
    pub fn extended(self, by: Self) -> Self {
        Self::of_all(&[&self.0, &by.0])
    }

    /// Its bytes, if there are 32.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        unhex(text).and_then(|bytes| Self::from_slice(&bytes)).ok_or(DigestError)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

/// Bytes of hexadecimal digits, lower case.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_text_and_back() {
        let digest = Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(serde_json::to_string(&digest).expect("writes"), format!("{text:?}"));
        for bad in [&text[1..], &text[2..], &text.to_uppercase(), &format!("{text}00"), "", "ß"] {
            assert_eq!(bad.parse::<Digest>(), Err(DigestError), "{bad}");
        }
    }
}
