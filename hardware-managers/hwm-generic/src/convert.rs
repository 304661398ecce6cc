//! From the words of `block` to those of the protocol.

use agent_protocol::progress::{DiskProgress, Phase};
use agent_protocol::record::{DiskRecord, EraseReport, Fallback, Outcome, Verification};
use block::{Disk, Ending, Fate, MetadataRecord, Plan, Probe, Record, Way};
use serde_json::{Value, json};

/// Name of the method of `erase_devices_metadata`.
pub(crate) const METADATA: &str = "erase-metadata";

/// A record of a disk that nothing has been done to.
pub(crate) fn untouched(disk: &Disk, outcome: Outcome, reason: String) -> DiskRecord {
    DiskRecord {
        device: disk.path.to_string_lossy().into_owned(),
        serial: disk.serial.clone(),
        wwn: disk.wwn.clone(),
        model: disk.model.clone(),
        size: disk.size,
        outcome,
        reason: Some(reason),
        method: None,
        level: None,
        standard: None,
        fallbacks: Vec::new(),
        bytes_erased: 0,
        verification: None,
        started_at: None,
        finished_at: None,
    }
}

/// The record of an erase.
pub(crate) fn erased(disk: &Disk, record: Record) -> DiskRecord {
    let (outcome, reason) = outcome(record.ending, Outcome::Erased);
    // What failed has reached nothing.
    let reached = record.method.filter(|_| outcome == Outcome::Erased);
    let fallback =
        |(method, error): (block::Method, String)| Fallback { method: method.as_str().into(), error };
    DiskRecord {
        outcome,
        reason,
        method: record.method.map(|method| method.as_str().to_owned()),
        level: reached.map(|method| method.level(disk.rotational).as_str().to_owned()),
        standard: reached.map(|method| method.standard(disk.rotational).to_owned()),
        fallbacks: record.fallbacks.into_iter().map(fallback).collect(),
        bytes_erased: record.bytes_erased,
        verification: record.verification.as_ref().map(verification),
        ..untouched(disk, outcome, String::new())
    }
}

/// The record of a metadata erase.
pub(crate) fn metadata_erased(disk: &Disk, record: MetadataRecord) -> DiskRecord {
    let (outcome, reason) = outcome(record.ending, Outcome::MetadataErased);
    DiskRecord {
        outcome,
        reason,
        method: Some(METADATA.to_owned()),
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
        passed: seen.passed,
    }
}

/// A plan in words.
pub(crate) fn plan(probes: &[Probe], plan: &Plan) -> Value {
    let way = |way: &Way| {
        json!({"method": way.method.as_str(), "level": way.level.as_str(), "estimate_s": way.estimate.as_secs(),
               "abortable": way.method.abortable(), "reason": way.reason})
    };
    let disk = |(probe, fate): (&Probe, &Fate)| {
        let (what, ways, reason) = match fate {
            Fate::Erase(ways) => ("erase", ways.iter().map(way).collect(), None),
            Fate::Leave(reason) => ("leave", Vec::new(), Some(reason)),
            Fate::Refuse(reason) => ("refuse", Vec::new(), Some(reason)),
        };
        let disk = &probe.disk;
        json!({"device": disk.path, "serial": disk.serial, "wwn": disk.wwn, "size": disk.size, "fate": what,
               "reason": reason, "methods": ways})
    };
    let disks: Vec<Value> = probes.iter().zip(&plan.fates).map(disk).collect();
    json!({"refuses": plan.refuses(), "estimate_s": plan.estimate().as_secs(), "disks": disks})
}

/// A disk that waits for its turn.
pub(crate) fn pending(disk: &Disk) -> DiskProgress {
    DiskProgress {
        device: disk.path.to_string_lossy().into_owned(),
        serial: disk.serial.clone(),
        phase: Phase::Pending,
        method: None,
        bytes_done: 0,
        bytes_total: disk.size,
        rate: 0,
        eta: None,
    }
}

/// Take over the progress of a disk.
pub(crate) fn advance(entry: &mut DiskProgress, progress: block::Progress) {
    entry.phase = match progress.phase {
        block::Phase::Sampling => Phase::Sampling,
        block::Phase::Erasing => Phase::Erasing,
        block::Phase::Verifying => Phase::Verifying,
    };
    entry.method = progress.method.map(|method| method.as_str().to_owned());
    entry.bytes_done = progress.done;
    entry.bytes_total = progress.total;
    entry.rate = progress.rate;
    entry.eta = progress.eta.map(|eta| eta.as_secs());
}

/// The report as the result of a step.
pub(crate) fn report(report: &EraseReport) -> Value {
    // Plain data with string keys: this cannot fail, and a null would say so.
    serde_json::to_value(report).unwrap_or(Value::Null)
}
