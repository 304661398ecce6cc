//! Secrets in the documents of nodes and resources are stored encrypted, with a key that is not in the database. What is a
//! secret is decided by the name of the member, with the list that also decides what the API masks (`model::mask`).
//!
//! ```text
//!   write: document ─▶ sealed(key of the row) ─▶ database        read: database ─▶ opened(key of the row) ─▶ document
//! ```

mod document;
mod key;

pub use document::{has_mark, opened, sealed, without_secrets};
pub use key::{DatabaseKey, DecryptionError, RowKey};

/// Secrets that were removed from a database whose key is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedSecrets {
    /// Name of the node, or its UUID; `volume_target UUID` of a resource.
    pub of: String,
    /// Names of the members.
    pub names: Vec<String>,
}

/// Row of the key that the check value of a database is encrypted for.
const CHECK: &str = "check";
/// What the check value is, decrypted.
const KNOWN: &[u8] = b"anneal";

impl DatabaseKey {
    /// A known text, encrypted: a database keeps it, and only the right key decrypts it. `None` if the operating system has no
    /// random numbers.
    pub fn check_value(&self) -> Option<String> {
        self.of_row("secret_key", CHECK)?.seal(KNOWN)
    }

    /// Whether this key made the check value.
    pub fn made(&self, check_value: &str) -> bool {
        self.of_row("secret_key", CHECK).is_some_and(|key| key.open(check_value).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_value_is_of_one_key() {
        let (key, other) = (DatabaseKey::generate().unwrap(), DatabaseKey::generate().unwrap());
        let check = key.check_value().unwrap();
        assert!(key.made(&check) && !other.made(&check) && !key.made("") && !key.made("anneal"));
    }
}
