//! The change of the key that signs certificates: the old key signs for the new one, and the new one for the old.

use crate::{Document, PublicKey, Refused, Signed, SigningKey, VERSION};
use serde::{Deserialize, Serialize};

/// A key takes the place of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChange {
    /// [`crate::VERSION`].
    pub version: u32,
    /// When: RFC 3339, UTC, by the controller's clock.
    pub changed_at: String,
    /// The key until then.
    pub old: String,
    /// The key from then on.
    pub new: String,
}

/// A change of the key with both signatures, as it is stored and sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedKeyChange {
    /// Signed by the old key.
    pub by_old: Signed,
    /// The same payload, signed by the new key.
    pub by_new: Signed,
}

impl SignedKeyChange {
    /// The change of `old` into `new` at this time.
    pub fn make(old: &SigningKey, new: &SigningKey, changed_at: String) -> Self {
        let change = KeyChange {
            version: VERSION,
            changed_at,
            old: old.public().to_string(),
            new: new.public().to_string(),
        };
        let sign = |key: &SigningKey| Signed::make(Document::KeyChange, &change, key);
        Self { by_old: sign(old), by_new: sign(new) }
    }

    /// The two keys, old and new, if both have signed the change.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn open(&self) -> Result<(PublicKey, PublicKey), Refused> {
        let what = Document::KeyChange;
        let unreadable = |error: crate::KeyError| Refused::Unreadable(what, error.to_string());
        let stated: KeyChange = serde_json::from_str(&self.by_old.payload)
            .map_err(|error| Refused::Unreadable(what, error.to_string()))?;
        let old: PublicKey = stated.old.parse().map_err(unreadable)?;
        let new: PublicKey = stated.new.parse().map_err(unreadable)?;
        let by_old: KeyChange = self.by_old.open(what, &old)?;
        let by_new: KeyChange = self.by_new.open(what, &new)?;
        if by_old == by_new { Ok((old, new)) } else { Err(Refused::Tampered(what)) }
    }
}

/// The keys that a reader who believes `key` may believe: `key` first, then those before and after it in `changes`, whatever
/// their order.
///
/// # Errors
/// A change that its two keys have not both signed.
pub fn keys_from(key: PublicKey, changes: &[SignedKeyChange]) -> Result<Vec<PublicKey>, Refused> {
    let changes = changes.iter().map(SignedKeyChange::open).collect::<Result<Vec<_>, _>>()?;
    let mut keys = vec![key];
    let mut known = 0;
    while known < keys.len() {
        known = keys.len();
        for (old, new) in &changes {
            for (from, to) in [(old, new), (new, old)] {
                if keys.contains(from) && !keys.contains(to) {
                    keys.push(*to);
                }
            }
        }
    }
    Ok(keys)
}
