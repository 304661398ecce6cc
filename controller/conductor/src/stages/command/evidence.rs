//! The signed evidence in the result of an erase step. If the agent signs its reports, an unsigned one is rejected. An
//! ironic-python-agent does not sign, so its erases get no certificate. An erase step of an agent that signs succeeds only
//! with a report that proves what the step is for.

use crate::agents;
use crate::issuer::Proof;
use crate::stages::erase_step::EraseStep;
use crate::stages::view::View;
use agent_protocol::record::EraseReport;
use certificate::{Document, EVIDENCE, Expected, PublicKey, Refused, Signed, StepName};
use model::run::Cursor;
use serde_json::Value;

/// Take the evidence out of the result of the current step, which has ended. `None` if the step has no evidence.
///
/// # Errors
/// The evidence is missing, does not fit, or proves less than the step was to do; it then stays in the result, for
/// diagnosis.
pub(super) fn take(view: &View, succeeded: bool, result: &mut Value) -> Result<Option<Box<Proof>>, String> {
    let reports =
        |kind: model::StepKind| result.get(kind.result_field())?.get("disks").is_some().then_some(());
    let reported = view.run.kind.steps().and_then(reports).is_some();
    let erase = view.run.current().filter(|_| succeeded);
    let erase = erase.and_then(|planned| Some((EraseStep::of(&planned.step)?, planned.label())));
    let key = agents::of(&view.snapshot.contact).evidence_key();
    match (key, result.get(EVIDENCE)) {
        (None, None) => Ok(None),
        (Some(_), None) if !reported => match erase {
            None => Ok(None),
            Some((_, label)) => {
                Err(format!("step {label} was reported as a success without a report of the disks"))
            }
        },
        (Some(_), None) => Err("the agent signs what it erases, and has not signed this report".to_owned()),
        (None, Some(_)) => Err("the report is signed, but the agent has reported no key".to_owned()),
        (Some(key), Some(signed)) => {
            let refused = |error: Refused| format!("the evidence of the erase is refused: {error}");
            let proof = judged(view, key, signed, succeeded, result).map_err(refused)?;
            let disks = &proof.evidence.disks;
            let shortfall =
                erase.and_then(|(erase, label)| erase.shortfall(&view.snapshot.node, &label, disks));
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

fn judged(view: &View, key: &str, signed: &Value, succeeded: bool, result: &Value) -> Result<Proof, Refused> {
    let unreadable = |problem: String| Refused::Unreadable(Document::Evidence, problem);
    let key: PublicKey = key.parse().map_err(|error: certificate::KeyError| unreadable(error.to_string()))?;
    let signed: Signed =
        serde_json::from_value(signed.clone()).map_err(|error| unreadable(error.to_string()))?;
    let no_report = || unreadable("the step has no report of disks".to_owned());
    let (Cursor::Issued { command_id, .. }, Some(planned), Some(kind), Some(boot_id)) = (
        &view.run.cursor,
        view.run.current(),
        view.run.kind.steps(),
        agents::of(&view.snapshot.contact).boot_id(),
    ) else {
        return Err(no_report());
    };
    let report = result.get(kind.result_field()).ok_or_else(no_report)?;
    let report: EraseReport =
        serde_json::from_value(report.clone()).map_err(|error| unreadable(error.to_string()))?;
    let expected = Expected {
        node: &view.snapshot.node.uuid.to_string(),
        command_id,
        boot_id,
        step: StepName {
            kind: kind.as_str().to_owned(),
            interface: planned.step.interface.clone(),
            step: planned.step.step.clone(),
        },
        succeeded,
        report: &report,
        required: view.settings.require_verification,
    };
    let evidence = certificate::judge(&signed, &key, &expected)?;
    Ok(Proof { key, signed, evidence })
}
