//! The signature of a reply, and the way from its certificate to an authority that is trusted.

use crate::Refused;
use crate::root::Roots;
use cms::signed_data::SignerInfo;
use der::asn1::ObjectIdentifier;
use ring::digest::{Algorithm, SHA256, SHA384, SHA512};
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use std::time::Duration;
use webpki::ring::{
    ECDSA_P256_SHA256, ECDSA_P256_SHA384, ECDSA_P384_SHA256, ECDSA_P384_SHA384, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};

/// The certificate that has signed, and those that came with it; in DER.
pub(crate) struct Signer<'a> {
    pub(crate) certificate: &'a [u8],
    pub(crate) others: &'a [Vec<u8>],
}

/// The value of `id-kp-timeStamping`, 1.3.6.1.5.5.7.3.8.
const TIME_STAMPING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];

const ID_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const ID_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const ID_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");

/// The digest algorithm with this id; none that is weaker than SHA-256.
pub(crate) fn digest_algorithm(oid: &ObjectIdentifier) -> Option<&'static Algorithm> {
    match *oid {
        ID_SHA256 => Some(&SHA256),
        ID_SHA384 => Some(&SHA384),
        ID_SHA512 => Some(&SHA512),
        _ => None,
    }
}

/// Algorithms of signatures over this digest.
fn algorithms(oid: &ObjectIdentifier) -> Vec<&'static dyn SignatureVerificationAlgorithm> {
    match *oid {
        ID_SHA256 => vec![RSA_PKCS1_2048_8192_SHA256, ECDSA_P256_SHA256, ECDSA_P384_SHA256],
        ID_SHA384 => vec![RSA_PKCS1_2048_8192_SHA384, ECDSA_P256_SHA384, ECDSA_P384_SHA384],
        ID_SHA512 => vec![RSA_PKCS1_2048_8192_SHA512],
        _ => Vec::new(),
    }
}

impl Signer<'_> {
    /// That it has signed these attributes.
    pub(crate) fn signed(&self, info: &SignerInfo, attributes: &[u8]) -> Result<(), Refused> {
        let der = CertificateDer::from(self.certificate);
        let certificate = EndEntityCert::try_from(&der).map_err(|_| Refused::Signature("no certificate"))?;
        let signature = info.signature.as_bytes();
        let holds = |algorithm: &&dyn SignatureVerificationAlgorithm| {
            certificate.verify_signature(*algorithm, attributes, signature).is_ok()
        };
        if algorithms(&info.digest_alg.oid).iter().any(holds) {
            Ok(())
        } else {
            Err(Refused::Signature("the signature does not hold"))
        }
    }

    /// That its certificate, valid at this time and meant for time-stamps, leads to one of `roots`.
    pub(crate) fn is_trusted(&self, roots: &Roots, at: Duration) -> Result<(), Refused> {
        let untrusted = |error: webpki::Error| Refused::Untrusted(format!("{error:?}"));
        let der = CertificateDer::from(self.certificate);
        let certificate = EndEntityCert::try_from(&der).map_err(untrusted)?;
        let others: Vec<_> = self.others.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
        let usage = KeyUsage::required(TIME_STAMPING);
        let at = UnixTime::since_unix_epoch(at);
        certificate
            .verify_for_usage(ALL_VERIFICATION_ALGS, roots.anchors(), &others, at, usage, None, None)
            .map(drop)
            .map_err(untrusted)
    }
}
