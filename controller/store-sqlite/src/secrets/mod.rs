//! Secrets in the documents of nodes and resources are stored encrypted, with a key that is not in the database.
//!
//! ```text
//!   write: doc ─▶ seal_secrets(table, row, doc) ─▶ file        read: file ─▶ open_secrets(table, row, doc) ─▶ doc
//! ```
//!
//! Both are functions that SQL statements call; every connection of the store has them. What is a secret is decided by
//! the name of the member, with the list that also decides what the API masks (`model::mask`).

mod document;
mod encryption;
mod functions;
mod key;

pub use functions::add_to;
pub use key::DatabaseKey;
/// A key that tests share.
#[cfg(test)]
pub fn test_key() -> DatabaseKey {
    DatabaseKey::from_text(&"07".repeat(32)).expect("a key")
}

pub use encryption::{RemovedSecrets, are_encrypted, forget, prepare};
