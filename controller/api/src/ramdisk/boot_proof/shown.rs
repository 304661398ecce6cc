//! What an agent shows, decoded.

use crate::body::python;
use crate::error::ApiError;
use agent_protocol::boot_proof::{Answer, Start};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use tpm::{AttestationKey, Digest, EndorsementKey, Pcrs, Refusal, Shown};

/// Most bytes of a certificate of an endorsement key that are kept: several times one with a key of RSA.
const CERTIFICATE_MAX: usize = 4096;

/// The keys of the agent's TPM.
pub struct Keys {
    pub endorsement: EndorsementKey,
    pub attestation: AttestationKey,
    /// Of the endorsement key, DER.
    pub certificate: Option<Vec<u8>>,
}

impl Keys {
    /// Those of a request; or, inside, why they prove nothing.
    ///
    /// # Errors
    /// 400: a member is not in base64.
    pub fn read(start: &Start) -> Result<Result<Self, String>, ApiError> {
        let endorsement = decoded("endorsement_key", &start.endorsement_key)?;
        let attestation = decoded("attestation_key", &start.attestation_key)?;
        let given = start.endorsement_certificate.as_deref();
        let certificate = given.map(|text| decoded("endorsement_certificate", text)).transpose()?;
        Ok(Self::parse(&endorsement, &attestation, certificate))
    }

    fn parse(endorsement: &[u8], attestation: &[u8], certificate: Option<Vec<u8>>) -> Result<Self, String> {
        let endorsement = EndorsementKey::parse(endorsement)
            .map_err(|error| format!("the endorsement key that was shown counts for nothing: {error}"))?;
        let attestation = AttestationKey::parse(attestation)
            .map_err(|error| format!("the attestation key that was shown counts for nothing: {error}"))?;
        if certificate.as_ref().is_some_and(|certificate| certificate.len() > CERTIFICATE_MAX) {
            return Err(format!("the endorsement certificate is longer than {CERTIFICATE_MAX} bytes"));
        }
        Ok(Self { endorsement, attestation, certificate })
    }
}

/// The answer of a TPM.
pub struct ShownAnswer {
    pub nonce: [u8; 32],
    activated: Vec<u8>,
    quote: Vec<u8>,
    signature: Vec<u8>,
    pcrs: Pcrs,
    pub event_log: Vec<u8>,
    pub tls_certificate: Digest,
}

impl ShownAnswer {
    /// Decode it.
    ///
    /// # Errors
    /// 400 that names the member.
    pub fn read(answer: &Answer) -> Result<Self, ApiError> {
        let digest = |name: &str, text: &str| {
            text.parse::<Digest>().map_err(|error| bad(name, &error.to_string(), text))
        };
        let nonce = decoded("nonce", &answer.nonce)?;
        let nonce = nonce.try_into().map_err(|_| bad("nonce", "it has not 32 bytes", &answer.nonce))?;
        let key = answer.evidence_key.parse::<bundle::PublicKey>().map(|key| key.to_string());
        if key.as_ref() != Ok(&answer.evidence_key) {
            return Err(bad("evidence_key", "ed25519: and 64 hexadecimal digits", &answer.evidence_key));
        }
        let pcrs = answer.pcrs.iter().map(|(pcr, text)| Ok((*pcr, digest("pcrs", text)?)));
        Ok(Self {
            nonce,
            activated: decoded("activated", &answer.activated)?,
            quote: decoded("quote", &answer.quote)?,
            signature: decoded("signature", &answer.signature)?,
            pcrs: Pcrs(pcrs.collect::<Result<_, ApiError>>()?),
            event_log: decoded("event_log", &answer.event_log)?,
            tls_certificate: digest("tls_certificate", &answer.tls_certificate)?,
        })
    }

    /// All that is judged.
    pub fn with<'a>(&'a self, keys: &'a Keys) -> Shown<'a> {
        Shown {
            endorsement_key: &keys.endorsement,
            endorsement_certificate: keys.certificate.as_deref(),
            attestation_key: &keys.attestation,
            activated: &self.activated,
            quote: &self.quote,
            signature: &self.signature,
            pcrs: &self.pcrs,
            event_log: &self.event_log,
        }
    }

    /// The value of a register.
    pub fn pcr(&self, pcr: u8) -> Digest {
        self.pcrs.value(pcr)
    }
}

/// A word for each way to fail, by which the history of a node limits how often it names one.
pub fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::OtherTpm { .. } => "other_tpm",
        Refusal::Certificate => "certificate",
        Refusal::NotActivated => "not_activated",
        Refusal::Quote(_) => "quote",
        Refusal::OtherChallenge => "other_challenge",
        Refusal::OtherPcrs(_) | Refusal::PcrValues => "pcrs",
        Refusal::Log(_) | Refusal::Replay { .. } => "event_log",
        Refusal::NotMeasured => "not_measured",
        Refusal::CommandLine { .. } => "command_line",
        Refusal::Program { .. } => "program",
        Refusal::Parts { .. } => "parts",
        Refusal::Initrd { .. } => "initrd",
    }
}

fn decoded(name: &str, text: &str) -> Result<Vec<u8>, ApiError> {
    BASE64.decode(text).map_err(|error| bad(name, &format!("base64 ({error})"), text))
}

/// The value may be long, and is the sender's: only its beginning is shown.
fn bad(name: &str, expected: &str, text: &str) -> ApiError {
    let shown: String = text.chars().take(80).collect();
    ApiError::invalid(format!("Expected {expected} for {name}: {}", python(&shown.into())))
}
