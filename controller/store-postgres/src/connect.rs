//! Connections: with TLS or without, one by one or in a pool.

use crate::address::{Address, Settings, Trust};
use crate::open_error::OpenError;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The authorities of the system.
const SYSTEM: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A way to connect.
#[derive(Clone)]
pub enum Tls {
    /// Without TLS.
    Plain,
    /// With TLS.
    Verified(MakeRustlsConnect),
}

impl Tls {
    /// For an address.
    pub fn of(trust: &Trust) -> Result<Self, OpenError> {
        match trust {
            Trust::Plain => Ok(Self::Plain),
            Trust::Certificate(path) => {
                let path = path.clone().unwrap_or_else(|| PathBuf::from(SYSTEM));
                let config = client(&path).map_err(|source| OpenError::Authorities { path, source })?;
                Ok(Self::Verified(MakeRustlsConnect::new(config)))
            }
        }
    }
}

fn client(authorities: &Path) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let text = std::fs::read(authorities)?;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(io::Error::other)?;
        // The system's file may hold one that is too old to be used.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it has no certificate that can be used"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth())
}

/// A pool of at most `size` connections, which are made when they are needed. One that is gone is replaced.
pub fn pool(address: &Address, tls: &Tls, settings: &Settings, size: usize) -> Result<Pool, OpenError> {
    let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match tls {
        Tls::Plain => Manager::from_config(address.config.clone(), NoTls, config),
        Tls::Verified(tls) => Manager::from_config(address.config.clone(), tls.clone(), config),
    };
    let limit = Some(address.limit);
    let pool = Pool::builder(manager)
        .max_size(size)
        // A connection in use comes back when its statement ends.
        .wait_timeout(Some(settings.statement_timeout))
        .create_timeout(limit)
        .recycle_timeout(limit)
        .runtime(Runtime::Tokio1)
        .build();
    pool.map_err(|error| OpenError::Unfit { name: address.name.clone(), why: error.to_string() })
}
