//! `POST /v1/anneal/boot_proof` and `…/answer`: an agent proves by the TPM of its machine what was booted, before its lookup
//! (docs/decisions/0070).
//!
//! ```text
//!   start   who is it ─▶ is its boot awaited ─▶ keys ─▶ Challenge          nothing is stored
//!   answer  the same  ─▶ tpm::judge ─▶ record of the node's TPM ─▶ BootProof in the contact
//! ```
//!
//! A caller whose boot is not awaited gets 404 without a reason, as in a lookup. What such a caller's TPM does not prove is
//! refused with 403 that names it, and is in the node's history.

mod awaited;
mod challenge;
mod event_name;
mod record;
mod shown;

pub use challenge::ChallengeKey;

use crate::call::{Call, empty, json};
use crate::error::{ApiError, Reply};
use agent_protocol::boot_proof::{Answer, Challenge, Start};
use awaited::AwaitedBoot;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use challenge::Bound;
use model::boot_proof::BootProof;
use serde::de::DeserializeOwned;
use shown::ShownAnswer;
use tpm::{Expected, PCRS};

/// `POST /v1/anneal/boot_proof`: what the agent's TPM has to answer.
pub async fn start(call: Call) -> Reply {
    call.args.only(&[])?;
    let start: Start = body(&call)?;
    let boot = AwaitedBoot::of(&call, &start).await?;
    let program = boot.program(&call).await?;
    drop(program);
    let keys = boot.keys(&call, &start).await?;
    let nonce = challenge::nonce(call.now()).map_err(|error| failed(&error))?;
    let secret = secret(&call, &boot.bound(&start, &keys, &nonce))?;
    let sealed = match tpm::make_credential(&keys.endorsement, &keys.attestation, &secret) {
        Ok(sealed) => sealed,
        Err(tpm::CredentialError::Random) => return Err(failed(&tpm::CredentialError::Random)),
        Err(error) => return Err(boot.refused(&call, "credential", &error).await),
    };
    let challenge = Challenge {
        nonce: BASE64.encode(nonce),
        credential: BASE64.encode(sealed.credential),
        secret: BASE64.encode(sealed.secret),
        pcrs: PCRS.to_vec(),
    };
    let body = serde_json::to_value(&challenge).map_err(|error| failed(&error))?;
    Ok(json(200, &body))
}

/// `POST /v1/anneal/boot_proof/answer`: 204 if the boot is proved.
pub async fn answer(call: Call) -> Reply {
    call.args.only(&[])?;
    let answer: Answer = body(&call)?;
    let boot = AwaitedBoot::of(&call, &answer.start).await?;
    let program = boot.program(&call).await?;
    let keys = boot.keys(&call, &answer.start).await?;
    let shown = ShownAnswer::read(&answer)?;
    if !challenge::is_fresh(&shown.nonce, call.now()) {
        return Err(boot
            .refused(&call, "expired", &"its challenge has expired, or is not of this controller")
            .await);
    }
    let secret = secret(&call, &boot.bound(&answer.start, &keys, &shown.nonce))?;
    let binding =
        tpm::binding(&shown.nonce, &shown.tls_certificate, &answer.evidence_key, &answer.start.boot_id);
    let recorded = boot.node.tpm.as_deref().map(record::measurements).transpose()?;
    let enrolled = boot.node.tpm.as_deref().map(record::name).transpose()?;
    let expected = Expected {
        endorsement_key: enrolled.as_ref(),
        secret: &secret,
        binding: &binding,
        program: &program,
        recorded: recorded.as_ref(),
    };
    let proof = match tpm::judge(&shown.with(&keys), &expected) {
        Ok(proof) => proof,
        Err(refusal) => return Err(boot.refused(&call, shown::kind(&refusal), &refusal).await),
    };
    record::keep(&call, &boot, &keys, &shown, &proof).await?;
    let stored = BootProof {
        at: call.now(),
        boot_id: answer.start.boot_id.clone(),
        endorsement_key: keys.endorsement.name().to_string(),
        quote_sha256: proof.quote.to_string(),
        tls_certificate: shown.tls_certificate.to_string(),
        evidence_key: answer.evidence_key.clone(),
    };
    // The run may have moved on since the node was read.
    match call.app.store.record_proof(boot.node.uuid, &boot.nonce, stored).await? {
        true => Ok(empty(204, None)),
        false => Err(ApiError::not_found()),
    }
}

fn secret(call: &Call, bound: &Bound) -> Result<[u8; tpm::SECRET], ApiError> {
    call.app.challenge_key.secret(bound).ok_or_else(|| failed(&"no randomness for a key"))
}

fn body<T: DeserializeOwned>(call: &Call) -> Result<T, ApiError> {
    serde_json::from_value(call.json()?).map_err(|error| ApiError::invalid(format!("The body: {error}")))
}

fn failed(error: &dyn std::fmt::Display) -> ApiError {
    tracing::error!(%error, "no challenge could be made");
    ApiError::client(500, "No challenge could be made; see the controller's log.")
}
