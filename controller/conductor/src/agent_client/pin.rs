//! Trust in exactly one certificate: the one the agent sent with its first, token-checked heartbeat.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// TLS that accepts the first certificate in `pem` and nothing else.
pub fn only(pem: &str) -> Result<ClientConfig, String> {
    let pinned = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| format!("the certificate the agent sent cannot be read: {error:?}"))?;
    Ok(config(Some(pinned.into_owned())))
}

/// TLS that accepts nobody: for an agent that sent no certificate.
pub fn nobody() -> ClientConfig {
    config(None)
}

fn config(pinned: Option<CertificateDer<'static>>) -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Pinned { pinned, provider: provider.clone() });
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|error| unreachable!("ring supports the default versions: {error}"))
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth()
}

#[derive(Debug)]
struct Pinned {
    pinned: Option<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // No clock here: an agent's clock may be wrong, its key may not.
        match &self.pinned {
            Some(pinned) if pinned.as_ref() == end_entity.as_ref() => Ok(ServerCertVerified::assertion()),
            Some(_) => {
                Err(Error::General("the certificate is not the one the agent's heartbeat pinned".into()))
            }
            None => Err(Error::General("the agent sent no certificate to pin".into())),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(pinned: Option<&'static [u8]>, shown: &'static [u8]) -> Result<(), String> {
        let pinned = pinned.map(CertificateDer::from);
        let verifier = Pinned { pinned, provider: Arc::new(ring::default_provider()) };
        let name = ServerName::try_from("192.0.2.1").unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::ZERO);
        let verdict = verifier.verify_server_cert(&CertificateDer::from(shown), &[], &name, &[], now);
        verdict.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_certificate_of_the_heartbeat_is_the_agents() {
        assert_eq!(judge(Some(b"agent"), b"agent"), Ok(()));
        for shown in [&b"other"[..], b"agen", b"agent ", b""] {
            assert!(judge(Some(b"agent"), shown).unwrap_err().contains("not the one"), "{shown:?}");
        }
        assert!(judge(None, b"agent").unwrap_err().contains("no certificate"));
        assert!(only("no PEM").is_err());
    }
}
