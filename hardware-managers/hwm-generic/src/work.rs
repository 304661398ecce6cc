//! Doing what was decided: a thread for each disk, and a report of all of them.

use crate::Job;
use crate::convert::{self, untouched};
use crate::decide::{Decision, Fate};
use crate::settings::Settings;
use crate::survey::{Surveyed, Verdict};
use agent_protocol::progress::{Phase, Progress};
use agent_protocol::record::{DiskRecord, EraseReport, Outcome};
use block::fault::chain;
use block::{Device, Disk, Probe, Roots, Watch};
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
    Chosen(Box<Probe>),
    /// Opened and about to be written.
    Open(Box<Device>),
}

/// Do it. All disks are opened exclusively before the first is written.
pub(crate) fn work(
    roots: &Roots,
    job: Job,
    surveyed: Vec<Surveyed>,
    decision: &Decision,
    settings: Settings,
    context: &StepContext,
) -> Result<StepOutcome, StepError> {
    let disks: Vec<_> = surveyed.iter().map(|surveyed| surveyed.disk.clone()).collect();
    let mut places: Vec<Place> =
        surveyed.into_iter().zip(&decision.fates).map(|(surveyed, fate)| place(surveyed, fate)).collect();
    if !decision.stops() {
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

fn place(surveyed: Surveyed, fate: &Fate) -> Place {
    let skipped = |reason: &str| Box::new(untouched(&surveyed.disk, Outcome::Skipped, reason.to_owned()));
    match (fate, surveyed.verdict) {
        (Fate::Erase, Verdict::Writable(probe)) => Place::Chosen(probe),
        // A fate that does not fit the verdict cannot come from `decide`; the disk is then not touched.
        (Fate::Erase, _) => Place::Stopped(skipped("it was not judged")),
        (Fate::Skip(reason), _) => Place::Told(skipped(reason)),
        (Fate::Stop(reason), _) => Place::Stopped(skipped(reason)),
    }
}

fn open_all(roots: &Roots, places: &mut [Place]) {
    for place in places {
        if let Place::Chosen(probe) = place {
            *place = match Device::open(roots, probe) {
                Ok(device) => Place::Open(Box::new(device)),
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
                    if let Place::Open(device) = &**place
                        && !context.is_cancelled()
                    {
                        let record = run_one(job, device, context);
                        **place = Place::Told(Box::new(record));
                    }
                }
            });
        }
    });
}

fn run_one(job: Job, device: &Device, context: &StepContext) -> DiskRecord {
    let watcher = Watcher { device: device.disk().path.to_string_lossy().into_owned(), context };
    let started_at = now();
    let record = match job {
        Job::Erase => {
            let methods = block::plan(device.probe());
            convert::erased(device.disk(), block::erase(device, &methods, &watcher))
        }
        Job::Metadata => convert::metadata_erased(device.disk(), block::erase_metadata(device, &watcher)),
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
            Place::Chosen(_) | Place::Open(_) => {
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
}
