//! The reply: a signed statement that a digest existed at a time.

use crate::root::Roots;
use crate::signature::{self, Signer};
use crate::{DIGEST, Refused};
use cms::cert::CertificateChoices;
use cms::cert::x509::Certificate;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
use der::asn1::{ObjectIdentifier, OctetString};
use der::{Decode, Encode};
use ring::digest::digest as hash;
use std::time::Duration;
use x509_tsp::{TimeStampResp, TstInfo};

const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const ID_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");

/// A digest existed at this time, by the clock of an authority that is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeStamp {
    /// Since 1970, UTC, in whole seconds.
    pub at: Duration,
}

fn unreadable(error: impl std::fmt::Display) -> Refused {
    Refused::Unreadable(error.to_string())
}

/// The time-stamp in the `reply` (`TimeStampResp` in DER), if it is one of this SHA-256 digest and an authority has signed it
/// whose certificate, valid at that time and meant for time-stamps, leads to one of `roots`.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn verify(reply: &[u8], digest: &[u8; DIGEST], roots: &Roots) -> Result<TimeStamp, Refused> {
    let reply = TimeStampResp::from_der(reply).map_err(unreadable)?;
    let status = reply.status.status as u8;
    if status > 1 {
        return Err(Refused::NotGranted(status));
    }
    let token = reply.time_stamp_token.ok_or(Refused::NotGranted(status))?;
    let signed = signed_data(&token)?;
    let content = content(&signed)?;
    let stated = TstInfo::from_der(&content).map_err(unreadable)?;
    let imprint = &stated.message_imprint;
    if imprint.hash_algorithm.oid != ID_SHA256 || imprint.hashed_message.as_bytes() != digest {
        return Err(Refused::AnotherDigest);
    }
    let [info] = signed.signer_infos.0.as_slice() else {
        return Err(Refused::Signature("there is not exactly one signature"));
    };
    let certificates = certificates(&signed)?;
    let signer = certificates
        .iter()
        .find(|certificate| is_named(info, certificate))
        .ok_or(Refused::Signature("the certificate is not in the reply"))?;
    let at = stated.gen_time.to_unix_duration();
    let der = signer.to_der().map_err(unreadable)?;
    let others = certificates.iter().filter(|other| *other != signer);
    let others = others.map(Encode::to_der).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let signer = Signer { certificate: &der, others: &others };
    signer.signed(info, &attributes(info, &content)?)?;
    signer.is_trusted(roots, at)?;
    Ok(TimeStamp { at })
}

fn signed_data(token: &ContentInfo) -> Result<SignedData, Refused> {
    if token.content_type != SIGNED_DATA {
        return Err(unreadable("its token is not signed data"));
    }
    let der = token.content.to_der().map_err(unreadable)?;
    SignedData::from_der(&der).map_err(unreadable)
}

/// What is signed: a `TSTInfo` in DER.
fn content(signed: &SignedData) -> Result<Vec<u8>, Refused> {
    let content = &signed.encap_content_info;
    let (TST_INFO, Some(inside)) = (content.econtent_type, &content.econtent) else {
        return Err(unreadable("its token contains no time-stamp"));
    };
    let inside: OctetString = inside.decode_as().map_err(unreadable)?;
    Ok(inside.into_bytes())
}

fn certificates(signed: &SignedData) -> Result<Vec<Certificate>, Refused> {
    let all = signed.certificates.iter().flat_map(|set| set.0.iter());
    all.map(|choice| match choice {
        CertificateChoices::Certificate(certificate) => Ok(certificate.clone()),
        CertificateChoices::Other(_) => Err(unreadable("it contains a certificate that is none of X.509")),
    })
    .collect()
}

/// Whether it is the certificate that the signature names.
fn is_named(info: &SignerInfo, certificate: &Certificate) -> bool {
    match &info.sid {
        SignerIdentifier::IssuerAndSerialNumber(name) => {
            let own = &certificate.tbs_certificate;
            name.issuer == own.issuer && name.serial_number == own.serial_number
        }
        SignerIdentifier::SubjectKeyIdentifier(_) => false,
    }
}

/// The signed attributes in DER, if they say that `content` is what is signed.
fn attributes(info: &SignerInfo, content: &[u8]) -> Result<Vec<u8>, Refused> {
    let missing = Refused::Signature("its signed attributes are missing");
    let attributes = info.signed_attrs.as_ref().ok_or(missing)?;
    let value = |oid: ObjectIdentifier| {
        let mut found = attributes.iter().filter(|attribute| attribute.oid == oid);
        match (found.next(), found.next()) {
            (Some(attribute), None) if attribute.values.len() == 1 => attribute.values.get(0).cloned(),
            _ => None,
        }
    };
    let kind = value(CONTENT_TYPE).and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
    if kind != Some(TST_INFO) {
        return Err(Refused::Signature("it is a signature of something that is no time-stamp"));
    }
    let stated = value(MESSAGE_DIGEST).and_then(|any| any.decode_as::<OctetString>().ok());
    let algorithm = signature::digest_algorithm(&info.digest_alg.oid)
        .ok_or(Refused::Signature("its digest algorithm is not known"))?;
    let found = hash(algorithm, content);
    if stated.as_ref().map(OctetString::as_bytes) != Some(found.as_ref()) {
        return Err(Refused::Signature("its content was changed"));
    }
    attributes.to_der().map_err(unreadable)
}
