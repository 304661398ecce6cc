//! Which certificates a client accepts.

use crate::Pin;

/// Which certificate of the peer is accepted. In all cases the peer must prove that it holds the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Accept {
    /// The certificate with this fingerprint; its names, dates and issuer are not checked.
    Only(Pin),
    /// Any certificate with one of these fingerprints, as [`Accept::Only`]: controllers that stand in for each other.
    OneOf(Vec<Pin>),
    /// No certificate: for a peer that should have announced its own and did not.
    None,
    /// Any certificate, because the operator asked for it: a man in the middle can read and change everything.
    Any,
}
