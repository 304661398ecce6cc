//! What a controller with TLS needs: an address off loopback, where it serves no TLS, and a certificate.

use anyhow::Result;
use lab::net::Netns;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The controller's address, in a network namespace of its own.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// A network namespace in which [`ADDRESS`] is local. Needs root.
///
/// # Errors
/// When it cannot be made.
pub fn namespace() -> Result<Netns> {
    let netns = Netns::create(&format!("an-bench-{}", std::process::id()))?;
    netns.ip(&["address", "add", &format!("{ADDRESS}/32"), "dev", "lo"])?;
    Ok(netns)
}

/// A certificate for this address and for loopback, with its key, in files.
pub struct Identity {
    /// In PEM.
    pub certificate: PathBuf,
    /// In PEM.
    pub key: PathBuf,
    /// Of a client that believes this certificate, and makes a full handshake for each connection.
    pub client: Arc<ClientConfig>,
}

impl Identity {
    /// Makes one in this directory.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn make(dir: &Path) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), ADDRESS.to_string()])?;
        let (certificate, key) = (dir.join("api.pem"), dir.join("api.key"));
        std::fs::write(&certificate, made.cert.pem())?;
        std::fs::write(&key, made.signing_key.serialize_pem())?;
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone())?;
        let builder =
            ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let mut client = builder.with_root_certificates(roots).with_no_client_auth();
        client.resumption = Resumption::disabled();
        Ok(Self { certificate, key, client: Arc::new(client) })
    }
}

/// That of the controller.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
