//! The certificate that an agent makes for itself, as the real one does: P-256, for its address.

use anyhow::Result;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// What serves a fresh certificate, and its PEM for the heartbeat.
///
/// # Errors
/// When it cannot be made.
pub fn own() -> Result<(Arc<ServerConfig>, String)> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    Ok((Arc::new(config), certificate.pem()))
}
