//! Carries out the plan of an erase step: one thread for each disk, and one report of all disks.

use crate::clock::unix_now;
use crate::convert::{self, untouched};
use crate::disk_progress;
use crate::exempt::exempt;
use crate::job::{Job, express};
use crate::pace::{Deadline, Stall, longest};
use crate::rebuild::{RebuildMode, Volumes};
use crate::resume::CheckpointWriter;
use crate::settings::Settings;
use agent_protocol::progress::{Phase, Progress};
use agent_protocol::record::{DiskRecord, EraseReport, Outcome};
use block::fault::chain;
use block::{
    Checkpoint, Device, Disk, DiskDecision, Ending, Method, Plan, Probe, RequiredVerification, Roots, Watch,
};
use hwm_sdk::{StepContext, StepError, StepOutcome};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// State of a disk during the step.
enum DiskState {
    /// Its record is final, and other disks may be written.
    Final(Box<DiskRecord>),
    /// It must not be touched, and may hold data of the node.
    Blocked(Box<DiskRecord>),
    /// To be written, not yet opened.
    Chosen(Box<Probe>, Vec<Method>),
    /// Opened, and with its record once it was written.
    Open(Box<Device>, Vec<Method>, Option<Box<DiskRecord>>),
}

/// Make the drives that hide sectors (ATA HPA and DCO) show them, once nothing uses the disks. Returns true if there
/// were any; then the survey of the disks is out of date.
pub(crate) fn reveal(roots: &Roots, probes: &[Probe], plan: &Plan) -> Result<bool, StepError> {
    let hiding = |(probe, decision): &(&Probe, &DiskDecision)| {
        plan.reveals
            && matches!(decision, DiskDecision::Erase(_))
            && block::hidden_area::hidden_sectors(probe) > 0
    };
    let hiding: Vec<&Disk> =
        probes.iter().zip(&plan.decisions).filter(hiding).map(|(probe, _)| &probe.disk).collect();
    if hiding.is_empty() {
        return Ok(false);
    }
    let disks: Vec<Disk> = probes.iter().map(|probe| probe.disk.clone()).collect();
    take_down(roots, plan, &disks)?;
    for disk in hiding {
        block::hidden_area::reveal(roots, disk).map_err(|error| {
            not_begun(&disks, format!("{}: {}", disk.describe(), chain(&error)), "not touched")
        })?;
        tracing::warn!(device = %disk.path.display(), "hidden sectors were given back");
    }
    Ok(true)
}

fn take_down(roots: &Roots, plan: &Plan, disks: &[Disk]) -> Result<(), StepError> {
    block::take_down(roots, &plan.take_down)
        .map_err(|error| not_begun(disks, chain(&error), "not touched: it is in use"))
}

/// The error of a run that ended before the first byte of any disk was written.
fn not_begun(disks: &[Disk], why: String, of_each: &str) -> StepError {
    let untouched = |disk| untouched(disk, Outcome::Skipped, of_each.to_owned());
    let report = convert::report(&EraseReport {
        disks: disks.iter().map(untouched).collect(),
        ..EraseReport::default()
    });
    StepError::Failed { reason: format!("nothing was written to any disk: {why}"), report }
}

impl DiskState {
    /// Longest time that the disk takes, if it is to be written.
    fn longest(&self) -> Option<Duration> {
        match self {
            DiskState::Chosen(probe, methods) => Some(longest(probe, methods)),
            DiskState::Final(_) | DiskState::Blocked(_) | DiskState::Open(..) => None,
        }
    }
}

/// What holds for each disk of a step.
struct Limits {
    deadline: Deadline,
    /// How long a disk may make no progress before the stall is reported.
    stall: Duration,
    /// What each erase must be verified by.
    required: RequiredVerification,
}

/// Run the plan. All disks are opened exclusively before the first is written.
pub(crate) fn run(
    roots: &Roots,
    job: Job,
    surveyed: Vec<Probe>,
    plan: Plan,
    settings: &Settings,
    volumes: &Volumes,
    context: &StepContext,
) -> Result<StepOutcome, StepError> {
    let disks: Vec<_> = surveyed.iter().map(|probe| probe.disk.clone()).collect();
    let kept = &settings.request.policy.skip;
    let exempt: Vec<_> = surveyed.iter().map(|probe| exempt(probe, kept)).collect();
    let refuses = plan.refuses();
    let begun = Instant::now();
    if !refuses {
        take_down(roots, &plan, &disks)?;
    }
    let mut states: Vec<DiskState> = surveyed
        .into_iter()
        .zip(plan.decisions)
        .map(|(probe, decision)| state_of(job, probe, decision, settings))
        .collect();
    let takes: Vec<Duration> = states.iter().filter_map(DiskState::longest).collect();
    let limits = Limits {
        deadline: Deadline::new(begun, settings.deadline, &takes, settings.concurrency),
        stall: settings.stall,
        required: settings.required,
    };
    if !refuses {
        open_all(roots, &mut states);
    }
    let blocked = states.iter().any(|state| matches!(state, DiskState::Blocked(_)));
    if !blocked {
        tracing::info!(disks = states.len(), ?job, "all disks judged, beginning");
        context.report(Progress {
            disks: disks.iter().map(disk_progress::pending).collect(),
            ..Progress::default()
        });
        remember(&states, volumes);
        let checkpoints = CheckpointWriter::new(crate::ERASE_DEVICES, &disks, context);
        run_all(job, &mut states, settings.concurrency, &checkpoints, &limits, context);
        if volumes.mode == RebuildMode::Rebuild && job == Job::Erase && !context.is_cancelled() {
            rebuild(&mut states, volumes);
        }
    }
    conclude(&states, &disks, &exempt, &limits.deadline, context)
}

fn state_of(job: Job, probe: Probe, decision: DiskDecision, settings: &Settings) -> DiskState {
    let skipped = |reason: String| Box::new(untouched(&probe.disk, Outcome::Skipped, reason));
    match decision {
        DiskDecision::Erase(methods) => {
            let methods = match job {
                Job::Erase => methods.iter().map(|planned| planned.method).collect(),
                Job::Express => express(&probe, settings),
                Job::Metadata => Vec::new(),
            };
            DiskState::Chosen(Box::new(probe), methods)
        }
        DiskDecision::Leave(reason) => DiskState::Final(skipped(reason)),
        DiskDecision::Refuse(reason) => DiskState::Blocked(skipped(reason)),
    }
}

fn open_all(roots: &Roots, states: &mut [DiskState]) {
    for state in states {
        if let DiskState::Chosen(probe, methods) = state {
            *state = match Device::open(roots, probe) {
                Ok(device) => DiskState::Open(Box::new(device), std::mem::take(methods), None),
                Err(error) => {
                    DiskState::Blocked(Box::new(untouched(&probe.disk, Outcome::Failed, chain(&error))))
                }
            };
        }
    }
}

fn remember(states: &[DiskState], volumes: &Volumes) {
    for state in states {
        if let DiskState::Open(device, ..) = state
            && volumes.mode != RebuildMode::None
        {
            volumes.remembered.remember(device);
        }
    }
}

fn rebuild(states: &mut [DiskState], volumes: &Volumes) {
    let done = |state| match state {
        &mut DiskState::Open(ref device, _, Some(ref mut record)) => Some((&**device, &mut **record)),
        _ => None,
    };
    let mut disks: Vec<(&Device, &mut DiskRecord)> = states.iter_mut().filter_map(done).collect();
    volumes.remembered.rebuild(&mut disks);
}

/// Erase the open disks, at most `concurrency` at once.
fn run_all(
    job: Job,
    states: &mut [DiskState],
    concurrency: usize,
    checkpoints: &CheckpointWriter<'_>,
    limits: &Limits,
    context: &StepContext,
) {
    let count = states.len();
    let slots: Vec<Mutex<&mut DiskState>> = states.iter_mut().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..concurrency.min(count) {
            scope.spawn(|| {
                while let Some(slot) = slots.get(next.fetch_add(1, Ordering::AcqRel)) {
                    let mut state = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    if let DiskState::Open(device, methods, record) = &mut **state
                        && !context.is_cancelled()
                        && !limits.deadline.passed()
                    {
                        *record = Some(Box::new(run_one(job, device, methods, checkpoints, limits, context)));
                    }
                }
            });
        }
    });
}

fn run_one(
    job: Job,
    device: &Device,
    methods: &[Method],
    checkpoints: &CheckpointWriter<'_>,
    limits: &Limits,
    context: &StepContext,
) -> DiskRecord {
    let device_name = device.disk().path.to_string_lossy().into_owned();
    // Express erases are never resumed: they overwrite metadata only.
    let checkpoints = (job == Job::Erase).then_some((checkpoints, device.disk()));
    let watcher = Watcher { device: device_name, checkpoints, limits, context, stall: Mutex::default() };
    let started_at = unix_now();
    let metadata = || convert::metadata_erased(device.disk(), block::erase_metadata(device, &watcher));
    let record = match job {
        Job::Erase => {
            let record = match checkpoints.and_then(|(checkpoints, disk)| checkpoints.take(disk)) {
                Some(from) => block::resume(device, methods, limits.required, &from, &watcher),
                None => block::erase_requiring(device, methods, limits.required, &watcher),
            };
            convert::erased(device.disk(), record)
        }
        Job::Metadata => metadata(),
        Job::Express if methods.is_empty() => metadata(),
        Job::Express => {
            let record = block::erase_requiring(device, methods, limits.required, &watcher);
            let then_metadata = metadata_is_left(&record.ending, device.probe());
            let tried = convert::erased(device.disk(), record);
            if then_metadata { convert::after(tried, metadata()) } else { tried }
        }
    };
    let late = is_late(record.outcome, context.is_cancelled(), limits.deadline.passed());
    let reason = match record.reason {
        Some(reason) if late => Some(format!("{}: {reason}", limits.deadline.text())),
        reason => reason,
    };
    let out_of_reach = device.probe().out_of_reach();
    let record = DiskRecord { reason, out_of_reach, ..record };
    let (outcome, reason) = (record.outcome, record.reason.as_deref());
    tracing::info!(device = %watcher.device, ?outcome, method = record.method, reason, "disk done");
    watcher.done();
    DiskRecord { started_at: Some(started_at), finished_at: Some(unix_now()), ..record }
}

/// Whether the deadline, and neither the disk nor a cancelled step, ended an erase.
fn is_late(outcome: Outcome, cancelled: bool, passed: bool) -> bool {
    outcome == Outcome::Failed && !cancelled && passed
}

/// Whether an express erase goes on with the metadata after its single command. What a locked drive shows is not where its
/// metadata is.
fn metadata_is_left(ending: &Ending, probe: &Probe) -> bool {
    matches!(ending, Ending::Failed(_)) && !probe.is_locked()
}

/// Success only when every disk was erased, or skipped for a reason that leaves no data behind.
fn conclude(
    states: &[DiskState],
    disks: &[Disk],
    exempt: &[Option<&str>],
    deadline: &Deadline,
    context: &StepContext,
) -> Result<StepOutcome, StepError> {
    let blocked = states.iter().any(|state| matches!(state, DiskState::Blocked(_)));
    let mut failures = Vec::new();
    let mut records = Vec::new();
    for ((state, disk), exempt) in states.iter().zip(disks).zip(exempt) {
        let record = match state {
            DiskState::Final(record) | DiskState::Blocked(record) | DiskState::Open(_, _, Some(record)) => {
                DiskRecord::clone(record)
            }
            DiskState::Chosen(..) | DiskState::Open(_, _, None) => {
                let reason = if blocked {
                    "not touched, since another disk of the node must not be".to_owned()
                } else if context.is_cancelled() {
                    "cancelled before it was begun".to_owned()
                } else {
                    format!("{}: not begun", deadline.text())
                };
                untouched(disk, Outcome::Skipped, reason)
            }
        };
        let not_begun = matches!(state, DiskState::Chosen(..) | DiskState::Open(_, _, None)) && !blocked;
        if matches!(state, DiskState::Blocked(_)) || record.outcome == Outcome::Failed || not_begun {
            failures.push(format!("{}: {}", disk.describe(), record.reason.as_deref().unwrap_or("unknown")));
        }
        records.push(DiskRecord { exempt: exempt.map(str::to_owned), ..record });
    }
    let none = records.is_empty();
    let mut report = convert::report(&EraseReport { disks: records, ..EraseReport::default() });
    if none {
        tracing::warn!("no disk was found, so there was nothing to erase");
        report["note"] = "no disk was found, so there was nothing to erase".into();
    }
    if blocked {
        let reason = format!("nothing was written to any disk: {}", failures.join("; "));
        return Err(StepError::Failed { reason, report });
    }
    if context.is_cancelled() && !failures.is_empty() {
        return Err(StepError::Cancelled { report });
    }
    if failures.is_empty() {
        return Ok(StepOutcome::Done(report));
    }
    Err(StepError::Failed { reason: failures.join("; "), report })
}

/// Carries the progress of one disk to the step's context.
struct Watcher<'a> {
    device: String,
    checkpoints: Option<(&'a CheckpointWriter<'a>, &'a Disk)>,
    limits: &'a Limits,
    stall: Mutex<Stall>,
    context: &'a StepContext,
}

impl Watcher<'_> {
    fn done(&self) {
        self.context.update(|progress| {
            for entry in progress.disks.iter_mut().filter(|entry| entry.device == self.device) {
                entry.phase = Phase::Done;
                (entry.rate, entry.eta, entry.stalled_since) = (0, None, None);
            }
        });
    }
}

impl Watch for Watcher<'_> {
    fn progress(&self, seen: block::Progress) {
        let mut stall = self.stall.lock().unwrap_or_else(PoisonError::into_inner);
        let stalled_since = stall.since(seen, self.limits.stall, Instant::now(), unix_now());
        drop(stall);
        self.context.update(|progress| {
            for entry in progress.disks.iter_mut().filter(|entry| entry.device == self.device) {
                disk_progress::advance(entry, seen);
                entry.stalled_since = stalled_since;
            }
        });
    }

    fn cancelled(&self) -> bool {
        self.context.is_cancelled() || self.limits.deadline.passed()
    }

    fn checkpoint(&self, checkpoint: Checkpoint) {
        if let Some((checkpoints, disk)) = self.checkpoints {
            checkpoints.keep(disk, &checkpoint);
        }
    }

    fn resting(&self, temperature: Option<block::temperature::Temperature>) {
        // A disk that cools down is not stalled.
        *self.stall.lock().unwrap_or_else(PoisonError::into_inner) = Stall::default();
        let text = temperature.map(|seen| {
            let (now, warning) = (seen.now / 1000, seen.warning / 1000);
            tracing::warn!(device = %self.device, now, warning, "too hot, resting");
            format!("{} rests: {now} °C, it warns from {warning} °C on", self.device)
        });
        self.context.update(|progress| {
            let ours =
                progress.text.as_ref().is_some_and(|text| text.starts_with(&format!("{} ", self.device)));
            if text.is_some() || ours {
                progress.text = text;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::opal::Status;

    #[test]
    fn metadata_is_erased_where_the_one_command_failed_and_the_drive_is_not_locked() {
        let locked = Probe { opal: Some(Status { locked: true, ..Status::default() }), ..Probe::default() };
        let failed = Ending::Failed("refused".to_owned());
        assert!(metadata_is_left(&failed, &Probe::default()));
        assert!(!metadata_is_left(&failed, &locked));
        for ending in [Ending::Erased, Ending::Cancelled] {
            assert!(!metadata_is_left(&ending, &Probe::default()), "{ending:?}");
        }
    }

    #[test]
    fn a_run_that_did_not_begin_lists_each_disk_as_skipped() {
        let disks = ["a", "b"].map(|serial| Disk { serial: Some(serial.to_owned()), ..Disk::default() });
        let error = not_begun(&disks, "md0 is busy".to_owned(), "not touched: it is in use");
        let StepError::Failed { reason, report } = error else { panic!("{error:?}") };
        assert_eq!(reason, "nothing was written to any disk: md0 is busy");
        let report = serde_json::to_value(report).unwrap();
        for (disk, serial) in ["a", "b"].into_iter().enumerate() {
            let record = &report["disks"][disk];
            assert_eq!(
                (&record["serial"], &record["outcome"]),
                (&serial.into(), &"skipped".into()),
                "{report}"
            );
            assert_eq!(record["reason"], "not touched: it is in use");
        }
    }

    #[test]
    fn only_a_disk_that_the_deadline_ended_names_the_deadline() {
        assert!(is_late(Outcome::Failed, false, true));
        for (outcome, cancelled, passed) in
            [(Outcome::Failed, false, false), (Outcome::Failed, true, true), (Outcome::Erased, false, true)]
        {
            assert!(!is_late(outcome, cancelled, passed), "{outcome:?} {cancelled} {passed}");
        }
    }

    #[test]
    fn what_stands_still_is_in_the_progress_of_its_disk_until_it_moves() {
        let disk = |name: &str| Disk { path: format!("/dev/{name}").into(), ..Disk::default() };
        let context = StepContext::new();
        context.report(Progress {
            disks: ["sda", "sdb"].map(|name| disk_progress::pending(&disk(name))).into(),
            ..Progress::default()
        });
        let deadline = Deadline::new(Instant::now(), None, &[], 1);
        let limits = Limits { deadline, stall: Duration::ZERO, required: RequiredVerification::default() };
        let watcher = Watcher {
            device: "/dev/sdb".to_owned(),
            checkpoints: None,
            limits: &limits,
            context: &context,
            stall: Mutex::default(),
        };
        let (phase, method) = (block::Phase::Erasing, Some(Method::Overwrite));
        watcher.progress(block::Progress { phase, method, done: 5, total: 9, rate: 0, eta: None });
        let [first, second] = &context.progress().disks[..] else { panic!("two disks") };
        assert_eq!(first.stalled_since, None);
        assert!(second.stalled_since.is_some_and(|since| since > 1.7e9), "{second:?}");
        watcher.done();
        assert_eq!(context.progress().disks[1].stalled_since, None);
        assert!(!watcher.cancelled());
        context.cancel();
        assert!(watcher.cancelled());
    }
}
