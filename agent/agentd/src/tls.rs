//! TLS on both sides: the agent's own certificate, and whom the agent trusts.
//!
//! Certificates here are self-signed and carry no chain to judge. The agent's travels to the
//! controller in the heartbeat; the controller's is known by its fingerprint, given with the boot
//! script. webpki would refuse such a certificate as a leaf, hence verifiers of our own.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use time::{Duration, OffsetDateTime};

/// Clocks of machines that were off for long run behind.
const BACKDATE: Duration = Duration::hours(1);
/// As long as ironic-python-agent's.
const VALID: Duration = Duration::days(90);

/// Which controller certificate is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// The one whose DER has this SHA-256, and no other. Names and dates do not matter.
    Pin([u8; 32]),
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
    Ok(OwnCertificate { pem: certificate.pem(), server: Arc::new(server) })
}

/// The client side that trusts as told. Without trust (plain HTTP only) any TLS is refused.
pub fn client(trust: Option<&Trust>) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let fingerprint = |pin| Arc::new(Fingerprint { pin, provider: provider() });
    let config = match trust {
        Some(Trust::Pin(pin)) => {
            builder.dangerous().with_custom_certificate_verifier(fingerprint(Some(*pin)))
        }
        Some(Trust::Insecure) => builder.dangerous().with_custom_certificate_verifier(fingerprint(None)),
        Some(Trust::CaFile(path)) => {
            let verifier = WebPkiServerVerifier::builder_with_provider(roots(path)?.into(), provider())
                .build()
                .map_err(|error| TlsError::CaFile { path: path.clone(), problem: error.to_string() })?;
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(config.with_no_client_auth())
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

/// Accepts the certificate with one fingerprint, or any when there is none to compare with.
/// Possession of the key is proven by the handshake's signature in both cases.
#[derive(Debug)]
struct Fingerprint {
    pin: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Fingerprint {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(pin) = self.pin else { return Ok(ServerCertVerified::assertion()) };
        let seen: [u8; 32] = Sha256::digest(end_entity).into();
        if bool::from(seen.ct_eq(&pin)) {
            return Ok(ServerCertVerified::assertion());
        }
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Err(rustls::Error::General(format!(
            "the controller's certificate is sha256:{}, not the pinned sha256:{}",
            hex(&seen),
            hex(&pin)
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
