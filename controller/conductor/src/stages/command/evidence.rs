//! The signed evidence in the result of a step that erases or deploys. If the agent signs its reports, an unsigned one is
//! rejected. An ironic-python-agent does not sign, so what it does gets no certificate. A step of an agent that signs
//! succeeds only with a report that proves what the step is for.

use super::deployment;
use crate::agents;
use crate::issuer::Proof;
use crate::stages::erase_step::EraseStep;
use crate::stages::view::View;
use agent_protocol::deployment::{BootEntries, WrittenDisk};
use agent_protocol::record::EraseReport;
use certificate::{
    BootProof, Document, EVIDENCE, Evidence, Expected, INSTALL_BOOTLOADER, PublicKey, Refused, Signed,
    StepName,
};
use model::image::{PREPARE_INSTANCE_BOOT, WRITE_IMAGE, is_step};
use model::run::Cursor;
use model::{PlannedStep, StepKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Key of the boot entries in the result of the command that makes them.
const BOOT_ENTRIES: &str = "boot_entries";

/// What a step is to prove.
enum Purpose {
    Erase(EraseStep),
    WriteImage,
    MakeBootEntries,
    Other,
}

impl Purpose {
    fn of(planned: &PlannedStep) -> Self {
        match EraseStep::of(&planned.step) {
            Some(erase) => Self::Erase(erase),
            None if is_step(&planned.step, WRITE_IMAGE) => Self::WriteImage,
            None if is_step(&planned.step, PREPARE_INSTANCE_BOOT) => Self::MakeBootEntries,
            None => Self::Other,
        }
    }

    /// Whether the result has a report that must be signed.
    fn is_reported(&self, kind: Option<StepKind>, result: &Value) -> bool {
        let of_step = kind.and_then(|kind| result.get(kind.result_field()));
        let has = |name: &str| of_step.is_some_and(|report| report.get(name).is_some());
        match self {
            Self::WriteImage => has("image") || has("disks"),
            Self::MakeBootEntries => result.get(BOOT_ENTRIES).is_some(),
            Self::Erase(_) | Self::Other => has("disks"),
        }
    }

    /// Why a success without a report is rejected.
    fn missing(&self, label: &str) -> Option<String> {
        let what = match self {
            Self::Erase(_) => "report of the disks",
            Self::WriteImage => "record of the disk",
            Self::MakeBootEntries | Self::Other => return None,
        };
        Some(format!("step {label} was reported as a success without a {what}"))
    }

    /// Why the evidence of a success proves less than the step was to do, or something else.
    fn shortfall(&self, view: &View, label: &str, evidence: &Evidence) -> Option<String> {
        let node = &view.snapshot.node;
        match self {
            Self::Erase(erase) => erase.shortfall(node, label, &evidence.disks),
            Self::WriteImage => deployment::shortfall(node, view.run.kind, label, evidence.deployed.as_ref()),
            Self::MakeBootEntries => deployment::boot_shortfall(node, label, evidence.boot_entries.as_ref()),
            Self::Other => None,
        }
    }
}

/// Take the evidence out of the result of the current step, which has ended. `None` if the step has no evidence.
///
/// # Errors
/// The evidence is missing, does not fit, or proves less than the step was to do; it then stays in the result, for
/// diagnosis.
pub(super) fn take(view: &View, succeeded: bool, result: &mut Value) -> Result<Option<Box<Proof>>, String> {
    let current = view.run.current();
    let purpose = current.map_or(Purpose::Other, Purpose::of);
    let label = current.map(PlannedStep::label).unwrap_or_default();
    let reported = purpose.is_reported(view.run.kind.steps(), result);
    let key = agents::of(&view.snapshot.contact).evidence_key();
    match (key, result.get(EVIDENCE)) {
        (None, None) => Ok(None),
        (Some(_), None) if !reported => match purpose.missing(&label).filter(|_| succeeded) {
            None => Ok(None),
            Some(missing) => Err(missing),
        },
        (Some(_), None) => {
            Err("the agent signs what it erases and deploys, and has not signed this report".to_owned())
        }
        (None, Some(_)) => Err("the report is signed, but the agent has reported no key".to_owned()),
        (Some(key), Some(signed)) => {
            let what = match purpose {
                Purpose::WriteImage | Purpose::MakeBootEntries => "deployment",
                Purpose::Erase(_) | Purpose::Other => "erase",
            };
            let refused = |error: Refused| format!("the evidence of the {what} is refused: {error}");
            let proof = judged(view, key, signed, succeeded, result).map_err(refused)?;
            let shortfall = purpose.shortfall(view, &label, &proof.evidence).filter(|_| succeeded);
            if let Some(shortfall) = shortfall {
                return Err(shortfall);
            }
            if let Some(result) = result.as_object_mut() {
                result.remove(EVIDENCE);
            }
            Ok(Some(Box::new(proof)))
        }
    }
}

/// What the result reports.
#[derive(Default)]
struct Reported {
    erase: EraseReport,
    deployed: Option<WrittenDisk>,
    boot_entries: Option<BootEntries>,
}

impl Reported {
    fn by(planned: &PlannedStep, kind: StepKind, result: &Value) -> Result<Self, Refused> {
        if is_step(&planned.step, PREPARE_INSTANCE_BOOT) {
            return Ok(Self { boot_entries: read(result.get(BOOT_ENTRIES))?, ..Self::default() });
        }
        let report = result.get(kind.result_field()).ok_or_else(no_report)?;
        let image = report.get("image").filter(|_| kind == StepKind::Deploy);
        let erase = match (report.get("disks"), image) {
            (None, Some(_)) => None,
            _ => read(Some(report))?,
        };
        Ok(Self { erase: erase.unwrap_or_default(), deployed: read(image)?, boot_entries: None })
    }
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Result<Option<T>, Refused> {
    let read = value.map(|value| serde_json::from_value(value.clone())).transpose();
    read.map_err(|error| unreadable(error.to_string()))
}

fn unreadable(problem: String) -> Refused {
    Refused::Unreadable(Document::Evidence, problem)
}

fn no_report() -> Refused {
    unreadable("the step has no report of disks".to_owned())
}

fn judged(view: &View, key: &str, signed: &Value, succeeded: bool, result: &Value) -> Result<Proof, Refused> {
    let key: PublicKey = key.parse().map_err(|error: certificate::KeyError| unreadable(error.to_string()))?;
    let signed: Signed =
        serde_json::from_value(signed.clone()).map_err(|error| unreadable(error.to_string()))?;
    let (Cursor::Issued { command_id, .. }, Some(planned), Some(kind), Some(boot_id)) = (
        &view.run.cursor,
        view.run.current(),
        view.run.kind.steps(),
        agents::of(&view.snapshot.contact).boot_id(),
    ) else {
        return Err(no_report());
    };
    let report = Reported::by(planned, kind, result)?;
    let step = match Purpose::of(planned) {
        Purpose::MakeBootEntries => StepName::of(INSTALL_BOOTLOADER),
        _ => StepName::of([kind.as_str(), &planned.step.interface, &planned.step.step]),
    };
    let expected = Expected {
        node: &view.snapshot.node.uuid.to_string(),
        command_id,
        boot_id,
        step,
        succeeded,
        report: &report.erase,
        deployed: report.deployed.as_ref(),
        boot_entries: report.boot_entries.as_ref(),
        required: view.settings.require_verification,
    };
    let evidence = certificate::judge(&signed, &key, &expected)?;
    let proved = view.snapshot.contact.proof.as_ref();
    let of_key = proved.filter(|proof| proof.evidence_key == key.to_string() && proof.boot_id == boot_id);
    let boot = of_key.map(|proof| BootProof {
        quote_sha256: proof.quote_sha256.clone(),
        endorsement_key: proof.endorsement_key.clone(),
    });
    Ok(Proof { key, signed, evidence, boot })
}
