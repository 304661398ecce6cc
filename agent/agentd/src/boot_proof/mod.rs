//! Proves this boot by the machine's TPM, before an inspection and before each lookup, to a controller that takes such proofs
//! ([`agent_protocol::boot_proof`]).
//!
//! The quote binds the keys of this process: that of its TLS certificate, and the one that signs its evidence. Without one of
//! them nothing is proved. A proof that fails is logged, and the lookup follows: whether a proof is needed the controller knows.

mod sources;

pub use sources::Sources;

use crate::http::{ApiUrl, Client, HttpError, shorten};
use crate::lookup::Controller;
use agent_protocol::boot_proof::{ANSWER_PATH, Answer, Challenge, START_PATH, Start};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde::Serialize;
use tpm::{Digest, Prover, TpmError, Transport, binding};

/// PCRs of a TPM on a PC.
const PCRS: u8 = 24;

/// What a proof is bound to.
#[derive(Debug, Clone)]
pub struct Bound {
    /// MAC addresses of the machine.
    pub addresses: Vec<String>,
    /// Of this boot.
    pub boot_id: String,
    /// SHA-256 of the agent's TLS certificate (DER).
    pub tls_certificate: Digest,
    /// The key that signs its evidence, as heartbeats show it.
    pub evidence_key: String,
}

/// Why a boot was not proved.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// There is nothing to prove it by.
    #[error("this machine has no TPM 2.0 that the kernel knows")]
    NoTpm,
    /// It fails.
    #[error(transparent)]
    Tpm(#[from] TpmError),
    /// The kernel does not have it, or it is too long.
    #[error("the firmware's log of its measurements: {0}")]
    Log(String),
    /// No answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The controller says no.
    #[error("the controller answered {status}: {text}")]
    Refused {
        /// Status code.
        status: u16,
        /// Body, shortened.
        text: String,
    },
    /// What the controller asks cannot be answered.
    #[error("unusable challenge: {0}")]
    Challenge(String),
    /// The thread that speaks with the TPM broke.
    #[error("the exchange with the TPM broke")]
    Broke,
}

/// A TPM in use.
type Own = Prover<Box<dyn Transport + Send>>;

/// What a proof is made of.
#[derive(Debug, Clone)]
pub struct BootProof {
    /// TPM and log.
    pub sources: Sources,
    /// What the quote binds.
    pub bound: Bound,
}

impl BootProof {
    /// Shows a proof to `controller`, if that takes any; whether it took this one. What goes wrong is logged.
    pub async fn show(&self, client: &Client, controller: &Controller) -> bool {
        if !controller.takes_boot_proof {
            return false;
        }
        let proved = prove(&self.sources, &self.bound, client, &controller.url).await;
        match &proved {
            Ok(()) => tracing::info!("the TPM has proved this boot"),
            // Many machines have none, and the controller says what it needs one for.
            Err(ProofError::NoTpm) => tracing::debug!("no TPM: this boot is not proved"),
            Err(error) => tracing::warn!(%error, "this boot is not proved"),
        }
        proved.is_ok()
    }
}

/// One proof.
///
/// # Errors
/// See [`ProofError`].
pub async fn prove(
    sources: &Sources,
    bound: &Bound,
    client: &Client,
    controller: &ApiUrl,
) -> Result<(), ProofError> {
    let opened = sources.clone();
    let (own, start) = {
        let bound = bound.clone();
        blocking(move || keys(&opened, &bound)).await?
    };
    let challenge = post(client, controller, START_PATH, &start, 200).await?;
    let challenge: Challenge =
        serde_json::from_slice(&challenge).map_err(|error| ProofError::Challenge(error.to_string()))?;
    let (sources, bound) = (sources.clone(), bound.clone());
    let answer = blocking(move || answer(own, &sources, &bound, start, challenge)).await?;
    post(client, controller, ANSWER_PATH, &answer, 204).await?;
    Ok(())
}

/// A TPM takes up to seconds.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProofError> + Send + 'static,
) -> Result<T, ProofError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(ProofError::Broke))
}

async fn post(
    client: &Client,
    controller: &ApiUrl,
    path: &str,
    message: &impl Serialize,
    expected: u16,
) -> Result<Vec<u8>, ProofError> {
    // Plain data with string keys: this cannot fail, and the controller refuses an empty body.
    let body = serde_json::to_vec(message).unwrap_or_default();
    let reply = client.send(Method::POST, controller, path, None, body).await?;
    if reply.status == expected {
        return Ok(reply.body);
    }
    Err(ProofError::Refused { status: reply.status, text: shorten(&reply.body) })
}

/// Makes the keys.
fn keys(sources: &Sources, bound: &Bound) -> Result<(Own, Start), ProofError> {
    let tpm = tpm::open(&sources.device).map_err(TpmError::from)?.ok_or(ProofError::NoTpm)?;
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| TpmError::from(std::io::Error::other(error.to_string())))?;
    let mut own = Prover::new(tpm, &random)?;
    let certificate = own.certificate();
    let start = Start {
        addresses: bound.addresses.clone(),
        boot_id: bound.boot_id.clone(),
        endorsement_key: STANDARD.encode(own.endorsement_key().public()),
        endorsement_certificate: certificate.map(|certificate| STANDARD.encode(certificate)),
        attestation_key: STANDARD.encode(own.attestation_key().public()),
    };
    Ok((own, start))
}

/// Answers a challenge.
fn answer(
    mut own: Own,
    sources: &Sources,
    bound: &Bound,
    start: Start,
    challenge: Challenge,
) -> Result<Answer, ProofError> {
    let bytes = |what: &str, text: &str| {
        STANDARD.decode(text).map_err(|error| ProofError::Challenge(format!("{what}: {error}")))
    };
    let nonce = <[u8; 32]>::try_from(bytes("nonce", &challenge.nonce)?)
        .map_err(|_| ProofError::Challenge("the nonce has not 32 bytes".to_owned()))?;
    if challenge.pcrs.is_empty() || challenge.pcrs.iter().any(|pcr| *pcr >= PCRS) {
        return Err(ProofError::Challenge(format!("there are no PCRs {:?}", challenge.pcrs)));
    }
    let (credential, secret) =
        (bytes("credential", &challenge.credential)?, bytes("secret", &challenge.secret)?);
    let activated = own.activate(&credential, &secret)?;
    let binding = binding(&nonce, &bound.tls_certificate, &bound.evidence_key, &bound.boot_id);
    let quoted = own.quote(&challenge.pcrs, &binding)?;
    Ok(Answer {
        start,
        nonce: challenge.nonce,
        activated: STANDARD.encode(activated),
        quote: STANDARD.encode(quoted.quote),
        signature: STANDARD.encode(quoted.signature),
        pcrs: quoted.pcrs.0.iter().map(|(pcr, value)| (*pcr, value.to_string())).collect(),
        event_log: STANDARD.encode(sources.log().map_err(ProofError::Log)?),
        tls_certificate: bound.tls_certificate.to_string(),
        evidence_key: bound.evidence_key.clone(),
    })
}
