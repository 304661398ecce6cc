//! Verifies a certificate with the controller's public key alone.

use crate::{Certificate, Document, Evidence, Finding, PublicKey, Refused, Signed};
use agent_protocol::record::Outcome;

/// The subject that a certificate must have; unset fields accept any.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// UUID of the node.
    pub node: Option<&'a str>,
    /// Serial number or WWN of a disk, which must have been erased; with `image`, it must be the one that was written.
    pub disk: Option<&'a str>,
    /// Digest of the image, as downloaded or as written, that must have been written.
    pub image: Option<&'a str>,
    /// The file of the certificate before it.
    pub previous: Option<&'a str>,
}

/// A certificate that is to be believed.
#[derive(Debug, Clone)]
pub struct Verified {
    /// Its digest: its name.
    pub id: String,
    /// The certificate.
    pub certificate: Certificate,
    /// The evidence in it.
    pub evidence: Evidence,
}

/// As [`verify_with_any`], with one key.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn verify(text: &str, key: &PublicKey, wanted: &Wanted) -> Result<Verified, Refused> {
    verify_with_any(text, std::slice::from_ref(key), wanted)
}

/// The certificate in the file `text`, if a controller with one of these keys has signed it, it is whole, it is of what was
/// wanted, and claims no more than its evidence shows.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn verify_with_any(text: &str, keys: &[PublicKey], wanted: &Wanted) -> Result<Verified, Refused> {
    let verified = one(Document::Certificate, text, keys)?;
    let found = &verified.certificate.node.uuid;
    if let Some(node) = wanted.node.filter(|node| !node.eq_ignore_ascii_case(found)) {
        return Err(Refused::AnotherNode { found: found.clone(), wanted: node.to_owned() });
    }
    match (wanted.image, wanted.disk) {
        (Some(image), disk) => check_deployment(&verified.evidence, disk, image)?,
        (None, Some(disk)) => check_disk(&verified.evidence, disk)?,
        (None, None) => {}
    }
    if let Some(text) = wanted.previous {
        follows(&verified, &one(Document::Previous, text, keys)?)?;
    }
    Ok(verified)
}

/// All that one file shows by itself.
pub(crate) fn one(what: Document, text: &str, keys: &[PublicKey]) -> Result<Verified, Refused> {
    let signed = Signed::read(what, text)?;
    let certificate: Certificate = signed.open_with_any(what, keys)?;
    let evidence_key: PublicKey = certificate
        .evidence_key
        .parse()
        .map_err(|error: crate::KeyError| Refused::Unreadable(what, error.to_string()))?;
    let evidence: Evidence = certificate.evidence.open(Document::Evidence, &evidence_key)?;
    if evidence.node != certificate.node.uuid {
        return Err(Refused::AnotherNode { found: evidence.node, wanted: certificate.node.uuid });
    }
    evidence.check_claims()?;
    let found = Finding::of(&evidence);
    if certificate.finding != found {
        return Err(Refused::Contradiction { stated: certificate.finding.as_str(), found: found.as_str() });
    }
    if certificate.disk_before.is_some() != evidence.deployed.is_some() {
        let text = "disk_before is of deployments, and of each".to_owned();
        return Err(Refused::Unreadable(what, text));
    }
    if (certificate.number == 1) != certificate.previous.is_none() || certificate.number == 0 {
        let text = format!("number {} and previous {:?}", certificate.number, certificate.previous);
        return Err(Refused::BrokenChain(text));
    }
    Ok(Verified { id: signed.digest(), certificate, evidence })
}

/// The evidence in the file of a certificate, as a store keeps it: no signature is verified.
///
/// # Errors
/// [`Refused::Unreadable`].
pub fn evidence_in(text: &str) -> Result<Evidence, Refused> {
    let signed = Signed::read(Document::Certificate, text)?;
    let read = |what: Document, error: serde_json::Error| Refused::Unreadable(what, error.to_string());
    let certificate: Certificate =
        serde_json::from_str(&signed.payload).map_err(|error| read(Document::Certificate, error))?;
    serde_json::from_str(&certificate.evidence.payload).map_err(|error| read(Document::Evidence, error))
}

fn check_disk(evidence: &Evidence, wanted: &str) -> Result<(), Refused> {
    if evidence.deployed.as_ref().is_some_and(|deployed| deployed.is_called(wanted)) {
        return Err(Refused::NotErased { disk: wanted.to_owned(), outcome: "deployed".to_owned() });
    }
    let is = |name: &Option<String>| name.as_deref() == Some(wanted);
    let mut disks = evidence.disks.iter().filter(|disk| is(&disk.serial) || is(&disk.wwn)).peekable();
    if disks.peek().is_none() {
        return Err(Refused::AnotherDisk(wanted.to_owned()));
    }
    // Two disks have this name, so the one that is meant is ambiguous.
    match disks.find(|disk| disk.outcome != Outcome::Erased) {
        None => Ok(()),
        Some(disk) => {
            let outcome = match disk.outcome {
                Outcome::Erased => "erased",
                Outcome::MetadataErased => "metadata_erased",
                Outcome::Skipped => "skipped",
                Outcome::Failed => "failed",
            };
            Err(Refused::NotErased { disk: wanted.to_owned(), outcome: outcome.to_owned() })
        }
    }
}

/// That it is a deployment of this disk and of an image with this digest, as downloaded or as written.
///
/// # Errors
/// It is of another image, another disk, or no deployment.
fn check_deployment(evidence: &Evidence, disk: Option<&str>, image: &str) -> Result<(), Refused> {
    let wanted = image.to_ascii_lowercase();
    let another =
        |found: &str| Err(Refused::AnotherImage { found: found.to_owned(), wanted: wanted.clone() });
    let Some(deployed) = evidence.deployed.as_ref().filter(|_| evidence.succeeded) else {
        return another("none");
    };
    if let Some(name) = disk.filter(|name| !deployed.is_called(name)) {
        return Err(Refused::AnotherDisk(name.to_owned()));
    }
    let record = &deployed.record;
    if [&record.download_digest, &record.read_back_sha256].contains(&&wanted) {
        return Ok(());
    }
    another(&record.download_digest)
}

/// That the one certificate follows the other in the chain of a node.
pub(crate) fn follows(this: &Verified, before: &Verified) -> Result<(), Refused> {
    let (this, earlier) = (&this.certificate, &before.certificate);
    let broken = |text: String| Err(Refused::BrokenChain(text));
    if this.node.uuid != earlier.node.uuid {
        return broken(format!("the previous certificate is of node {}", earlier.node.uuid));
    }
    if this.previous.as_ref() != Some(&before.id) {
        let named = this.previous.as_deref().unwrap_or("no certificate");
        return broken(format!("it follows {named}, not {}", before.id));
    }
    if earlier.number.checked_add(1) != Some(this.number) {
        return broken(format!("number {} follows number {}", this.number, earlier.number));
    }
    Ok(())
}
