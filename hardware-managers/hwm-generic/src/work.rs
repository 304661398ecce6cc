//! Doing what was decided: a thread for each disk, and a report of all of them.

use crate::Job;
use crate::convert::{self, untouched};
use crate::settings::Settings;
use agent_protocol::progress::{Phase, Progress};
use agent_protocol::record::{DiskRecord, EraseReport, Outcome};
use block::fault::chain;
use block::{Device, Disk, Ending, Fate, Method, Plan, Probe, Roots, Watch};
use hwm_sdk::{StepContext, StepError, StepOutcome};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A disk in the course of the step.
enum Place {
    /// Its record is final and stands in nobody's way.
    Told(Box<DiskRecord>),
    /// It must not be touched, and may hold data of the node.
    Stopped(Box<DiskRecord>),
    /// To be written, not yet opened.
    Chosen(Box<Probe>, Vec<Method>),
    /// Opened and about to be written.
    Open(Box<Device>, Vec<Method>),
}

/// Do it. All disks are opened exclusively before the first is written.
pub(crate) fn work(
    roots: &Roots,
    job: Job,
    surveyed: Vec<Probe>,
    plan: Plan,
    settings: &Settings,
    context: &StepContext,
) -> Result<StepOutcome, StepError> {
    let disks: Vec<_> = surveyed.iter().map(|probe| probe.disk.clone()).collect();
    let refuses = plan.refuses();
    let mut places: Vec<Place> =
        surveyed.into_iter().zip(plan.fates).map(|(probe, fate)| place(job, probe, fate, settings)).collect();
    if !refuses {
        open_all(roots, &mut places);
    }
    let stopped = places.iter().any(|place| matches!(place, Place::Stopped(_)));
    if !stopped {
        tracing::info!(disks = places.len(), ?job, "all disks judged, beginning");
        context
            .report(Progress { disks: disks.iter().map(convert::pending).collect(), ..Progress::default() });
        run_all(job, &mut places, settings.concurrency, context);
    }
    conclude(&places, &disks, context)
}

fn place(job: Job, probe: Probe, fate: Fate, settings: &Settings) -> Place {
    let skipped = |reason: String| Box::new(untouched(&probe.disk, Outcome::Skipped, reason));
    match fate {
        Fate::Erase(ways) => {
            let methods = match job {
                Job::Erase => ways.iter().map(|way| way.method).collect(),
                Job::Express => express(&probe, settings),
                Job::Metadata => Vec::new(),
            };
            Place::Chosen(Box::new(probe), methods)
        }
        Fate::Leave(reason) => Place::Told(skipped(reason)),
        Fate::Refuse(reason) => Place::Stopped(skipped(reason)),
    }
}

/// What erases the disk by one command.
fn express(probe: &Probe, settings: &Settings) -> Vec<Method> {
    let allowed = |method: &Method| {
        method.is_express(probe.disk.rotational) && !settings.wish.policy.never.contains(method)
    };
    block::methods(probe).into_iter().filter(allowed).collect()
}

fn open_all(roots: &Roots, places: &mut [Place]) {
    for place in places {
        if let Place::Chosen(probe, methods) = place {
            *place = match Device::open(roots, probe) {
                Ok(device) => Place::Open(Box::new(device), std::mem::take(methods)),
                Err(error) => {
                    Place::Stopped(Box::new(untouched(&probe.disk, Outcome::Failed, chain(&error))))
                }
            };
        }
    }
}

/// Erase the open disks, at most `concurrency` at once.
fn run_all(job: Job, places: &mut [Place], concurrency: usize, context: &StepContext) {
    let count = places.len();
    let slots: Vec<Mutex<&mut Place>> = places.iter_mut().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..concurrency.min(count) {
            scope.spawn(|| {
                while let Some(slot) = slots.get(next.fetch_add(1, Ordering::AcqRel)) {
                    let mut place = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Place::Open(device, methods) = &**place
                        && !context.is_cancelled()
                    {
                        let record = run_one(job, device, methods, context);
                        **place = Place::Told(Box::new(record));
                    }
                }
            });
        }
    });
}

fn run_one(job: Job, device: &Device, methods: &[Method], context: &StepContext) -> DiskRecord {
    let watcher = Watcher { device: device.disk().path.to_string_lossy().into_owned(), context };
    let started_at = now();
    let metadata = || convert::metadata_erased(device.disk(), block::erase_metadata(device, &watcher));
    let record = match job {
        Job::Erase => convert::erased(device.disk(), block::erase(device, methods, &watcher)),
        Job::Metadata => metadata(),
        Job::Express if methods.is_empty() => metadata(),
        Job::Express => {
            let record = block::erase(device, methods, &watcher);
            let failed = matches!(record.ending, Ending::Failed(_));
            let tried = convert::erased(device.disk(), record);
            if failed { convert::after(tried, metadata()) } else { tried }
        }
    };
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
fn conclude(places: &[Place], disks: &[Disk], context: &StepContext) -> Result<StepOutcome, StepError> {
    let stopped = places.iter().any(|place| matches!(place, Place::Stopped(_)));
    let mut failures = Vec::new();
    let mut records = Vec::new();
    let mut begun_all = true;
    for (place, disk) in places.iter().zip(disks) {
        let record = match place {
            Place::Told(record) | Place::Stopped(record) => DiskRecord::clone(record),
            Place::Chosen(..) | Place::Open(..) => {
                begun_all = false;
                let reason = if stopped {
                    "not touched, since another disk of the node must not be"
                } else {
                    "cancelled before it was begun"
                };
                untouched(disk, Outcome::Skipped, reason.to_owned())
            }
        };
        if matches!(place, Place::Stopped(_)) || record.outcome == Outcome::Failed {
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
    context: &'a StepContext,
}

impl Watcher<'_> {
    fn done(&self) {
        self.context.update(|progress| {
            for entry in progress.disks.iter_mut().filter(|entry| entry.device == self.device) {
                entry.phase = Phase::Done;
                (entry.rate, entry.eta) = (0, None);
            }
        });
    }
}

impl Watch for Watcher<'_> {
    fn progress(&self, seen: block::Progress) {
        self.context.update(|progress| {
            for entry in progress.disks.iter_mut().filter(|entry| entry.device == self.device) {
                convert::advance(entry, seen);
            }
        });
    }

    fn cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    fn resting(&self, temperature: Option<block::heat::Temperature>) {
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
