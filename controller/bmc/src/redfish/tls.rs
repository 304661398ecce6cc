//! How the certificate of a Redfish service is judged.

use std::path::Path;
use std::sync::Arc;

use reqwest::ClientBuilder;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::config::Verify;
use crate::small_file;

/// Puts the judgement asked for into an HTTP client; reads files, so it blocks. `Err` is why the file is of no use.
pub(super) fn judge_by(builder: ClientBuilder, verify: &Verify) -> Result<ClientBuilder, String> {
    // reqwest asks for the provider of the process. Already set (by the binary) is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match verify {
        Verify::System => Ok(builder),
        Verify::Nothing => Ok(builder.tls_danger_accept_invalid_certs(true)),
        Verify::File(path) => Ok(builder.tls_backend_preconfigured(trusting(path)?)),
    }
}

fn trusting(path: &Path) -> Result<ClientConfig, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fault =
        |why: String| format!("redfish_verify_ca '{name}' in the directory of bmc.ca_directory: {why}");
    let pem = small_file::read(path).map_err(|why| fault(why.to_owned()))?;
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        // The reason would quote the file.
        .map_err(|_| fault("it is not PEM".to_owned()))?;
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(certificates.iter().cloned());
    if usable == 0 {
        return Err(fault("it contains no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| fault(error.to_string()))?;
    let verifier = FromFile { certificates, inner, provider: provider.clone() };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// Accepts a certificate that is itself in the file, or that one in the file has signed.
///
/// BMCs come with self-signed certificates that are marked as CA and carry another name; webpki refuses
/// those as a server's (`CaUsedAsEndEntity`) even if the operator has given exactly this certificate.
#[derive(Debug)]
struct FromFile {
    certificates: Vec<CertificateDer<'static>>,
    inner: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for FromFile {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.certificates.iter().any(|known| known.as_ref() == end_entity.as_ref()) {
            return Ok(ServerCertVerified::assertion());
        }
        self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
