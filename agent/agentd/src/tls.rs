//! TLS on both sides: the agent's own certificate, and whom the agent trusts.
//!
//! The agent's certificate travels to the controller in the heartbeat; the controller's is known by its
//! fingerprint, given with the boot script.

use pinned_tls::{Accept, Pin, client_config};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use time::{Duration, OffsetDateTime};
use tpm::Digest;

/// Clocks of machines that were off for long run behind.
const BACKDATE: Duration = Duration::hours(1);
/// As long as ironic-python-agent's.
const VALID: Duration = Duration::days(90);

/// Which controller certificate is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those with these fingerprints, one for each controller, and no other. Names and dates do not matter.
    Pins(Vec<Pin>),
    /// What these authorities (PEM file) signed for the name in the URL.
    CaFile(PathBuf),
    /// Any. The operator asked for it.
    Insecure,
}

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The agent's certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// rustls refused the configuration.
    #[error("cannot set up TLS")]
    Setup(#[from] rustls::Error),
    /// The CA file.
    #[error("CA file {path:?}: {problem}")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// The agent's certificate and the server side made of it.
pub struct OwnCertificate {
    /// Goes into heartbeats as `agent_verify_ca`.
    pub pem: String,
    /// SHA-256 of the certificate (DER).
    pub digest: Digest,
    /// Serves it.
    pub server: Arc<ServerConfig>,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Make a key (P-256) and a self-signed certificate for `address`, valid from an hour ago.
pub fn own_certificate(address: IpAddr, hostname: &str) -> Result<OwnCertificate, TlsError> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::default();
    let now = OffsetDateTime::now_utc();
    params.not_before = now - BACKDATE;
    params.not_after = now + VALID;
    params.subject_alt_names = vec![SanType::IpAddress(address)];
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, hostname);
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|problem| rustls::Error::General(problem.to_owned()))?;
    let mut server = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    let digest = Digest::of(certificate.der());
    Ok(OwnCertificate { pem: certificate.pem(), digest, server: Arc::new(server) })
}

/// The client side with this trust. Without trust (plain HTTP only) any TLS is refused.
pub fn client(trust: Option<&Trust>) -> Result<ClientConfig, TlsError> {
    let accept = match trust {
        Some(Trust::Pins(pins)) => match pins.as_slice() {
            [pin] => Accept::Only(*pin),
            _ => Accept::OneOf(pins.clone()),
        },
        Some(Trust::Insecure) => Accept::Any,
        None => Accept::None,
        Some(Trust::CaFile(path)) => return signed_by(path),
    };
    Ok(client_config("the controller", accept)?)
}

fn signed_by(path: &Path) -> Result<ClientConfig, TlsError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(roots(path)?.into(), provider())
        .build()
        .map_err(|error| TlsError::CaFile { path: path.to_owned(), problem: error.to_string() })?;
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let problem = |problem: String| TlsError::CaFile { path: path.to_owned(), problem };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| problem(error.to_string()))? {
        let certificate = certificate.map_err(|error| problem(error.to_string()))?;
        roots.add(certificate).map_err(|error| problem(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(problem("no certificate in it".into()));
    }
    Ok(roots)
}
