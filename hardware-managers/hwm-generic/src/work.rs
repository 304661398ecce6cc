//! Doing what was decided: a thread for each disk, and a report of all of them.

use crate::Job;
use crate::convert::{self, untouched};
use crate::pace::{Deadline, Stall, longest};
use crate::rebuild::{Duty, Volumes};
use crate::resume::Keeper;
use crate::settings::Settings;
use agent_protocol::progress::{Phase, Progress};
use agent_protocol::record::{DiskRecord, EraseReport, Outcome};
use block::fault::chain;
use block::{Checkpoint, Device, Disk, DiskDecision, Ending, Method, Plan, Probe, Roots, Watch};
use hwm_sdk::{StepContext, StepError, StepOutcome};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A disk in the course of the step.
enum Place {
    /// Its record is final and stands in nobody's way.
    Told(Box<DiskRecord>),
    /// It must not be touched, and may hold data of the node.
    Stopped(Box<DiskRecord>),
    /// To be written, not yet opened.
    Chosen(Box<Probe>, Vec<Method>),
    /// Opened, and with its record once it was written.
    Open(Box<Device>, Vec<Method>, Option<Box<DiskRecord>>),
}

/// Have the drives that hide sectors give them back, once nothing uses the disks. Whether there were any: then everything
/// that is known of the disks is out of date.
pub(crate) fn reveal(roots: &Roots, probes: &[Probe], plan: &Plan) -> Result<bool, StepError> {
    let hiding = |(probe, decision): &(&Probe, &DiskDecision)| {
        plan.reveals && matches!(decision, DiskDecision::Erase(_)) && block::reveal::hidden_sectors(probe) > 0
    };
    let hiding: Vec<&Disk> =
        probes.iter().zip(&plan.decisions).filter(hiding).map(|(probe, _)| &probe.disk).collect();
    if hiding.is_empty() {
        return Ok(false);
    }
    let disks: Vec<Disk> = probes.iter().map(|probe| probe.disk.clone()).collect();
    take_down(roots, plan, &disks)?;
    for disk in hiding {
        block::reveal::reveal(roots, disk).map_err(|error| {
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

/// The run ended before the first byte of any disk was written.
fn not_begun(disks: &[Disk], why: String, of_each: &str) -> StepError {
    let untouched = |disk| untouched(disk, Outcome::Skipped, of_each.to_owned());
    let report = convert::report(&EraseReport { disks: disks.iter().map(untouched).collect() });
    StepError::Failed { reason: format!("nothing was written to any disk: {why}"), report }
}

impl Place {
    /// What the disk takes at most, if it is to be written.
    fn longest(&self) -> Option<Duration> {
        match self {
            Place::Chosen(probe, methods) => Some(longest(probe, methods)),
            Place::Told(_) | Place::Stopped(_) | Place::Open(..) => None,
        }
    }
}

/// What a step may take.
struct Limits {
    deadline: Deadline,
    /// How long a disk may stand still before that is told.
    stall: Duration,
}

/// Do it. All disks are opened exclusively before the first is written.
pub(crate) fn work(
    roots: &Roots,
    job: Job,
    surveyed: Vec<Probe>,
    plan: Plan,
    settings: &Settings,
    volumes: &Volumes,
    context: &StepContext,
) -> Result<StepOutcome, StepError> {
    let disks: Vec<_> = surveyed.iter().map(|probe| probe.disk.clone()).collect();
    let refuses = plan.refuses();
    let begun = Instant::now();
    if !refuses {
        take_down(roots, &plan, &disks)?;
    }
    let mut places: Vec<Place> = surveyed
        .into_iter()
        .zip(plan.decisions)
        .map(|(probe, decision)| place(job, probe, decision, settings))
        .collect();
    let takes: Vec<Duration> = places.iter().filter_map(Place::longest).collect();
    let limits = Limits {
        deadline: Deadline::new(begun, settings.deadline, &takes, settings.concurrency),
        stall: settings.stall,
    };
    if !refuses {
        open_all(roots, &mut places);
    }
    let stopped = places.iter().any(|place| matches!(place, Place::Stopped(_)));
    if !stopped {
        tracing::info!(disks = places.len(), ?job, "all disks judged, beginning");
        context
            .report(Progress { disks: disks.iter().map(convert::pending).collect(), ..Progress::default() });
        remember(&places, volumes);
        let keeper = Keeper::new(crate::ERASE_DEVICES, &disks, context);
        run_all(job, &mut places, settings.concurrency, &keeper, &limits, context);
        if volumes.duty == Duty::Rebuild && job == Job::Erase && !context.is_cancelled() {
            rebuild(&mut places, volumes);
        }
    }
    conclude(&places, &disks, &limits.deadline, context)
}

fn place(job: Job, probe: Probe, decision: DiskDecision, settings: &Settings) -> Place {
    let skipped = |reason: String| Box::new(untouched(&probe.disk, Outcome::Skipped, reason));
    match decision {
        DiskDecision::Erase(methods) => {
            let methods = match job {
                Job::Erase => methods.iter().map(|planned| planned.method).collect(),
                Job::Express => express(&probe, settings),
                Job::Metadata => Vec::new(),
            };
            Place::Chosen(Box::new(probe), methods)
        }
        DiskDecision::Leave(reason) => Place::Told(skipped(reason)),
        DiskDecision::Refuse(reason) => Place::Stopped(skipped(reason)),
    }
}

/// What erases the disk by one command.
pub(crate) fn express(probe: &Probe, settings: &Settings) -> Vec<Method> {
    let allowed = |method: &Method| {
        method.is_express(probe.disk.rotational) && !settings.request.policy.never.contains(method)
    };
    block::methods(probe).into_iter().filter(allowed).collect()
}

fn open_all(roots: &Roots, places: &mut [Place]) {
    for place in places {
        if let Place::Chosen(probe, methods) = place {
            *place = match Device::open(roots, probe) {
                Ok(device) => Place::Open(Box::new(device), std::mem::take(methods), None),
                Err(error) => {
                    Place::Stopped(Box::new(untouched(&probe.disk, Outcome::Failed, chain(&error))))
                }
            };
        }
    }
}

fn remember(places: &[Place], volumes: &Volumes) {
    for place in places {
        if let Place::Open(device, ..) = place
            && volumes.duty != Duty::None
        {
            volumes.memory.remember(device);
        }
    }
}

fn rebuild(places: &mut [Place], volumes: &Volumes) {
    let done = |place| match place {
        &mut Place::Open(ref device, _, Some(ref mut record)) => Some((&**device, &mut **record)),
        _ => None,
    };
    let mut disks: Vec<(&Device, &mut DiskRecord)> = places.iter_mut().filter_map(done).collect();
    volumes.memory.rebuild(&mut disks);
}

/// Erase the open disks, at most `concurrency` at once.
fn run_all(
    job: Job,
    places: &mut [Place],
    concurrency: usize,
    keeper: &Keeper<'_>,
    limits: &Limits,
    context: &StepContext,
) {
    let count = places.len();
    let slots: Vec<Mutex<&mut Place>> = places.iter_mut().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..concurrency.min(count) {
            scope.spawn(|| {
                while let Some(slot) = slots.get(next.fetch_add(1, Ordering::AcqRel)) {
                    let mut place = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Place::Open(device, methods, record) = &mut **place
                        && !context.is_cancelled()
                        && !limits.deadline.passed()
                    {
                        *record = Some(Box::new(run_one(job, device, methods, keeper, limits, context)));
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
    keeper: &Keeper<'_>,
    limits: &Limits,
    context: &StepContext,
) -> DiskRecord {
    let device_name = device.disk().path.to_string_lossy().into_owned();
    // Express erases go on from nowhere: what they overwrite is metadata alone.
    let keeper = (job == Job::Erase).then_some((keeper, device.disk()));
    let watcher = Watcher { device: device_name, keeper, limits, context, stall: Mutex::default() };
    let started_at = now();
    let metadata = || convert::metadata_erased(device.disk(), block::erase_metadata(device, &watcher));
    let record = match job {
        Job::Erase => {
            let record = match keeper.and_then(|(keeper, disk)| keeper.take(disk)) {
                Some(from) => block::resume(device, methods, &from, &watcher),
                None => block::erase(device, methods, &watcher),
            };
            convert::erased(device.disk(), record)
        }
        Job::Metadata => metadata(),
        Job::Express if methods.is_empty() => metadata(),
        Job::Express => {
            let record = block::erase(device, methods, &watcher);
            // What a locked drive shows is not where its metadata is.
            let failed = matches!(record.ending, Ending::Failed(_)) && !device.probe().is_locked();
            let tried = convert::erased(device.disk(), record);
            if failed { convert::after(tried, metadata()) } else { tried }
        }
    };
    let late = record.outcome == Outcome::Failed && !context.is_cancelled() && limits.deadline.passed();
    let reason = match record.reason {
        Some(reason) if late => Some(format!("{}: {reason}", limits.deadline.text())),
        reason => reason,
    };
    let out_of_reach = device.probe().out_of_reach();
    let record = DiskRecord { reason, out_of_reach, ..record };
    let (outcome, reason) = (record.outcome, record.reason.as_deref());
    tracing::info!(device = %watcher.device, ?outcome, method = record.method, reason, "disk done");
    watcher.done();
    DiskRecord { started_at: Some(started_at), finished_at: Some(now()), ..record }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Success only when every disk was erased, or left alone for a reason that leaves no data behind.
fn conclude(
    places: &[Place],
    disks: &[Disk],
    deadline: &Deadline,
    context: &StepContext,
) -> Result<StepOutcome, StepError> {
    let stopped = places.iter().any(|place| matches!(place, Place::Stopped(_)));
    let mut failures = Vec::new();
    let mut records = Vec::new();
    let mut begun_all = true;
    for (place, disk) in places.iter().zip(disks) {
        let record = match place {
            Place::Told(record) | Place::Stopped(record) | Place::Open(_, _, Some(record)) => {
                DiskRecord::clone(record)
            }
            Place::Chosen(..) | Place::Open(_, _, None) => {
                begun_all = false;
                let reason = if stopped {
                    "not touched, since another disk of the node must not be".to_owned()
                } else if context.is_cancelled() {
                    "cancelled before it was begun".to_owned()
                } else {
                    format!("{}: not begun", deadline.text())
                };
                untouched(disk, Outcome::Skipped, reason)
            }
        };
        let not_begun = matches!(place, Place::Open(_, _, None)) && !stopped;
        if matches!(place, Place::Stopped(_)) || record.outcome == Outcome::Failed || not_begun {
            failures.push(format!("{}: {}", disk.describe(), record.reason.as_deref().unwrap_or("unknown")));
        }
        records.push(record);
    }
    let none = records.is_empty();
    let mut report = convert::report(&EraseReport { disks: records });
    if none {
        tracing::warn!("no disk was found, so there was nothing to erase");
        report["note"] = "no disk was found, so there was nothing to erase".into();
    }
    if stopped {
        let reason = format!("nothing was written to any disk: {}", failures.join("; "));
        return Err(StepError::Failed { reason, report });
    }
    if context.is_cancelled() && (!begun_all || !failures.is_empty()) {
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
    keeper: Option<(&'a Keeper<'a>, &'a Disk)>,
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
        let stalled_since = stall.since(seen, self.limits.stall, Instant::now(), now());
        drop(stall);
        self.context.update(|progress| {
            for entry in progress.disks.iter_mut().filter(|entry| entry.device == self.device) {
                convert::advance(entry, seen);
                entry.stalled_since = stalled_since;
            }
        });
    }

    fn cancelled(&self) -> bool {
        self.context.is_cancelled() || self.limits.deadline.passed()
    }

    fn checkpoint(&self, checkpoint: Checkpoint) {
        if let Some((keeper, disk)) = self.keeper {
            keeper.keep(disk, &checkpoint);
        }
    }

    fn resting(&self, temperature: Option<block::temperature::Temperature>) {
        // A disk that rests does not stand still by itself.
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

    #[test]
    fn what_stands_still_is_in_the_progress_of_its_disk_until_it_moves() {
        let disk = |name: &str| Disk { path: format!("/dev/{name}").into(), ..Disk::default() };
        let context = StepContext::new();
        context.report(Progress {
            disks: ["sda", "sdb"].map(|name| convert::pending(&disk(name))).into(),
            ..Progress::default()
        });
        let deadline = Deadline::new(Instant::now(), None, &[], 1);
        let limits = Limits { deadline, stall: Duration::ZERO };
        let watcher = Watcher {
            device: "/dev/sdb".to_owned(),
            keeper: None,
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
