//! Whom to trust: a pinned certificate, a CA file, the system's CAs, or (asked for) anybody.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// SHA-256 of the DER of the only certificate that is accepted; written `sha256:<64 hex digits>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; 32]);

impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hex = text.strip_prefix("sha256:").ok_or("a pin is written sha256:<64 hex digits>")?;
        if hex.len() != 64 || !hex.is_ascii() {
            return Err(format!("a SHA-256 pin has 64 hex digits, this one has {}", hex.chars().count()));
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|error| error.to_string())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| format!("{pair:?} is not hexadecimal"))?;
        }
        Ok(Self(bytes))
    }
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut hex = String::with_capacity(64);
        for byte in self.0 {
            write!(hex, "{byte:02x}")?;
        }
        write!(f, "sha256:{hex}")
    }
}

/// What the certificate of the controller is checked against.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The CAs of the system.
    System,
    /// The certificates of a PEM file.
    Authority(RootCertStore),
    /// One certificate, whatever its name, dates and issuer.
    Pinned(Pin),
    /// Nobody checks.
    Anybody,
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
        let provider = Arc::new(ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let pin = match self {
            Self::System => return Ok(None),
            Self::Authority(roots) => {
                return Ok(Some(builder.with_root_certificates(roots).with_no_client_auth()));
            }
            Self::Pinned(pin) => Some(pin),
            Self::Anybody => None,
        };
        let verifier = Arc::new(ByPin { pin, provider });
        Ok(Some(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
    }
}

/// Accepts the pinned certificate, or any when there is no pin. The peer must still prove that it holds
/// the key of the certificate it shows.
#[derive(Debug)]
struct ByPin {
    pin: Option<Pin>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ByPin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = Pin(Sha256::digest(end_entity.as_ref()).into());
        match self.pin {
            Some(pinned) if pinned != shown => {
                // `General` is the one kind whose text rustls shows to people as it is.
                Err(Error::General(format!(
                    "the controller shows the certificate {shown}, pinned is {pinned}"
                )))
            }
            _ => Ok(ServerCertVerified::assertion()),
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

#[cfg(test)]
mod tests {
    use super::Pin;

    #[test]
    fn pins_are_read_and_written() {
        let text = format!("sha256:{}", "0aF1".repeat(16));
        assert_eq!(text.parse::<Pin>().unwrap().to_string(), text.to_lowercase());
        for bad in ["", "sha256:", "md5:00", &"a".repeat(64), &format!("sha256:{}", "zz".repeat(32))] {
            assert!(bad.parse::<Pin>().is_err(), "{bad}");
        }
    }
}
