//! The authorities that are trusted.

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor};

/// Certificates of authorities that are trusted.
pub struct Roots(Vec<TrustAnchor<'static>>);

/// Why a file is none with certificates of authorities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no certificates in PEM form: {0}")]
pub struct RootsError(String);

impl Roots {
    /// The certificates of a file in PEM form.
    ///
    /// # Errors
    /// There is none in it, or one that cannot be read.
    pub fn from_pem(pem: &[u8]) -> Result<Self, RootsError> {
        let failed = |why: &dyn std::fmt::Debug| RootsError(format!("{why:?}"));
        let mut anchors = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| failed(&error))?;
            let anchor = webpki::anchor_from_trusted_cert(&certificate).map_err(|error| failed(&error))?;
            anchors.push(anchor.to_owned());
        }
        if anchors.is_empty() { Err(RootsError("there is none".to_owned())) } else { Ok(Self(anchors)) }
    }

    /// The certificates.
    pub(crate) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.0
    }
}
