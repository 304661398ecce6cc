//! The key, and what it does to one value.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;

/// Begins every encrypted value; the rest is base64 of nonce, ciphertext and tag.
pub const MARK: &str = "sealed:v1:";
/// Separates these keys from others that could be derived of the same bytes.
const SALT: &[u8] = b"anneal-controller database secrets 1";

/// Bytes of the key.
const LENGTH: usize = 32;

/// The key that encrypts the secrets of a database. Each row is encrypted with a key of its own, derived from this one:
/// random nonces are then good for 2^32 writes of each row.
#[derive(Clone)]
pub struct DatabaseKey(Prk, [u8; LENGTH]);

impl fmt::Debug for DatabaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseKey")
    }
}

/// Why a value cannot be decrypted: the key is another one, or the value was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret cannot be decrypted: it was changed, or encrypted with another key")]
pub struct DecryptionError;

impl DatabaseKey {
    /// A new random key; `None` if the operating system has no random numbers.
    pub fn generate() -> Option<Self> {
        let mut bytes = [0; LENGTH];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self::of(bytes))
    }

    fn of(bytes: [u8; LENGTH]) -> Self {
        Self(Salt::new(HKDF_SHA256, SALT).extract(&bytes), bytes)
    }

    /// The key in a text that [`DatabaseKey::to_text`] made; `None` for any other.
    pub fn from_text(text: &str) -> Option<Self> {
        let digits = text.trim_end();
        if digits.len() != 2 * LENGTH || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; LENGTH];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
        }
        Some(Self::of(bytes))
    }

    /// 64 hexadecimal digits.
    pub fn to_text(&self) -> String {
        self.1.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The key of one row of a table. Nothing that it encrypts can be read in the place of another row.
    pub fn of_row(&self, table: &str, row: &str) -> Option<RowKey> {
        let info = [table.as_bytes(), b"\0", row.as_bytes()];
        let derived = self.0.expand(&info, &AES_256_GCM).ok()?;
        Some(RowKey(LessSafeKey::new(UnboundKey::from(derived))))
    }
}

/// The key of one row.
pub struct RowKey(LessSafeKey);

impl RowKey {
    /// A value, encrypted; `None` if the operating system has no random numbers.
    pub fn seal(&self, plain: &[u8]) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut bytes = plain.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(unique, Aad::empty(), &mut bytes).ok()?;
        Some(format!("{MARK}{}", STANDARD_NO_PAD.encode([&nonce[..], &bytes].concat())))
    }

    /// The value that was encrypted.
    pub fn open(&self, sealed: &str) -> Result<Vec<u8>, DecryptionError> {
        let text = sealed.strip_prefix(MARK).ok_or(DecryptionError)?;
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| DecryptionError)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN).ok_or(DecryptionError)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| DecryptionError)?;
        let mut sealed = sealed.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::empty(), &mut sealed).map_err(|_| DecryptionError)?;
        Ok(plain.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_with_its_key_in_its_row_and_nowhere_else() {
        let key = DatabaseKey::generate().unwrap();
        let row = key.of_row("node", "a").unwrap();
        let sealed = row.seal(b"hunter2").unwrap();
        assert_ne!(row.seal(b"hunter2").unwrap(), sealed, "equal values look different");
        let same = DatabaseKey::from_text(&format!("{}\n", key.to_text())).unwrap();
        assert_eq!(same.of_row("node", "a").unwrap().open(&sealed).unwrap(), b"hunter2");
        let others = [
            DatabaseKey::generate().unwrap().of_row("node", "a"),
            key.of_row("node", "b"),
            key.of_row("resource", "a"),
        ];
        assert!(others.into_iter().flatten().all(|other| other.open(&sealed) == Err(DecryptionError)));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(row.open(std::str::from_utf8(&changed).unwrap()).is_err(), "byte {at}");
            assert!(row.open(&sealed[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn only_a_whole_key_is_a_key() {
        let text = DatabaseKey::generate().unwrap().to_text();
        for bad in ["", &text[1..], &format!("{text}0"), &text.replace(&text[..1], "g")] {
            assert!(DatabaseKey::from_text(bad).is_none(), "{bad}");
        }
        assert_eq!(format!("{:?}", DatabaseKey::generate().unwrap()), "DatabaseKey");
    }
}
