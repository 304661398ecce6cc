//! A text and who stands for it.

use crate::{Document, PublicKey, Refused, SigningKey, VERSION};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A signed text: evidence, or a certificate as it is stored and sent.
///
/// The signature covers the bytes of [`Document::context`] followed by those of `payload` (UTF-8), which is JSON stored as a
/// string, so no canonical JSON is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// JSON of an [`crate::Evidence`] or a [`crate::Certificate`].
    pub payload: String,
    /// The public key: `ed25519:` and 64 hexadecimal digits, lower case.
    pub key: String,
    /// The signature: 128 hexadecimal digits, lower case.
    pub signature: String,
}

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

impl Document {
    /// Prefix of the signed bytes, so that evidence cannot pass for a certificate, nor the reverse.
    fn context(self) -> &'static str {
        match self {
            Document::Evidence => "anneal erase evidence\n",
            Document::Certificate | Document::Previous => "anneal erasure certificate\n",
            Document::KeyChange => "anneal certificate key change\n",
        }
    }

    pub(crate) fn message(self, payload: &str) -> Vec<u8> {
        [self.context().as_bytes(), payload.as_bytes()].concat()
    }
}

impl Signed {
    /// Sign `value`.
    pub(crate) fn make(what: Document, value: &impl Serialize, key: &SigningKey) -> Self {
        // Plain data with string keys: this cannot fail, and an empty payload is rejected everywhere.
        let payload = serde_json::to_string(value).unwrap_or_default();
        let signature = signing::hex(&key.sign(&what.message(&payload)));
        Self { payload, key: key.public().to_string(), signature }
    }

    /// From its JSON.
    ///
    /// # Errors
    /// [`Refused::Unreadable`].
    pub fn read(what: Document, text: &str) -> Result<Self, Refused> {
        serde_json::from_str(text).map_err(|error| Refused::Unreadable(what, error.to_string()))
    }

    /// Its JSON, in one line.
    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// SHA-256 of the payload, 64 hexadecimal digits: the name of a certificate.
    pub fn digest(&self) -> String {
        signing::sha256(self.payload.as_bytes())
    }

    /// The value, if one of `keys` has signed it.
    pub(crate) fn open_with_any<T: DeserializeOwned>(
        &self,
        what: Document,
        keys: &[PublicKey],
    ) -> Result<T, Refused> {
        let own = keys.iter().find(|key| key.to_string() == self.key).or(keys.first());
        match own {
            Some(key) => self.open(what, key),
            None => Err(Refused::WrongKey { what, signed_by: self.key.clone(), key: "none".to_owned() }),
        }
    }

    /// The value, if `key` has signed it.
    pub(crate) fn open<T: DeserializeOwned>(&self, what: Document, key: &PublicKey) -> Result<T, Refused> {
        if self.key != key.to_string() {
            let (signed_by, key) = (self.key.chars().take(100).collect(), key.to_string());
            return Err(Refused::WrongKey { what, signed_by, key });
        }
        let signature = bytes(&self.signature).ok_or(Refused::Tampered(what))?;
        if !key.signed(&what.message(&self.payload), &signature) {
            return Err(Refused::Tampered(what));
        }
        let unreadable = |error: serde_json::Error| Refused::Unreadable(what, error.to_string());
        let Versioned { version } = serde_json::from_str(&self.payload).map_err(unreadable)?;
        if version != u64::from(VERSION) {
            return Err(Refused::UnknownVersion(what, version));
        }
        serde_json::from_str(&self.payload).map_err(unreadable)
    }
}

/// The bytes of a signature; `None` if another text could stand for the same ones.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
    let bytes: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<_>>()?;
    (signing::hex(&bytes) == digits).then_some(bytes)
}
