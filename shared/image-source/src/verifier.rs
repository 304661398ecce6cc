//! Accepts the certificate of a mirror, or says in a sentence why not.

use crate::trust::{Signers, Trust, authorities};
use pinned_tls::Pin;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use std::sync::Arc;
use time::OffsetDateTime;

/// A TLS client, 1.2 and 1.3, that trusts these.
pub(crate) fn client_config(trust: Trust) -> Result<ClientConfig, String> {
    let problem = |problem: String| format!("the authorities for images: {problem}");
    let provider = Arc::new(ring::default_provider());
    let signed = match &trust.signers {
        Signers::Pem(pem) => {
            let roots = Arc::new(authorities(pem).map_err(problem)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
            Some(verifier.map_err(|error| problem(error.to_string()))?)
        }
        Signers::None | Signers::Any => None,
    };
    let verifier = Verifier { trust, signed, provider: provider.clone() };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("TLS: {error}"))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Why a handshake failed. `host` and `port` are those of the URL.
pub(crate) fn sentence(error: &Error, host: &str, port: u16) -> String {
    match error {
        // The only kind of error with a text of ours in it; rustls writes "unexpected error: " before it.
        Error::General(ours) => ours.clone(),
        Error::InvalidMessage(_) => format!("{host} does not speak TLS on port {port}"),
        error => format!("TLS with {host}: {error}"),
    }
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    /// For [`Signers::Pem`].
    signed: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (host, shown) = (server_name.to_str(), Pin::of_der(end_entity));
        if let Some(pins) = self.trust.pins.get(&host) {
            return match pins.contains(&shown) {
                true => Ok(ServerCertVerified::assertion()),
                false => Err(Error::General(format!(
                    "{host} has the certificate {shown}, which is not among those that [images.pins] has for it"
                ))),
            };
        }
        match (&self.signed, &self.trust.signers) {
            (Some(signed), _) => signed
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                .map_err(|error| Error::General(refused(&host, shown, &error, now))),
            (None, Signers::Any) => Ok(ServerCertVerified::assertion()),
            (None, _) => Err(Error::General(format!(
                "{host} has the certificate {shown}, and neither [images] ca_file nor [images.pins] says whether to trust it"
            ))),
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

/// Why a certificate is not accepted. A date is shown with the clock that judged it: that of a node may be wrong.
fn refused(host: &str, shown: Pin, error: &Error, now: UnixTime) -> String {
    let certificate = format!("the certificate of {host}");
    let clock = format!("the clock of this machine says {}", shown_time(now));
    let Error::InvalidCertificate(problem) = error else {
        return format!("{certificate} is refused: {error}");
    };
    match problem {
        // A bad signature: the authority has the name of one that is trusted, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!("{certificate} ({shown}) is not signed by an authority of [images] ca_file")
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("{certificate} expired at {}; {clock}", shown_time(*not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("{certificate} is not valid before {}; {clock}", shown_time(*not_before))
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("{certificate} ({shown}) is not for this name")
        }
        // webpki's CaUsedAsEndEntity, for example: `openssl req -x509` makes such certificates.
        CertificateError::Other(OtherError(why)) => {
            format!("{certificate} is refused ({why}); [images.pins] can accept it as {shown}")
        }
        other => format!("{certificate} is refused: {other:?}"),
    }
}

/// `2026-11-25 10:31:07 UTC`
fn shown_time(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).ok();
    match seconds.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok()) {
        Some(at) => format!("{} {:02}:{:02}:{:02} UTC", at.date(), at.hour(), at.minute(), at.second()),
        None => format!("{} s after 1970", time.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_refusal_says_which_certificate_and_why() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let said =
            |problem| refused("m.example", Pin::of_der(b"abc"), &Error::InvalidCertificate(problem), at(7));
        let expired = CertificateError::ExpiredContext { time: at(7), not_after: at(1_782_000_000) };
        assert_eq!(
            said(expired),
            "the certificate of m.example expired at 2026-06-21 00:00:00 UTC; the clock of this machine says \
             1970-01-01 00:00:07 UTC"
        );
        let early = CertificateError::NotValidYetContext { time: at(7), not_before: at(1_782_000_000) };
        assert!(
            said(early)
                .contains("is not valid before 2026-06-21 00:00:00 UTC; the clock of this machine says")
        );
        assert!(
            said(CertificateError::UnknownIssuer).contains("not signed by an authority of [images] ca_file")
        );
        assert!(said(CertificateError::NotValidForName).contains("is not for this name"));
        assert_eq!(shown_time(at(u64::MAX)), format!("{} s after 1970", u64::MAX));
    }
}
