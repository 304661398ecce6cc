//! What a cleaning that succeeded makes a node AVAILABLE on: read from the stored results of its steps alone.

use super::erase_step::EraseStep;
use certificate::Finding;
use model::{Basis, PlannedStep, Run, StepResult};

/// The driver whose machines are simulated.
const FAKE_HARDWARE: &str = "fake-hardware";

/// The basis of a cleaning, all of whose steps have a stored success.
///
/// # Errors
/// A stored finding is none that a step which succeeded can have.
pub(super) fn of_cleaning(driver: &str, run: &Run) -> Result<Basis, String> {
    let steps = run.plan.iter().flatten().enumerate();
    let erases: Vec<&StepResult> =
        steps.filter_map(|(index, planned)| erase(planned, run.success(index)?)).collect();
    if erases.is_empty() {
        let fake = driver == FAKE_HARDWARE;
        return Ok(if fake { Basis::FakeHardware } else { Basis::NoEraseStep });
    }
    let mut certificates = Vec::new();
    let mut strongest = 0;
    for result in erases {
        let (Some(certificate), Some(finding)) = (&result.certificate, &result.finding) else {
            return Ok(Basis::IronicPythonAgent);
        };
        certificates.push(certificate.clone());
        strongest = strongest.max(rank(finding)?);
    }
    Ok(match strongest {
        3 => Basis::Erased { certificates },
        2 => Basis::ErasedWithExceptions { certificates },
        1 => Basis::MetadataOnly { certificates },
        _ => Basis::NothingErased { certificates },
    })
}

/// The result of a step of the agent that erases disks: one of the known ones, or any other that came with evidence.
fn erase<'a>(planned: &PlannedStep, result: &'a StepResult) -> Option<&'a StepResult> {
    let erases = EraseStep::of(&planned.step).is_some() || result.certificate.is_some();
    (planned.step.in_band && erases).then_some(result)
}

/// How much a finding says, among those of steps that succeeded.
fn rank(finding: &str) -> Result<u8, String> {
    match finding {
        found if found == Finding::Erased.as_str() => Ok(3),
        found if found == Finding::ErasedWithExceptions.as_str() => Ok(2),
        found if found == Finding::MetadataErased.as_str() => Ok(1),
        found if found == Finding::NothingErased.as_str() => Ok(0),
        other => Err(format!("internal: a step that succeeded has the finding {other:?}")),
    }
}
