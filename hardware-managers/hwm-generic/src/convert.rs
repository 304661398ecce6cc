//! Converts records, progress and plans of `block` into those of the protocol.

use crate::job::{Job, express};
use crate::pace;
use crate::settings::Settings;
use agent_protocol::record::{
    DiskRecord, ERASE_METADATA, EraseReport, Fallback, IgnoredController, Outcome, Verification,
};
use block::{Disk, DiskDecision, Ending, Level, MetadataRecord, Method, Plan, PlannedMethod, Probe, Record};
use hwm_sdk::{StepError, StepOutcome};
use serde_json::{Value, json};
use std::time::Duration;

/// Type of the media of a disk, and how it is attached. The agent does not see what is behind a volume or a network.
fn media(disk: &Disk) -> String {
    let transport = disk.transport.as_deref().unwrap_or("unknown");
    let kind = match transport {
        _ if disk.raid_volume => "virtual",
        "virtio" | "iscsi" | "fc" | "loop" => "virtual",
        _ if disk.rotational => "magnetic",
        _ => "flash",
    };
    format!("{kind} ({transport})")
}

/// A record of a disk that nothing has been done to.
pub(crate) fn untouched(disk: &Disk, outcome: Outcome, reason: String) -> DiskRecord {
    DiskRecord {
        device: disk.path.to_string_lossy().into_owned(),
        serial: disk.serial.clone(),
        wwn: disk.wwn.clone(),
        model: disk.model.clone(),
        media: Some(media(disk)),
        size: disk.size,
        outcome,
        reason: Some(reason),
        exempt: None,
        method: None,
        level: None,
        standard: None,
        fallbacks: Vec::new(),
        bytes_erased: 0,
        resumed_from: None,
        verification: None,
        rebuilt: Vec::new(),
        out_of_reach: Vec::new(),
        started_at: None,
        finished_at: None,
    }
}

/// The record of an erase.
pub(crate) fn erased(disk: &Disk, record: Record) -> DiskRecord {
    let (outcome, reason) = outcome(record.ending, Outcome::Erased);
    // A failed erase has reached no level.
    let reached = record.method.filter(|_| outcome == Outcome::Erased);
    let fallback =
        |(method, error): (block::Method, String)| Fallback { method: method.as_str().into(), error };
    DiskRecord {
        reason,
        method: record.method.map(|method| method.as_str().to_owned()),
        level: reached.map(|method| method.level(disk.rotational).as_str().to_owned()),
        standard: reached.map(|method| method.standard().to_owned()),
        fallbacks: record.fallbacks.into_iter().map(fallback).collect(),
        bytes_erased: record.bytes_erased,
        resumed_from: record.resumed_from,
        verification: record.verification.as_ref().map(verification),
        ..untouched(disk, outcome, String::new())
    }
}

/// The record of a metadata erase.
pub(crate) fn metadata_erased(disk: &Disk, record: MetadataRecord) -> DiskRecord {
    let (outcome, reason) = outcome(record.ending, Outcome::MetadataErased);
    DiskRecord {
        reason,
        method: Some(ERASE_METADATA.to_owned()),
        bytes_erased: record.bytes_erased,
        verification: record.verification.as_ref().map(verification),
        ..untouched(disk, outcome, String::new())
    }
}

/// A metadata erase that came after an erase that failed, whose methods it keeps.
pub(crate) fn after(tried: DiskRecord, mut record: DiskRecord) -> DiskRecord {
    record.fallbacks = tried.fallbacks;
    let error = tried.reason.unwrap_or_default();
    record.fallbacks.extend(tried.method.map(|method| Fallback { method, error }));
    record
}

fn outcome(ending: Ending, good: Outcome) -> (Outcome, Option<String>) {
    match ending {
        Ending::Erased => (good, None),
        Ending::Failed(reason) => (Outcome::Failed, Some(reason)),
        Ending::Cancelled => (Outcome::Failed, Some("cancelled before it was done".to_owned())),
    }
}

fn verification(seen: &block::Verification) -> Verification {
    Verification {
        kind: seen.kind.as_str().to_owned(),
        bytes_read: seen.bytes_read,
        expected: seen.expected.as_str().to_owned(),
        mismatched_bytes: seen.mismatched_bytes,
        unchanged_samples: seen.unchanged_samples,
        samples: seen.samples,
        markers: seen.markers,
        markers_found: seen.markers_found,
        device_status: seen.device_status.map(str::to_owned),
        seed: seen.seed.map(|seed| seed.iter().map(|byte| format!("{byte:02x}")).collect()),
        passed: seen.passed,
    }
}

/// A plan as the JSON of `HardwareManager::plan`.
pub(crate) fn plan(job: Job, probes: &[Probe], plan: &Plan, settings: &Settings) -> Value {
    let disk = |(probe, decision): (&Probe, &DiskDecision)| {
        let (what, methods, reason) = match decision {
            DiskDecision::Erase(planned) => ("erase", methods(job, probe, planned, settings), None),
            DiskDecision::Leave(reason) => ("leave", Vec::new(), Some(reason)),
            DiskDecision::Refuse(reason) => ("refuse", Vec::new(), Some(reason)),
        };
        let disk = &probe.disk;
        let mut entry = json!({"device": disk.path, "serial": disk.serial, "wwn": disk.wwn, "model": disk.model,
                               "size": disk.size,
                               // wording: wire name
                               "fate": what, "reason": reason, "methods": methods});
        let hidden = block::hidden_area::hidden_sectors(probe);
        if plan.reveals && hidden > 0 && what == "erase" {
            entry["gives_back_sectors"] = hidden.into();
        }
        entry
    };
    let disks: Vec<Value> = probes.iter().zip(&plan.decisions).map(disk).collect();
    let take_down: Vec<String> = plan.take_down.iter().map(|step| format!("take down: {step}")).collect();
    json!({"refuses": plan.refuses(), "estimate_s": plan.estimate().as_secs(),
           "deadline_s": deadline(job, probes, plan, settings).as_secs(), "take_down": take_down, "disks": disks})
}

/// Deadline of the step.
fn deadline(job: Job, probes: &[Probe], plan: &Plan, settings: &Settings) -> Duration {
    let disk = |(probe, decision): (&Probe, &DiskDecision)| match (decision, job) {
        (DiskDecision::Erase(methods), Job::Erase) => {
            Some(pace::longest(probe, &methods.iter().map(|planned| planned.method).collect::<Vec<_>>()))
        }
        (DiskDecision::Erase(_), Job::Express) => Some(pace::longest(probe, &express(probe, settings))),
        (DiskDecision::Erase(_), Job::Metadata) => Some(Duration::ZERO),
        (DiskDecision::Leave(_) | DiskDecision::Refuse(_), _) => None,
    };
    let disks: Vec<Duration> = probes.iter().zip(&plan.decisions).filter_map(disk).collect();
    settings.deadline.unwrap_or_else(|| pace::allowed(&disks, settings.concurrency))
}

/// The methods that are tried on a disk, in order.
fn methods(job: Job, probe: &Probe, methods: &[PlannedMethod], settings: &Settings) -> Vec<Value> {
    let described = |method: Method, level: Level, estimate: Duration, reason: &str| {
        json!({"method": method.as_str(), "level": level.as_str(), "estimate_s": estimate.as_secs(),
               "abortable": method.abortable(), "reason": reason})
    };
    let metadata = || {
        json!({"method": ERASE_METADATA, "level": null, "estimate_s": 0, "abortable": true,
               "reason": "partition tables and signatures only"})
    };
    match job {
        Job::Erase => methods
            .iter()
            .map(|planned| described(planned.method, planned.level, planned.estimate, &planned.reason))
            .collect(),
        Job::Metadata => vec![metadata()],
        Job::Express => {
            let by_command = express(probe, settings).into_iter().map(|method| {
                let level = method.level(probe.disk.rotational);
                described(method, level, block::plan::estimate(probe, method), "one command of the drive")
            });
            by_command.chain([metadata()]).collect()
        }
    }
}

/// The report as the result of a step.
pub(crate) fn report(report: &EraseReport) -> Value {
    // Plain data with string keys: this cannot fail, and a null would say so.
    serde_json::to_value(report).unwrap_or(Value::Null)
}

/// How a step ended, with the storage controllers that were ignored in its report.
pub(crate) fn with_ignored(
    outcome: Result<StepOutcome, StepError>,
    ignored: &[IgnoredController],
) -> Result<StepOutcome, StepError> {
    let with = |mut report: Value| {
        if let (Some(report), false) = (report.as_object_mut(), ignored.is_empty()) {
            report.insert("ignored_controllers".to_owned(), json!(ignored));
        }
        report
    };
    match outcome {
        Ok(StepOutcome::Done(report)) => Ok(StepOutcome::Done(with(report))),
        Ok(StepOutcome::RebootRequested(report)) => Ok(StepOutcome::RebootRequested(with(report))),
        Err(StepError::Failed { reason, report }) => Err(StepError::Failed { reason, report: with(report) }),
        Err(StepError::Cancelled { report }) => Err(StepError::Cancelled { report: with(report) }),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ending: Ending) -> Record {
        Record {
            ending,
            method: Some(Method::AtaEnhancedErase),
            fallbacks: vec![(Method::Overwrite, "bad sector".to_owned())],
            bytes_erased: 7,
            resumed_from: None,
            verification: None,
        }
    }

    #[test]
    fn only_an_erased_disk_has_a_level_and_a_standard() {
        let disk = Disk { rotational: true, size: 8, ..Disk::default() };
        let done = erased(&disk, record(Ending::Erased));
        assert_eq!((done.outcome, done.level.as_deref()), (Outcome::Erased, Some("purge")));
        assert!(done.standard.is_some_and(|standard| standard.contains("purge")));
        for ending in [Ending::Failed("stuck".to_owned()), Ending::Cancelled] {
            let failed = erased(&disk, record(ending));
            assert_eq!((failed.outcome, failed.level, failed.standard), (Outcome::Failed, None, None));
            assert!(failed.reason.is_some());
            assert_eq!(
                failed.method.as_deref(),
                Some("ata-secure-erase-enhanced"),
                "what was tried is named"
            );
            assert_eq!((failed.bytes_erased, failed.fallbacks.len()), (7, 1));
        }
    }

    #[test]
    fn the_record_of_a_metadata_erase_has_what_was_written_and_why_it_failed() {
        let disk = Disk { size: 8, ..Disk::default() };
        let record =
            |ending| MetadataRecord { ending, bytes_erased: 5, removed: Vec::new(), verification: None };
        let done = metadata_erased(&disk, record(Ending::Erased));
        assert_eq!((done.outcome, done.reason.as_deref()), (Outcome::MetadataErased, None));
        assert_eq!((done.bytes_erased, done.size), (5, 8));
        let failed = metadata_erased(&disk, record(Ending::Failed("bad sector".to_owned())));
        assert_eq!((failed.outcome, failed.reason.as_deref()), (Outcome::Failed, Some("bad sector")));
        assert_eq!(failed.bytes_erased, 5, "what was written before it failed");
    }
}

#[cfg(test)]
mod media_tests {
    use super::*;

    #[test]
    fn the_media_of_a_disk_are_named_with_how_it_is_attached() {
        let of = |transport: &str, rotational: bool, raid_volume: bool| {
            media(&Disk { transport: Some(transport.into()), rotational, raid_volume, ..Disk::default() })
        };
        assert_eq!(of("sata", true, false), "magnetic (sata)");
        assert_eq!(of("nvme", false, false), "flash (nvme)");
        assert_eq!(of("scsi", true, true), "virtual (scsi)");
        assert_eq!(of("virtio", true, false), "virtual (virtio)");
    }
}
