//! Which certificates to trust: a pinned one, those of a CA file, of the system's CAs, or (if asked for) any.

use pinned_tls::{Accept, Pin, client_config};
use rustls::crypto::ring;
use rustls::{ClientConfig, Error, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::Path;
use std::sync::Arc;

/// What the certificate of the controller is checked against.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The CAs of the system.
    System,
    /// The certificates of a PEM file.
    Authority(RootCertStore),
    /// One certificate, whatever its name, dates and issuer.
    Pinned(Pin),
    /// Any certificate: it is not checked.
    Any,
}

impl Trust {
    /// The CAs in the PEM file `path`; a sentence if there are none.
    pub fn authority(path: &Path) -> Result<Self, String> {
        let named = |error: String| format!("--cacert {}: {error}", path.display());
        let mut roots = RootCertStore::empty();
        let found = CertificateDer::pem_file_iter(path).map_err(|error| named(error.to_string()))?;
        for certificate in found {
            let certificate = certificate.map_err(|error| named(error.to_string()))?;
            roots.add(certificate).map_err(|error| named(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(named("no certificate in it".to_owned()));
        }
        Ok(Self::Authority(roots))
    }

    /// The rustls configuration, or `None` where the system's own is to be used.
    pub fn client_config(self) -> Result<Option<ClientConfig>, Error> {
        let pinned = |accept| client_config("the controller", accept).map(Some);
        match self {
            Self::System => Ok(None),
            Self::Pinned(pin) => pinned(Accept::Only(pin)),
            Self::Any => pinned(Accept::Any),
            Self::Authority(roots) => {
                let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
                let builder = builder.with_safe_default_protocol_versions()?;
                Ok(Some(builder.with_root_certificates(roots).with_no_client_auth()))
            }
        }
    }
}
