//! Findings of a verification, item by item, and the result of the step.

use hwm_sdk::{StepError, StepOutcome};
use serde_json::{Value, json};

/// One thing that was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name: `memory_mb`, `bios_version`, `disk:MODEL (/dev/sda)`.
    pub item: String,
    /// Expected value.
    pub expected: String,
    /// Value that was found.
    pub found: String,
    /// Whether the value satisfies the expectation.
    pub agrees: bool,
}

/// Success with all findings; or a failure that names every difference. `against` says what the node was
/// compared with.
///
/// # Errors
/// [`StepError::Failed`] when any finding does not agree; all findings are in its report.
pub fn conclude(against: &str, findings: &[Finding]) -> Result<StepOutcome, StepError> {
    let entry = |finding: &Finding| {
        json!({"item": finding.item, "expected": finding.expected, "found": finding.found,
               "agrees": finding.agrees})
    };
    let report = json!({ "compared": findings.iter().map(entry).collect::<Vec<Value>>() });
    let differences: Vec<String> = findings
        .iter()
        .filter(|finding| !finding.agrees)
        .map(|finding| format!("{}: expected {}, found {}", finding.item, finding.expected, finding.found))
        .collect();
    if differences.is_empty() {
        return Ok(StepOutcome::Done(report));
    }
    let reason = format!("the node differs from {against}: {}", differences.join("; "));
    Err(StepError::Failed { reason, report })
}
