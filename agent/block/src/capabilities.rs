//! Asking a drive what it can do. Nothing here writes, and a question without an answer is no error: what a drive
//! does not report is not used.

use crate::ata::{self, HiddenAreaQuestions, Identify, Registers};
use crate::mmc::{self, Emmc, ExtCsd};
use crate::nvme::log::{self, Health};
use crate::nvme::{self, IDENTIFY_LENGTH, Namespace, NvmeCommand};
use crate::sanitize::{Operation, Support};
use crate::scsi::{self, Reply};
use crate::transport::{Data, QUESTION, Transport};
use std::io;

/// What the controller behind a namespace's block device says. `Ok(None)` for an answer that is too short.
///
/// # Errors
/// When the controller does not answer Identify.
pub fn nvme(drive: &dyn Transport, nsid: u32) -> io::Result<Option<(Namespace, Option<Health>)>> {
    let ask = |command: NvmeCommand, length: usize| -> io::Result<Vec<u8>> {
        let mut data = vec![0; length];
        match drive.nvme(&command, &mut data, QUESTION)?.status {
            0 => Ok(data),
            status => Err(io::Error::other(nvme::status_text(status))),
        }
    };
    let identify = |cns: u8, nsid: u32| ask(NvmeCommand::identify(cns, nsid), IDENTIFY_LENGTH);
    let controller = identify(0x01, 0)?;
    // A controller that manages namespaces must list the allocated ones; if it cannot, assume others.
    let allocated = nvme::manages_namespaces(&controller)
        .then(|| identify(0x10, 0).unwrap_or_else(|_| u32::MAX.to_le_bytes().to_vec()));
    let parsed = Namespace::parse(
        nsid,
        &controller,
        &identify(0x00, nsid)?,
        &identify(0x02, 0)?,
        allocated.as_deref(),
    );
    let Some(mut namespace) = parsed else { return Ok(None) };
    if let Some(log) = sanitize_log(drive, &namespace.sanitize) {
        namespace.sanitize.state = log.state;
        namespace.sanitize_times = log.times;
    }
    if namespace.reservations {
        let report =
            ask(NvmeCommand::reservation_report(nsid, log::RESERVATION_LENGTH), log::RESERVATION_LENGTH);
        namespace.reservation = report.ok().and_then(|report| log::Reservation::parse(&report));
    }
    let health = ask(NvmeCommand::log_page(log::HEALTH, log::LENGTH), log::LENGTH);
    Ok(Some((namespace, health.ok().and_then(|page| Health::parse(&page)))))
}

fn sanitize_log(drive: &dyn Transport, support: &Support) -> Option<log::SanitizeLog> {
    if !(support.crypto || support.block || support.overwrite) {
        return None;
    }
    let mut page = vec![0; log::LENGTH];
    let command = NvmeCommand::log_page(log::SANITIZE, log::LENGTH);
    let answered = drive.nvme(&command, &mut page, QUESTION).ok()?.status == 0;
    log::SanitizeLog::parse(&page).filter(|_| answered)
}

/// Send an ATA command without data; what its registers say.
pub(crate) fn registers(drive: &dyn Transport, command: &ata::Command) -> Result<Registers, ata::Error> {
    let reply = drive.scsi(&command.pass_through(), Data::None, QUESTION);
    Registers::of(&reply.map_err(|error| ata::Error::NoAnswer(error.to_string()))?)
}

/// Send an ATA command with data.
pub(crate) fn ata_transfer(
    drive: &dyn Transport,
    command: &ata::Command,
    data: Data<'_>,
    timeout: std::time::Duration,
) -> Result<Reply, ata::Error> {
    let reply = drive.scsi(&command.pass_through(), data, timeout);
    let reply = reply.map_err(|error| ata::Error::NoAnswer(error.to_string()))?;
    if reply.good() {
        return Ok(reply);
    }
    // Whatever the registers say: the command did not end well.
    match Registers::of(&reply) {
        Ok(_) if reply.sense().is_some_and(|sense| sense.is(0x00, 0x1d)) => Ok(reply),
        Ok(registers) => Err(ata::Error::Aborted(registers)),
        Err(error) => Err(error),
    }
}

/// IDENTIFY DEVICE alone, fresh from the drive.
pub(crate) fn ata_identify(drive: &dyn Transport) -> Result<ata::Capabilities, ata::Error> {
    let data = ata_data(drive, &ata::Command::IDENTIFY)?;
    Ok(ata::Capabilities::of(&identified(&data)?))
}

fn identified(data: &[u8]) -> Result<Identify<'_>, ata::Error> {
    Identify::new(data).ok_or_else(|| no_answer("IDENTIFY with a wrong checksum"))
}

fn ata_data(drive: &dyn Transport, command: &ata::Command) -> Result<Vec<u8>, ata::Error> {
    let mut data = vec![0; ata::SECTOR];
    let reply = ata_transfer(drive, command, Data::In(&mut data), QUESTION)?;
    if reply.transferred < ata::SECTOR { Err(no_answer("less than a sector of data")) } else { Ok(data) }
}

fn no_answer(words: &str) -> ata::Error {
    ata::Error::NoAnswer(words.to_owned())
}

/// What an ATA drive says.
///
/// # Errors
/// When the controller does not hand IDENTIFY DEVICE through.
pub fn ata(drive: &dyn Transport) -> Result<ata::Capabilities, ata::Error> {
    let data = ata_data(drive, &ata::Command::IDENTIFY)?;
    let identify = identified(&data)?;
    let mut found = ata::Capabilities::of(&identify);
    let question = |command: &ata::Command| registers(drive, command);
    if found.sanitize.crypto || found.sanitize.block || found.sanitize.overwrite {
        let status = ata::sanitize::Status::of(question(&ata::Command::SANITIZE_STATUS));
        found.sanitize.state = status.ok().map(|status| status.state);
    }
    let beyond = |sectors: u64| sectors.saturating_sub(found.sectors);
    let native = |command: &ata::Command| match question(command) {
        Ok(registers) if !registers.truncated => beyond(registers.lba.saturating_add(1)),
        _ => 0,
    };
    let asks = HiddenAreaQuestions::of(&identify);
    let mut hidden = ata::HiddenArea::default();
    if asks.host_protected {
        hidden.host_protected = native(&ata::Command::READ_NATIVE_MAX);
    }
    if asks.accessible_max {
        hidden.accessible_max = native(&ata::Command::GET_NATIVE_MAX);
    }
    if asks.configuration_overlay {
        let data = ata_data(drive, &ata::Command::CONFIGURATION_IDENTIFY).ok();
        let sectors = data.and_then(|data| ata::Capabilities::overlay_sectors(&data));
        hidden.configuration_overlay = sectors.map_or(0, beyond);
    }
    found.hidden = hidden;
    Ok(found)
}

/// No eMMC has more write protection groups than this times 32.
const PROTECTION_QUESTIONS: u32 = 4096;

/// What an eMMC says. `Ok(None)` for one of before version 4.41.
///
/// # Errors
/// When the device does not return its registers.
pub fn mmc(drive: &dyn Transport) -> io::Result<Option<Emmc>> {
    let mut bytes = [0; mmc::LENGTH];
    let statuses = drive.mmc(&[mmc::Command::SEND_EXT_CSD], &mut bytes)?;
    if let Some(words) = statuses.into_iter().find_map(mmc::complaint) {
        return Err(io::Error::other(words));
    }
    let Some(registers) = ExtCsd::parse(&bytes) else { return Ok(None) };
    let mut found = Emmc { registers, protected: 0 };
    // Thirty-two groups at once. Not every device has write protection: one that does not answer has none.
    let step = registers.protected_at_once().and_then(|sectors| sectors.checked_mul(32));
    let starts = step.map_or(Vec::new(), |step| {
        (0..PROTECTION_QUESTIONS)
            .map_while(|number| number.checked_mul(step))
            .take_while(|&sector| sector < registers.sectors)
            .collect()
    });
    for sector in starts {
        let mut answer = [0; 8];
        match drive.mmc(&[mmc::Command::write_protection(sector)], &mut answer) {
            Ok(statuses) if statuses.iter().all(|&status| mmc::complaint(status).is_none()) => {
                found.protected += mmc::protected_groups(answer);
            }
            _ => break,
        }
    }
    Ok(Some(found))
}

/// What a SCSI disk says.
///
/// # Errors
/// When commands do not reach the disk.
pub fn scsi(drive: &dyn Transport) -> io::Result<scsi::Capabilities> {
    let mut conflict = false;
    let mut ask = |cdb: &[u8], length: usize| -> io::Result<Vec<u8>> {
        let mut data = vec![0; length];
        let reply = drive.scsi(cdb, Data::In(&mut data), QUESTION)?;
        conflict |= reply.status == RESERVATION_CONFLICT;
        data.truncate(if reply.good() { reply.transferred } else { 0 });
        Ok(data)
    };
    // First of all, while the disk still has something to say of its own and not about our questions.
    let sense = ask(&scsi::REQUEST_SENSE, 252)?;
    let mut supported = |code: u8, action: Option<u8>| -> io::Result<bool> {
        Ok(scsi::capabilities::operation_supported(&ask(&scsi::report_operation(code, action, 64), 64)?))
    };
    let mut kinds = [Operation::Crypto, Operation::Block, Operation::Overwrite].map(|kind| (kind, false));
    for (kind, found) in &mut kinds {
        *found = supported(0x48, Some(scsi::sanitize_action(*kind)))?;
    }
    let (format_unit, write_same) = (supported(0x04, None)?, supported(0x93, None)?);
    let mode = ask(&scsi::mode_sense(8), 8)?;
    let capacity = ask(&scsi::read_capacity(32), 32)?;
    let provisioning = ask(&scsi::inquiry(0xb2, 64), 64)?;
    let (keys, held) = (ask(&scsi::read_keys(512), 512)?, ask(&scsi::read_reservation(64), 64)?);
    let mut reservation = scsi::Reservation::parse(&keys, &held).unwrap_or_default();
    if conflict {
        reservation.kind = reservation.kind.max(1);
    }
    let has = |kind: Operation| kinds.contains(&(kind, true));
    Ok(scsi::Capabilities {
        sanitize: Support::scsi(has, &sense),
        format_unit,
        unmap: scsi::capabilities::unmaps(&provisioning),
        write_same,
        protection: scsi::capabilities::protection(&capacity),
        write_protected: scsi::capabilities::write_protected(&mode),
        reservation,
    })
}

/// Another host has reserved the disk for itself (SAM-6 5.3.1).
const RESERVATION_CONFLICT: u8 = 0x18;

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive that answers everything with this reply.
    struct Answers(Reply);

    impl Transport for Answers {
        fn scsi(&self, _: &[u8], _: Data<'_>, _: std::time::Duration) -> io::Result<Reply> {
            Ok(self.0.clone())
        }
    }

    /// ATA PASS-THROUGH INFORMATION AVAILABLE (SAT-4 12.2.5) reports the registers of a command that ended well.
    #[test]
    fn a_command_ended_well_that_only_reports_its_registers() {
        let answered = |asc: u8, ascq: u8| {
            let mut sense = vec![0x72, 0x01, asc, ascq, 0, 0, 0, 14, 0x09, 0x0c];
            sense.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0x50]);
            let reply = Reply { status: 2, sense, ..Reply::default() };
            ata_transfer(&Answers(reply), &ata::Command::IDENTIFY, Data::None, QUESTION)
        };
        assert!(answered(0x00, 0x1d).is_ok());
        assert!(matches!(answered(0x00, 0x00), Err(ata::Error::Aborted(_))), "any other sense is a failure");
    }
}
