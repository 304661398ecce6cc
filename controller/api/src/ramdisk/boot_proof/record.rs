//! The record of a node's TPM: made by the first boot that may make it, compared with by every later one.

use super::awaited::AwaitedBoot;
use super::event_name::event_name;
use super::shown::{Keys, ShownAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::ramdisk::required_proof::is_required;
use crate::write;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use model::boot_proof::{
    EndorsementKey, FIRMWARE_PCRS, Measurement, Measurements, Register, TpmRecord, short,
};
use model::history::Severity;
use model::{Event, EventKind, Node, RunKind};
use tpm::{Change, Digest, Name, Proof};

/// What the node's record says, as it is judged.
///
/// # Errors
/// 500: it was not stored by us.
pub fn measurements(record: &TpmRecord) -> Result<tpm::Measurements, ApiError> {
    let digest = |text: &String| {
        text.parse::<Digest>().map_err(|_| ApiError::internal("the record of a TPM is no record"))
    };
    let of = &record.measurements;
    let pcrs = of.registers.iter().map(|(pcr, register)| Ok((*pcr, digest(&register.digest)?)));
    Ok(tpm::Measurements {
        pcrs: pcrs.collect::<Result<_, ApiError>>()?,
        programs: of.programs.iter().map(digest).collect::<Result<_, _>>()?,
    })
}

/// Name of the recorded endorsement key.
///
/// # Errors
/// 500: it was not stored by us.
pub fn name(record: &TpmRecord) -> Result<Name, ApiError> {
    let name = record.endorsement_key.name.parse();
    name.map_err(|_| ApiError::internal("the record of a TPM is no record"))
}

/// Compare a proof with the node's record, or make that of it.
///
/// # Errors
/// 403: it differs, which is stored and awaits an operator's word; or this boot may not make the record.
pub async fn keep(
    call: &Call,
    boot: &AwaitedBoot,
    keys: &Keys,
    shown: &ShownAnswer,
    proof: &Proof,
) -> Result<(), ApiError> {
    match boot.node.tpm.as_deref() {
        None => enrol(call, boot, keys, shown, proof).await,
        Some(record) if proof.changes.is_empty() => {
            if record.changed.is_some() {
                let text = "its boot measures again what is recorded".to_owned();
                let change = |tpm: &mut TpmRecord| tpm.changed = None;
                write(call, &boot.node, record, Severity::Info, text, change).await?;
            }
            Ok(())
        }
        Some(record) => {
            let measured = measured(shown, proof);
            let why = format!(
                "its boot measures something else than what is recorded: {} (anneal node measurements show)",
                list(&proof.changes)
            );
            let now = call.now();
            if record.clone().note_change(measured.clone(), now) {
                let text = format!("{why}; a user has to accept it");
                let change = move |tpm: &mut TpmRecord| {
                    tpm.note_change(measured.clone(), now);
                };
                write(call, &boot.node, record, Severity::Error, text, change).await?;
            }
            Err(boot.refused(call, "changed", &why).await)
        }
    }
}

/// The first record: by an inspection, or where no proof is required by any boot.
async fn enrol(
    call: &Call,
    boot: &AwaitedBoot,
    keys: &Keys,
    shown: &ShownAnswer,
    proof: &Proof,
) -> Result<(), ApiError> {
    let inspects = boot.node.run.as_ref().is_some_and(|run| run.kind == RunKind::Inspect);
    if is_required(call, &boot.node) && !inspects {
        let why = "no TPM is recorded for the node; the next inspection records it";
        return Err(boot.refused(call, "not_recorded", &why).await);
    }
    let key = EndorsementKey {
        public: BASE64.encode(keys.endorsement.public()),
        name: keys.endorsement.name().to_string(),
        certificate: keys.certificate.as_ref().map(|certificate| BASE64.encode(certificate)),
    };
    let certified =
        if key.certificate.is_some() { "a certificate that was not verified" } else { "no certificate" };
    let by = if inspects { "an inspection" } else { "a boot of a node for which no proof is required" };
    let mut text = format!("its TPM was recorded by {by}: endorsement key {}, with {certified}", key.name);
    if !proof.changes.is_empty() {
        text = format!("{text}; besides the ramdisk {}", list(&proof.changes));
    }
    let record = TpmRecord::new(key, measured(shown, proof), call.now());
    let judge = |node: &Node| match &node.tpm {
        Some(_) => Err(outrun(node)),
        None => Ok((
            Node { tpm: Some(Box::new(record.clone())), ..node.clone() },
            vec![event(call, Severity::Info, &text)],
        )),
    };
    write::change(call, &boot.node.uuid.to_string(), judge).await.map(drop)
}

/// Change the record that was judged with; not one that was written since.
async fn write(
    call: &Call,
    node: &Node,
    judged: &TpmRecord,
    severity: Severity,
    text: String,
    change: impl Fn(&mut TpmRecord) + Send + Sync,
) -> Result<(), ApiError> {
    let judge = |now: &Node| {
        let mut tpm = now.tpm.clone().filter(|tpm| **tpm == *judged).ok_or_else(|| outrun(now))?;
        change(&mut tpm);
        Ok((Node { tpm: Some(tpm), ..now.clone() }, vec![event(call, severity, &text)]))
    };
    write::change(call, &node.uuid.to_string(), judge).await.map(drop)
}

/// 409: the agent begins anew, with the record as it is now.
fn outrun(node: &Node) -> ApiError {
    ApiError::conflict(format!(
        "The TPM of node {} was recorded by another request, please retry.",
        node.uuid
    ))
}

fn event(call: &Call, severity: Severity, text: &str) -> Event {
    Event::new(EventKind::Agent, severity, text.to_owned(), call.now())
}

/// What this boot measured, with what its log says of it as far as that gives what was quoted.
fn measured(shown: &ShownAnswer, proof: &Proof) -> Measurements {
    let log = tpm::parse_event_log(&shown.event_log).unwrap_or_default();
    let register = |pcr: u8| {
        let value = shown.pcr(pcr);
        let is_explained = tpm::replay(&log, pcr) == value;
        let events = log
            .of(pcr)
            .filter(|_| is_explained)
            .map(|event| Measurement { name: event_name(event), digest: event.digest.to_string() });
        (pcr, Register::new(value.to_string(), events))
    };
    Measurements {
        registers: FIRMWARE_PCRS.map(register).into(),
        programs: proof.measurements.programs.iter().map(Digest::to_string).collect(),
    }
}

/// The changes in a sentence, each digest with its first digits: the whole is stored.
fn list(changes: &[Change]) -> String {
    let text = |change: &Change| match change {
        Change::Pcr { pcr, was, is } => {
            let (was, is) = (was.map(|was| was.to_string()), is.to_string());
            let was = was.as_deref().map_or("not recorded", short);
            format!("PCR {pcr} is {} and was {was}", short(&is))
        }
        Change::Program { digest } => {
            format!("the firmware started a program with the digest {}", short(&digest.to_string()))
        }
    };
    changes.iter().map(text).collect::<Vec<_>>().join(", ")
}
