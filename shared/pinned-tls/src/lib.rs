//! TLS clients that trust exactly one certificate, for peers without a certificate authority.
//!
//! Agents and controllers sign their certificates themselves. The controller's is known to an agent and to an
//! operator by its fingerprint; the agent's comes with its heartbeat. webpki rejects such a certificate
//! as a leaf. Its names and dates are not checked: the clock of a machine that was off for long may be wrong.

mod accept;
mod causes;
mod pin;
mod verifier;

pub use accept::Accept;
pub use causes::chain;
pub use pin::{BadPin, Pin};

use rustls::ClientConfig;
use rustls::crypto::ring;
use std::sync::Arc;
use verifier::Verifier;

/// TLS 1.2 and 1.3 without a client certificate, towards a peer that errors call `peer` (`the agent`).
///
/// # Errors
/// When rustls refuses its own defaults.
pub fn client_config(peer: &'static str, accept: Accept) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(peer, accept, provider.clone());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}
