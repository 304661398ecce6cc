//! All disks, probed and judged. Nothing is written.

use block::{Disk, Filter, ListError, Probe, Refusal, Roots};

/// A disk and what was found about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surveyed {
    /// The disk.
    pub disk: Disk,
    /// Whether it may be written.
    pub verdict: Verdict,
}

/// What was found about a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may be written.
    Writable(Box<Probe>),
    /// It must not be; at least one reason.
    Refused(Vec<Refusal>),
    /// It could not be probed, and why; whether it may be written is not known.
    Unknown(String),
}

/// List, probe and judge.
pub(crate) fn survey(roots: &Roots, filter: &Filter) -> Result<Vec<Surveyed>, ListError> {
    let surveyed = block::list(roots, filter)?.into_iter().map(|disk| {
        let verdict = match block::probe(&disk) {
            Err(error) => Verdict::Unknown(block::fault::chain(&error)),
            Ok(probe) => match block::judge(&probe) {
                refusals if refusals.is_empty() => Verdict::Writable(Box::new(probe)),
                refusals => Verdict::Refused(refusals),
            },
        };
        Surveyed { disk, verdict }
    });
    Ok(surveyed.collect())
}
