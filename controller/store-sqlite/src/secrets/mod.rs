//! Secrets in the documents of nodes and resources are stored encrypted, with a key that is not in the database.
//!
//! ```text
//!   write: doc ─▶ seal_secrets(table, row, doc) ─▶ file        read: file ─▶ open_secrets(table, row, doc) ─▶ doc
//! ```
//!
//! Both are functions that SQL statements call; every connection of the store has them. What is a secret, and its encryption, is in
//! `stored-secrets`, as for every store.

mod encryption;
mod functions;

pub use functions::add_to;
/// A key that tests share.
#[cfg(test)]
pub fn test_key() -> stored_secrets::DatabaseKey {
    stored_secrets::DatabaseKey::from_text(&"07".repeat(32)).expect("a key")
}

pub use encryption::{are_encrypted, forget, prepare};
