//! SCSI FORMAT UNIT (SBC-4 5.4): the last resort, since a disk that loses power in it must be formatted again.

use super::scsi_sanitize;
use super::work::Work;
use crate::fault::Fault;
use crate::scsi;

const WHAT: &str = "SCSI FORMAT UNIT";

/// Format with zeroes, keeping the protection information that the disk has.
///
/// # Errors
/// [`Fault`] when the disk refuses, fails or is stuck.
pub fn run(work: &Work<'_>) -> Result<(), Fault> {
    let protection = work.drive.probe.scsi.map_or(0, |scsi| scsi.protection);
    let (cdb, parameters) = scsi::format_unit(protection);
    scsi_sanitize::follow(work, WHAT, (0x04, 0x04), (0x31, 0x01), true)?;
    scsi_sanitize::begin(work, WHAT, &cdb, &parameters)?;
    scsi_sanitize::follow(work, WHAT, (0x04, 0x04), (0x31, 0x01), false).map(drop)
}
