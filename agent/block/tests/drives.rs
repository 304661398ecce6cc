//! The drive-side methods on simulated drives: every answer that a standard allows, and false ones.
//! They show which bytes go to a drive and how its answers are judged, and nothing about any real drive.

use crate::simulated::ata::{AtaDrive, Whim as AtaWhim};
use crate::simulated::emmc::{EmmcDevice, SECTORS, Whim as EmmcWhim};
use crate::simulated::nvme::{NvmeDrive, Whim};
use crate::simulated::opal::{OpalDrive, PSID, Whim as OpalWhim};
use crate::simulated::scsi::ScsiDisk;
use crate::simulated::{Simulated, content};
use block::drive::{Drive, ata_hidden, ata_security};
use block::fake::{FakeDisk, MAGIC};
use block::method::Family::{Ata, Nvme, Scsi};
use block::opal::{Psid, Status};
use block::sanitize::{Operation, State};
use block::{
    Disk, Ending, Method, Phase, Probe, Record, RequiredVerification, Verification, Watch, capabilities,
    erase, erase_requiring,
};
use proptest::prelude::*;
use std::sync::Mutex;
use std::time::Duration;

const OPERATIONS: [Operation; 3] = [Operation::Crypto, Operation::Block, Operation::Overwrite];

fn run(disk: &FakeDisk, transport: &dyn block::transport::Transport, methods: &[Method]) -> Record {
    erase(&Simulated { disk, transport, probe: Probe::default() }, methods, &())
}

fn reason(record: &Record) -> &str {
    match &record.ending {
        Ending::Failed(reason) => reason,
        other => panic!("{other:?} is not a failure"),
    }
}

fn disk() -> FakeDisk {
    FakeDisk::new(content(), 512, vec![])
}

#[test]
fn nvme_sanitize_runs_to_its_end_and_is_read_back() {
    for operation in OPERATIONS {
        let disk = disk();
        let drive = NvmeDrive::new(&disk, Whim::None, 0, 0);
        let record = run(&disk, &drive, &[Method::Sanitize(Nvme, operation)]);
        assert_eq!(record.ending, Ending::Erased, "{operation:?}");
        let seen = record.verification.unwrap();
        assert!(seen.passed && seen.unchanged_samples == 0 && seen.samples > 100);
        assert!(drive.state.lock().unwrap().waited >= Duration::from_secs(3), "it was waited for");
        assert_eq!(record.bytes_erased, 1 << 20);
    }
}

#[test]
fn nvme_sanitize_with_the_stale_success_of_before_is_not_believed() {
    let disk = disk();
    // The last operation was the same one, and succeeded; since then data was written (no Global Data Erased).
    let drive = NvmeDrive::new(&disk, Whim::DoesNothing, 0x001, 0x02);
    let record = run(&disk, &drive, &[Method::Sanitize(Nvme, Operation::Block)]);
    assert!(reason(&record).contains("success of an earlier operation"), "{record:?}");
    // With another operation of before, the log shows that ours never was.
    let drive = NvmeDrive::new(&disk, Whim::DoesNothing, 0x001, 0x04);
    let record = run(&disk, &drive, &[Method::Sanitize(Nvme, Operation::Block)]);
    assert!(reason(&record).contains("does not show that it was done"), "{record:?}");
}

#[test]
fn nvme_sanitize_that_is_over_at_once_is_believed_when_the_log_moved() {
    let disk = disk();
    let drive = NvmeDrive::new(&disk, Whim::Quick, 0x001, 0x04);
    let record = run(&disk, &drive, &[Method::Sanitize(Nvme, Operation::Crypto)]);
    assert_eq!(record.ending, Ending::Erased, "{record:?}");
}

#[test]
fn nvme_sanitize_that_lies_is_found_out_by_reading_back_and_the_next_method_comes() {
    let disk = disk();
    let drive = NvmeDrive::new(&disk, Whim::Lies, 0, 0);
    let record = run(&disk, &drive, &[Method::Sanitize(Nvme, Operation::Crypto), Method::Overwrite]);
    assert_eq!((record.ending, record.method), (Ending::Erased, Some(Method::Overwrite)));
    assert!(record.fallbacks[0].1.contains("sampled sectors are unchanged"), "{:?}", record.fallbacks);
}

#[test]
fn nvme_sanitize_that_fails_or_is_stuck_is_reported() {
    let disk = disk();
    let drive = NvmeDrive::new(&disk, Whim::Fails, 0, 0);
    let record = run(&disk, &drive, &[Method::Sanitize(Nvme, Operation::Block)]);
    assert!(reason(&record).contains("the operation failed"), "{record:?}");
    let drive = NvmeDrive::new(&disk, Whim::Stuck, 0, 0);
    let record = run(&disk, &drive, &[Method::Sanitize(Nvme, Operation::Block)]);
    assert!(reason(&record).contains("the drive is stuck: 0 %"), "{record:?}");
    let waited = drive.state.lock().unwrap().waited;
    assert!(waited >= Duration::from_secs(3600) && waited < Duration::from_secs(7200), "{waited:?}");
}

#[test]
fn nvme_sanitize_that_is_still_running_is_found_and_waited_for() {
    for (command, begun) in [(0x02, 0), (0x04, 1)] {
        let disk = disk();
        let drive = NvmeDrive::new(&disk, Whim::None, 0x002, command);
        let record = run(&disk, &drive, &[Method::Sanitize(Nvme, Operation::Block)]);
        assert_eq!(record.ending, Ending::Erased, "{record:?}");
        // The same operation counts; after another one ours is begun.
        assert_eq!(drive.state.lock().unwrap().begun.len(), begun);
    }
}

/// Cancels once something is being erased.
struct Impatient(Mutex<bool>);

impl Watch for Impatient {
    fn progress(&self, progress: block::Progress) {
        *self.0.lock().unwrap() |= progress.phase == block::Phase::Erasing;
    }
    fn cancelled(&self) -> bool {
        *self.0.lock().unwrap()
    }
}

#[test]
fn a_cancelled_sanitize_is_no_longer_waited_for() {
    let disk = disk();
    let drive = NvmeDrive::new(&disk, Whim::Stuck, 0, 0);
    let target = Simulated { disk: &disk, transport: &drive, probe: Probe::default() };
    let record = erase(&target, &[Method::Sanitize(Nvme, Operation::Block)], &Impatient(Mutex::new(false)));
    assert_eq!(record.ending, Ending::Cancelled);
    assert!(drive.state.lock().unwrap().waited <= Duration::from_secs(2));
}

#[test]
fn ata_sanitize_runs_to_its_end_and_is_read_back() {
    for operation in OPERATIONS {
        let disk = disk();
        let drive = AtaDrive::new(&disk, AtaWhim::None);
        drive.state.lock().unwrap().status = 0x8000;
        let record = run(&disk, &drive, &[Method::Sanitize(Ata, operation)]);
        assert_eq!(record.ending, Ending::Erased, "{operation:?} {record:?}");
    }
}

#[test]
fn ata_sanitize_failures_frozen_drives_and_stale_successes_are_reported() {
    let method = [Method::Sanitize(Ata, Operation::Block)];
    let disk = disk();
    let drive = AtaDrive::new(&disk, AtaWhim::SanitizesNothing);
    drive.state.lock().unwrap().status = 0x8000;
    assert!(reason(&run(&disk, &drive, &method)).contains("success of an earlier operation"));
    drive.state.lock().unwrap().status = 0;
    assert!(reason(&run(&disk, &drive, &method)).contains("does not say that it was done"));
    drive.state.lock().unwrap().status = 0x2000;
    assert!(reason(&run(&disk, &drive, &method)).contains("power the node off and on"));
    let drive = AtaDrive::new(&disk, AtaWhim::SanitizeFails);
    assert!(reason(&run(&disk, &drive, &method)).contains("the operation failed"));
    // A drive in the state of a failure takes the next operation.
    let drive = AtaDrive::new(&disk, AtaWhim::None);
    drive.state.lock().unwrap().failed = true;
    assert_eq!(run(&disk, &drive, &method).ending, Ending::Erased);
}

#[test]
fn ata_secure_erase_normal_and_enhanced_leave_no_password() {
    for method in [Method::AtaErase, Method::AtaEnhancedErase] {
        let disk = disk();
        let drive = AtaDrive::new(&disk, AtaWhim::None);
        let record = run(&disk, &drive, &[method]);
        assert_eq!(record.ending, Ending::Erased, "{method:?} {record:?}");
        let state = drive.state.lock().unwrap();
        assert!(state.password.is_none() && !state.locked);
        let security: Vec<u8> = state.commands.iter().copied().filter(|code| *code >= 0xf1).collect();
        assert_eq!(security, [0xf1, 0xf3, 0xf4], "PREPARE stands directly before ERASE UNIT");
    }
}

#[test]
fn ata_secure_erase_that_fails_takes_its_password_off_again() {
    for whim in [AtaWhim::RefusesErase, AtaWhim::ErasesNothing] {
        let disk = disk();
        let drive = AtaDrive::new(&disk, whim);
        let record = run(&disk, &drive, &[Method::AtaErase]);
        assert!(matches!(record.ending, Ending::Failed(_)), "{whim:?} {record:?}");
        assert!(drive.state.lock().unwrap().password.is_none(), "{whim:?}");
    }
    let disk = disk();
    let drive = AtaDrive::new(&disk, AtaWhim::KeepsPassword);
    let record = run(&disk, &drive, &[Method::AtaErase]);
    assert!(reason(&record).contains("left with the password \"Anneal erase"), "{record:?}");
}

#[test]
fn ata_frozen_locked_and_foreign_passwords() {
    let disk = disk();
    let drive = AtaDrive::new(&disk, AtaWhim::None);
    drive.state.lock().unwrap().frozen = true;
    let record = run(&disk, &drive, &[Method::AtaErase]);
    assert!(
        reason(&record).contains("frozen") && reason(&record).contains("power the node off"),
        "{record:?}"
    );
    assert!(drive.state.lock().unwrap().password.is_none());

    // Another tool died between setting and clearing its password.
    let mut theirs = [0; 32];
    theirs[..4].copy_from_slice(b"NULL");
    let drive = AtaDrive::new(&disk, AtaWhim::None);
    (drive.state.lock().unwrap().password, drive.state.lock().unwrap().locked) = (Some(theirs), true);
    assert_eq!(run(&disk, &drive, &[Method::AtaErase]).ending, Ending::Erased);

    // An unknown password: refused, and one attempt is left to the operator.
    let drive = AtaDrive::new(&disk, AtaWhim::None);
    (drive.state.lock().unwrap().password, drive.state.lock().unwrap().locked) = (Some([9; 32]), true);
    let record = run(&disk, &drive, &[Method::AtaErase]);
    assert!(reason(&record).contains("password that is not known"), "{record:?}");
    let state = drive.state.lock().unwrap();
    assert!(state.wrong < 5 && state.password == Some([9; 32]), "{}", state.wrong);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// An agent that dies at any command of a secure erase, and a power cycle after it, leave nothing that the next
    /// run does not make good.
    #[test]
    fn a_death_at_any_moment_of_a_secure_erase_is_made_good(after in 0usize..12, power_cycle: bool, enhanced: bool) {
        let disk = disk();
        let method = if enhanced { Method::AtaEnhancedErase } else { Method::AtaErase };
        let mut drive = AtaDrive::new(&disk, AtaWhim::None);
        drive.dies_after = Some(after);
        let _ = run(&disk, &drive, &[method]);
        drive.dies_after = None;
        if power_cycle {
            let mut state = drive.state.lock().unwrap();
            state.locked = state.password.is_some();
            state.wrong = 0;
        }
        let probe = Probe::default();
        let had = drive.state.lock().unwrap().password.is_some();
        let rescued = ata_security::rescue(&Drive { transport: &drive, probe: &probe }).unwrap();
        prop_assert_eq!(rescued, had);
        let left = drive.state.lock().unwrap().clone();
        prop_assert!(left.password.is_none() && !left.locked);
        let again = run(&disk, &drive, &[method]);
        // The erase before its death may have left what this one leaves: then its markers show the change.
        prop_assert!(again.ending == Ending::Erased, "{:?}", again);
        prop_assert!(drive.state.lock().unwrap().password.is_none());
    }
}

#[test]
fn scsi_sanitize_and_format_run_to_their_end_and_are_read_back() {
    let methods = OPERATIONS.map(|operation| Method::Sanitize(Scsi, operation));
    for method in methods.into_iter().chain([Method::ScsiFormat]) {
        let disk = disk();
        let drive = ScsiDisk::new(&disk);
        let record = run(&disk, &drive, &[method]);
        assert_eq!(record.ending, Ending::Erased, "{method:?} {record:?}");
        assert!(record.verification.unwrap().passed);
    }
}

#[test]
fn scsi_sanitize_that_fails_lies_or_runs_already() {
    let method = [Method::Sanitize(Scsi, Operation::Block)];
    let disk = disk();
    let drive = ScsiDisk { fails: true, ..ScsiDisk::new(&disk) };
    assert!(reason(&run(&disk, &drive, &method)).contains("sanitize command failed"));
    // What failed before does not keep the next one from succeeding.
    let drive = ScsiDisk { fails: false, ..drive };
    assert_eq!(run(&disk, &drive, &method).ending, Ending::Erased);
    let disk = FakeDisk::new(content(), 512, vec![]);
    let drive = ScsiDisk { lies: true, ..ScsiDisk::new(&disk) };
    assert!(reason(&run(&disk, &drive, &method)).contains("read-back"));
    let drive = ScsiDisk::new(&disk);
    drive.state.lock().unwrap().running = Some((0x04, 0x1b));
    assert_eq!(run(&disk, &drive, &method).ending, Ending::Erased);
    assert_eq!(drive.state.lock().unwrap().commands.len(), 1, "ours was begun after the other one");
}

#[test]
fn hidden_sectors_are_given_back_in_the_order_that_drives_take() {
    let disk = disk();
    for (hidden, sectors) in
        [([100, 0, 0], 2148), ([0, 60, 0], 2108), ([100, 60, 0], 2208), ([0, 0, 30], 2078), ([0, 0, 0], 2048)]
    {
        let drive = AtaDrive::new(&disk, AtaWhim::None).hiding(hidden);
        assert_eq!(ata_hidden::reveal(&drive).unwrap(), sectors, "{hidden:?}");
        assert_eq!(capabilities::ata(&drive).unwrap().hidden.sectors(), 0);
    }
    let drive = AtaDrive::new(&disk, AtaWhim::None).hiding([100, 0, 0]);
    drive.state.lock().unwrap().frozen = true;
    let error = block::fault::chain(&ata_hidden::reveal(&drive).unwrap_err());
    assert!(error.contains("SET MAX ADDRESS EXT failed") && error.contains("power off and on"), "{error}");
    assert!(disk.content() == content(), "no content is touched");
}

#[test]
fn drives_are_asked_what_they_can_do() {
    let disk = disk();
    let drive = NvmeDrive::new(&disk, Whim::None, 0x002, 2);
    let (namespace, _) = capabilities::nvme(&drive, 1).unwrap().unwrap();
    assert!(namespace.sanitize.crypto && namespace.alone);
    assert!(matches!(namespace.sanitize.state, Some(State::Running(_))));

    let drive = AtaDrive::new(&disk, AtaWhim::None).hiding([100, 0, 0]);
    let found = capabilities::ata(&drive).unwrap();
    assert!(found.sanitize.takes(Operation::Overwrite) && found.security.enhanced);
    assert_eq!((found.sectors, found.hidden.host_protected), (2048, 100));
    assert_eq!(found.security.time, Some(Duration::from_secs(120)));

    let drive = ScsiDisk { registered_keys: 2, ..ScsiDisk::new(&disk) };
    let found = capabilities::scsi(&drive).unwrap();
    assert!(found.sanitize.takes(Operation::Crypto) && found.format_unit && found.unmap && found.write_same);
    assert_eq!((found.reservation.keys, found.write_protected), (2, false));
    let probe = Probe { scsi: Some(found), ..Probe::default() };
    assert_eq!(block::judge(&probe).len(), 1, "registered keys: other machines use it");
}

/// What was being done, and how far it was in bytes, each time that progress was reported.
#[derive(Default)]
struct Phases(Mutex<Vec<(Phase, u64)>>);

impl Watch for Phases {
    fn progress(&self, progress: block::Progress) {
        self.0.lock().unwrap().push((progress.phase, progress.done));
    }
    fn cancelled(&self) -> bool {
        false
    }
}

#[test]
fn a_drive_that_is_sanitizing_is_not_read_before_it_was_waited_for() {
    let disk = disk();
    let drive = ScsiDisk::new(&disk);
    drive.state.lock().unwrap().running = Some((0x04, 0x1b));
    let probe = Probe { scsi: Some(capabilities::scsi(&drive).unwrap()), ..Probe::default() };
    assert!(probe.is_sanitizing(), "{probe:?}");
    let (target, phases) = (Simulated { disk: &disk, transport: &drive, probe }, Phases::default());
    let record = erase(&target, &[Method::Sanitize(Scsi, Operation::Block)], &phases);
    assert_eq!(record.ending, Ending::Erased, "{record:?}");
    let phases: Vec<Phase> = phases.0.into_inner().unwrap().iter().map(|seen| seen.0).collect();
    assert!(phases.contains(&Phase::Erasing) && !phases.contains(&Phase::Sampling), "{phases:?}");
}

#[test]
fn the_share_that_a_drive_reports_is_shown_in_bytes() {
    let disk = disk();
    let drive = NvmeDrive::new(&disk, Whim::None, 0, 0);
    let (target, seen) =
        (Simulated { disk: &disk, transport: &drive, probe: Probe::default() }, Phases::default());
    erase(&target, &[Method::Sanitize(Nvme, Operation::Block)], &seen);
    let seen = seen.0.into_inner().unwrap().into_iter();
    let mut done: Vec<u64> = seen.filter(|seen| seen.0 == Phase::Erasing).map(|seen| seen.1).collect();
    done.dedup();
    // 16000 of 65536 at a time.
    assert_eq!(done, [0, 256_000, 512_000, 768_000, 1 << 20]);
}

/// A disk of the kernel's, as far as it says what its drive is asked.
fn listed(transport: &str, ata: bool) -> Disk {
    let hctl = Some("0:0:0:0".to_owned());
    Disk { transport: Some(transport.to_owned()), ata, hctl, ..Disk::default() }
}

#[test]
fn each_kind_of_disk_is_asked_its_own_questions() {
    let disk = disk();
    let kinds = |drive: &dyn block::transport::Transport, listed: &Disk| {
        let probe = block::probe::ask(drive, listed);
        assert_eq!((&probe.disk, probe.opal), (listed, None));
        [probe.nvme.is_some(), probe.ata.is_some(), probe.scsi.is_some()]
    };
    let sata = AtaDrive::new(&disk, AtaWhim::None);
    assert_eq!(kinds(&sata, &listed("sata", true)), [false, true, false]);
    let sas = ScsiDisk::new(&disk);
    assert_eq!(kinds(&sas, &listed("sas", false)), [false, false, true]);
    assert_eq!(kinds(&sas, &listed("scsi", true)), [false, false, true], "it only looks like an ATA drive");
    assert_eq!(
        kinds(&sas, &listed("sata", true)),
        [false; 3],
        "libata's answers to SCSI say nothing of a drive"
    );
    assert_eq!(kinds(&sas, &listed("usb", false)), [false; 3], "a bridge's neither");
    let nvme = NvmeDrive::new(&disk, Whim::None, 0, 0);
    let namespace = Disk { namespace: Some(1), ..Disk::default() };
    assert_eq!(kinds(&nvme, &namespace), [true, false, false]);
    let opal = |status| OpalDrive { disk: &disk, whim: OpalWhim::None, status: Mutex::new(status) };
    assert_eq!(block::probe::ask(&opal(OWNED), &namespace).opal, Some(OWNED));
    assert_eq!(
        block::probe::ask(&opal(Status::default()), &namespace).opal,
        None,
        "the kernel knows it as none"
    );
    assert_eq!(block::probe::ask(&opal(OWNED), &Disk::default()).opal, None, "neither NVMe nor SCSI");
}

#[test]
fn a_frozen_drive_is_not_sent_a_password_and_an_erase_that_left_its_own_is_none() {
    let disk = disk();
    let drive = AtaDrive::new(&disk, AtaWhim::None);
    let mut theirs = [0; 32];
    theirs[..4].copy_from_slice(b"NULL");
    (drive.state.lock().unwrap().password, drive.state.lock().unwrap().frozen) = (Some(theirs), true);
    let probe = Probe::default();
    assert!(!ata_security::rescue(&Drive { transport: &drive, probe: &probe }).unwrap());
    let state = drive.state.lock().unwrap();
    assert!(state.commands.iter().all(|code| *code == 0xec), "only asked what it is: {:x?}", state.commands);
    drop(state);
    let drive = AtaDrive::new(&disk, AtaWhim::ErasesNothing);
    let record = run(&disk, &drive, &[Method::AtaErase]);
    assert!(reason(&record).contains("it is done, and still had its password"), "{record:?}");
}

fn opal(disk: &FakeDisk, whim: OpalWhim, status: Status, psid: &str, methods: &[Method]) -> Record {
    let drive = OpalDrive { disk, whim, status: status.into() };
    let probe = Probe { opal: Some(status), psid: Psid::parse(psid), ..Probe::default() };
    erase(&Simulated { disk, transport: &drive, probe }, methods, &())
}

const OWNED: Status = Status { supported: true, owned: true, locked: false, shadowed: false };

#[test]
fn an_opal_drive_is_reverted_with_its_psid_alone_and_no_psid_is_reported() {
    let both = [Method::OpalRevert, Method::Overwrite];
    let drive = disk();
    let record = opal(&drive, OpalWhim::None, OWNED, PSID, &both);
    assert_eq!((record.ending, record.method), (Ending::Erased, Some(Method::OpalRevert)));
    assert!(record.verification.is_some_and(|seen| seen.passed && seen.samples > 100));

    let other = "FEDCBA9876543210FEDCBA9876543210";
    let drive = disk();
    let record = opal(&drive, OpalWhim::None, OWNED, other, &both);
    let text = format!("{record:?}");
    assert!(!text.contains(other) && !text.contains(PSID), "{text}");
    assert!(record.fallbacks[0].1.contains("does not take the PSID"), "{text}");
    assert_eq!((record.ending, record.method), (Ending::Erased, Some(Method::Overwrite)));
}

#[test]
fn an_opal_drive_that_stays_owned_or_keeps_its_keys_is_found_out() {
    let drive = disk();
    let record = opal(&drive, OpalWhim::DoesNothing, OWNED, PSID, &[Method::OpalRevert]);
    assert!(reason(&record).contains("still owned or locked"), "{record:?}");
    let drive = disk();
    let record = opal(&drive, OpalWhim::Lies, OWNED, PSID, &[Method::OpalRevert]);
    assert!(reason(&record).contains("sampled sectors are unchanged"), "{record:?}");
    let sectors =
        drive.content().chunks(512).zip(content().chunks(512)).filter(|(now, then)| now != then).count();
    assert_eq!(sectors, 256, "only the markers were written");
}

#[test]
fn of_a_locked_opal_drive_nothing_is_sampled_and_nothing_but_its_psid_counts() {
    let locked = Status { locked: true, ..OWNED };
    let mut probe = Probe { opal: Some(locked), ..Probe::default() };
    assert!(!probe.gives_content());
    assert_eq!(block::methods(&probe), []);
    probe.psid = Psid::parse(PSID);
    assert_eq!(block::methods(&probe), [Method::OpalRevert]);
    let drive = disk();
    let record = opal(&drive, OpalWhim::DoesNothing, locked, PSID, &[Method::OpalRevert]);
    assert!(reason(&record).contains("still owned or locked"), "{record:?}");
    assert!(drive.content() == content(), "no marker is written to a locked drive");
    let record = opal(&drive, OpalWhim::None, locked, PSID, &[Method::OpalRevert]);
    let seen = attested(&record);
    assert!(seen.device_status.is_some_and(|status| status.contains("neither owned nor locked")), "{seen:?}");
}

/// The verification of a disk that was erased by the word of its drive alone.
fn attested(record: &Record) -> &Verification {
    assert_eq!(record.ending, Ending::Erased, "{record:?}");
    let seen = record.verification.as_ref().unwrap();
    assert_eq!(
        (seen.kind.as_str(), seen.expected.as_str(), seen.passed),
        ("device-attested", "changed", true)
    );
    assert_eq!((seen.samples, seen.markers, seen.unchanged_samples), (0, 0, 0));
    seen
}

#[test]
fn what_only_the_drive_says_is_not_enough_where_reading_is_required_or_contradicts() {
    let locked = Status { locked: true, ..OWNED };
    let revert = |disk: &FakeDisk, whim, required| {
        let drive = OpalDrive { disk, whim, status: locked.into() };
        let probe = Probe { opal: Some(locked), psid: Psid::parse(PSID), ..Probe::default() };
        let target = Simulated { disk, transport: &drive, probe };
        erase_requiring(&target, &[Method::OpalRevert], required, &())
    };
    let record = revert(&disk(), OpalWhim::None, RequiredVerification::Read);
    assert!(reason(&record).contains("only the drive says so"), "{record:?}");
    assert_eq!(revert(&disk(), OpalWhim::None, RequiredVerification::None).ending, Ending::Erased);
    // It keeps its keys, and what was on it is recognised.
    let mut signed = content();
    signed[4096..4104].copy_from_slice(MAGIC);
    let known = FakeDisk::new(signed.clone(), 512, vec![]);
    let record = revert(&known, OpalWhim::Lies, RequiredVerification::Device);
    assert!(reason(&record).contains("libblkid still finds fake"), "{record:?}");
    assert!(known.content() == signed, "nothing was wiped that speaks against the drive");
}

#[test]
fn a_drive_that_is_found_sanitizing_attests_the_crypto_erase_that_its_log_reports() {
    let disk = disk();
    let drive = NvmeDrive::new(&disk, Whim::None, 0x002, 4);
    let nvme = capabilities::nvme(&drive, 1).unwrap().map(|(namespace, _)| namespace);
    let target = Simulated { disk: &disk, transport: &drive, probe: Probe { nvme, ..Probe::default() } };
    let record = erase(&target, &[Method::Sanitize(Nvme, Operation::Crypto)], &());
    assert!(attested(&record).device_status.is_some_and(|status| status.starts_with("NVMe sanitize status")));

    // A SCSI disk keeps no log of what succeeded: its operation must have been seen running.
    for quick in [false, true] {
        let disk = FakeDisk::new(content(), 512, vec![]);
        let drive = ScsiDisk { quick, ..ScsiDisk::new(&disk) };
        drive.state.lock().unwrap().running = Some((0x04, 0x1b));
        let probe = Probe { scsi: Some(capabilities::scsi(&drive).unwrap()), ..Probe::default() };
        let target = Simulated { disk: &disk, transport: &drive, probe };
        let record = erase(&target, &[Method::Sanitize(Scsi, Operation::Crypto)], &());
        if quick {
            assert!(reason(&record).contains("no sample shows that it has changed"), "{record:?}");
        } else {
            attested(&record);
        }
    }
}

fn emmc(disk: &FakeDisk, whim: EmmcWhim) -> (Record, (u32, u32)) {
    let device = EmmcDevice::new(disk, whim);
    let probe = Probe { mmc: capabilities::mmc(&device).unwrap(), ..Probe::default() };
    assert_eq!(probe.mmc.unwrap().protected, u32::from(whim == EmmcWhim::Skips));
    assert!(block::methods(&probe).contains(&Method::EmmcSanitize));
    let record = erase(&Simulated { disk, transport: &device, probe }, &[Method::EmmcSanitize], &());
    let seen = *device.seen.lock().unwrap();
    (record, seen)
}

#[test]
fn an_emmc_is_erased_group_by_group_sanitized_and_read_back() {
    let drive = disk();
    let (record, seen) = emmc(&drive, EmmcWhim::None);
    assert_eq!((record.ending, seen), (Ending::Erased, (SECTORS, 1)));
    assert!(record.verification.is_some_and(|seen| seen.passed && seen.samples > 100));
}

#[test]
fn an_emmc_that_leaves_groups_or_refuses_is_reported() {
    let (record, seen) = emmc(&disk(), EmmcWhim::Skips);
    assert!(reason(&record).contains("write protected were left") && seen.1 == 0, "{record:?}");
    let (record, _) = emmc(&disk(), EmmcWhim::RefusesSanitize);
    assert!(reason(&record).contains("refuses the switch"), "{record:?}");
    let (record, _) = emmc(&disk(), EmmcWhim::Lies);
    assert!(reason(&record).contains("sampled sectors are unchanged"), "{record:?}");
}
