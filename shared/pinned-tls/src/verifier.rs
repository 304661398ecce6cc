//! Accepts a server certificate by its pin. Issuer, names, validity and revocation are not looked at, on purpose: see the
//! head of the crate.

use crate::{Accept, Pin};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// Decides on the certificate of one kind of peer.
#[derive(Debug)]
pub struct Verifier {
    /// What errors call the peer: `the agent`.
    peer: &'static str,
    accept: Accept,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    pub fn new(peer: &'static str, accept: Accept, provider: Arc<CryptoProvider>) -> Self {
        Self { peer, accept, provider }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (peer, shown) = (self.peer, Pin::of_der(end_entity));
        // `General` is the only kind of error with a text of ours in it; rustls writes "unexpected error: " before it.
        match &self.accept {
            Accept::Only(pinned) if *pinned == shown => Ok(ServerCertVerified::assertion()),
            Accept::OneOf(pinned) if pinned.contains(&shown) => Ok(ServerCertVerified::assertion()),
            Accept::OneOf(pinned) => Err(Error::General(format!(
                "{peer} presented certificate {shown}, which is none of the {} that are pinned",
                pinned.len()
            ))),
            Accept::Only(pinned) => {
                Err(Error::General(format!("{peer} presented certificate {shown}, but {pinned} is pinned")))
            }
            Accept::None => {
                Err(Error::General(format!("{peer} presented certificate {shown}, but none is pinned")))
            }
            Accept::Any => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
