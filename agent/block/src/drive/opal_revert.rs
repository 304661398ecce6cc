//! TCG Opal PSID revert: the drive forgets its keys, so that nothing it holds can be read any more, and its owner.

use super::work::{Work, fault};
use crate::fault::Fault;
use crate::opal::{Psid, status_text};
use crate::transport::Transport;

const WHAT: &str = "TCG Opal PSID revert";

/// Revert the drive with the PSID that the operator gave for it.
///
/// # Errors
/// [`Fault`] without a PSID, when the drive does not take it or fails, or when it is still owned or locked afterwards.
/// None names the PSID.
pub fn run(work: &Work<'_>) -> Result<(), Fault> {
    let Some(psid) = &work.drive.probe.psid else {
        return Err(fault(WHAT, "the PSID of the drive was not given"));
    };
    revert(work.drive.transport, psid)
}

fn revert(transport: &dyn Transport, psid: &Psid) -> Result<(), Fault> {
    let failed = |source| Fault::Command { what: WHAT, source };
    match transport.opal_revert(psid).map_err(failed)? {
        0 => {}
        status => return Err(fault(WHAT, status_text(status))),
    }
    let after = transport.opal_status().map_err(failed)?;
    if after.owned || after.hides_content() {
        return Err(fault(WHAT, "the drive took the command, and is still owned or locked"));
    }
    Ok(())
}
