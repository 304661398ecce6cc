//! Checks whether a hardware manager keeps the rules of the protocol. [`examine`] starts it as an agent would, many
//! times, sends valid and invalid messages, and reports for each [`Rule`] whether it was kept, broken, or could not be
//! checked.
//!
//! ```no_run
//! let plan = hwm_conformance::Plan::new(vec!["python3".into(), "acme.py".into()]);
//! let report = hwm_conformance::examine(&plan)?;
//! assert!(report.passed(), "{report}");
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! No server, sandbox or hardware is needed. Only steps that destroy nothing are run, and those that the plan names.

mod incoming;
mod plan;
mod process;
mod report;
mod rule;
mod scenario;
mod session;

pub use plan::{Deadlines, Plan, example_inventory};
pub use report::{Report, Violation};
pub use rule::Rule;

use anyhow::Result;
use scenario::{Examination, erase, lifecycle, machines, malformed, run, steps, versions};

/// Examines a manager.
///
/// # Errors
/// When it cannot be started at all.
pub fn examine(plan: &Plan) -> Result<Report> {
    let mut examination = Examination::new(plan);
    // A rule that is broken in an ordinary run would be broken in all scenarios.
    if examination.play(lifecycle::ordinary)? {
        examination.play(versions::newer_agent)?;
        examination.play(versions::foreign_agent)?;
        examination.play(malformed::unknown_calls)?;
        examination.play(malformed::unreadable_lines)?;
        examination.play(malformed::wrong_params)?;
        examination.play(malformed::late_cancel)?;
        examination.play(machines::same_machine)?;
        examination.play(machines::any_machine)?;
        examination.play(lifecycle::closed_socket)?;
        if examination.is_ready() {
            examination.play(erase::unknown_disk)?;
            examination.play(erase::asked_for)?;
            examination.play(steps::asked_again)?;
            examination.play(steps::unknown_step)?;
            for run in examination.runs() {
                examination.play(|session, examination| run::wrong_arguments(session, examination, &run))?;
                examination.play(|session, examination| run::to_the_end(session, examination, &run))?;
                examination.play(|session, examination| run::resumed(session, examination, &run))?;
                examination.play(|session, examination| run::cancelled(session, examination, &run))?;
                examination.play(|session, examination| run::closed(session, examination, &run))?;
            }
        }
    }
    Ok(examination.report())
}
