//! eMMC: every erase group is erased, then Sanitize removes what is not mapped any more (JESD84-B51, 6.6.9, 6.6.11).
//! Sanitize by itself touches nothing that is mapped; the kernel's discard may leave sectors mapped.

use super::work::{Work, fault};
use crate::fault::Fault;
use crate::mmc::{Command, complaint};
use std::time::Duration;

const WHAT: &str = "eMMC sanitize";
/// The most that one erase command takes, by what the device says of a group: it is not left in between.
const SLICE: Duration = Duration::from_secs(60);
/// The most that Sanitize itself takes.
const MOST: Duration = Duration::from_secs(3600);

/// Run it to its end.
///
/// # Errors
/// [`Fault`] when the device refuses, or says that it left anything.
pub fn run(work: &Work<'_>) -> Result<(), Fault> {
    let registers = work.drive.probe.mmc.map(|mmc| mmc.registers).unwrap_or_default();
    let Some(group) = registers.erase_group.filter(|_| registers.can_sanitize()) else {
        return Err(fault(WHAT, "the device does not support it"));
    };
    let groups = SLICE.as_millis() / registers.group_time.as_millis().max(1);
    let slice = group.saturating_mul(u32::try_from(groups).unwrap_or(u32::MAX).max(1));
    let mut first = 0;
    while first < registers.sectors {
        if work.watch.cancelled() {
            return Err(Fault::Cancelled);
        }
        let length = slice.min(registers.sectors - first);
        let time = registers.group_time.saturating_mul(length.div_ceil(group));
        send(work, &Command::erase(first, first + (length - 1), time))?;
        first += length;
        let done = u64::from(first) * 65535 / u64::from(registers.sectors);
        (work.report)(u16::try_from(done).unwrap_or(u16::MAX));
    }
    send(work, &[Command::sanitize(MOST)])
}

fn send(work: &Work<'_>, commands: &[Command]) -> Result<(), Fault> {
    let sent = work.drive.transport.mmc(commands, &mut []);
    let statuses = sent.map_err(|source| Fault::Command { what: WHAT, source })?;
    match statuses.into_iter().find_map(complaint) {
        Some(words) => Err(fault(WHAT, words)),
        None => Ok(()),
    }
}
