//! What an operator sees of an image that is written, and how the writer learns that the step is cancelled.

use crate::clock::unix_now;
use crate::disk_progress;
use agent_protocol::progress::{DiskProgress, Phase, Progress};
use block::Disk;
use hwm_sdk::StepContext;
use hwm_sdk::protocol::Level;
use image_writer::{Checkpoint, Watch};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// How long no byte may arrive or be written before that is reported.
const STALL: Duration = Duration::from_secs(10);

/// Progress, checkpoints and cancellation of the step.
pub(super) struct StepWatch<'a> {
    context: &'a StepContext,
    /// The disk that is written; none while the configuration drive is fetched.
    disk: Option<DiskProgress>,
    moved: RefCell<Moved>,
}

/// When anything moved last.
struct Moved {
    place: Option<(image_writer::Phase, u64, u64)>,
    at: Instant,
    /// The same instant in seconds since 1970.
    unix: f64,
    /// What the writer said since then.
    note: Option<String>,
}

impl<'a> StepWatch<'a> {
    pub(super) fn new(context: &'a StepContext, disk: Option<&Disk>) -> Self {
        let moved = Moved { place: None, at: Instant::now(), unix: unix_now(), note: None };
        StepWatch { context, disk: disk.map(disk_progress::pending), moved: RefCell::new(moved) }
    }

    fn seen(&self, seen: image_writer::Progress, at: Instant, unix: f64) -> Progress {
        let mut moved = self.moved.borrow_mut();
        let place = Some((seen.phase, seen.received, seen.done));
        if moved.place != place {
            *moved = Moved { place, at, unix, note: None };
        }
        let finishing = seen.phase == image_writer::Phase::Finishing;
        let text = match (&moved.note, finishing) {
            (Some(note), _) => Some(note.clone()),
            (None, true) => Some("writing the partition table".to_owned()),
            (None, false) => self.disk.is_none().then(|| "fetching the configuration drive".to_owned()),
        };
        let stalled_since = (at.duration_since(moved.at) >= STALL).then_some(moved.unix);
        let disks = self.disk.iter().map(|disk| DiskProgress { stalled_since, ..of_disk(disk, &seen) });
        Progress { percent: None, text, disks: disks.collect() }
    }
}

/// What moves on the disk; of its writing, how much of the image the mirror has sent.
fn of_disk(disk: &DiskProgress, seen: &image_writer::Progress) -> DiskProgress {
    let (phase, bytes_done) = match seen.phase {
        image_writer::Phase::Writing => (Phase::Writing, seen.received),
        image_writer::Phase::ReadingBack => (Phase::Verifying, seen.done),
        // What is left takes no time that could be shown.
        image_writer::Phase::Finishing => (Phase::Done, 0),
    };
    DiskProgress {
        phase,
        bytes_done,
        bytes_total: seen.total.unwrap_or(0),
        rate: seen.rate,
        eta: seen.eta.map(|eta| eta.as_secs()),
        ..disk.clone()
    }
}

impl Watch for StepWatch<'_> {
    fn progress(&self, progress: image_writer::Progress) {
        self.context.report(self.seen(progress, Instant::now(), unix_now()));
    }

    fn cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    fn checkpoint(&self, checkpoint: Checkpoint) {
        if let Ok(data) = serde_json::to_value(checkpoint) {
            self.context.save_checkpoint(&data);
        }
    }

    fn note(&self, text: &str) {
        self.context.log(Level::Warning, text);
        self.moved.borrow_mut().note = Some(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image_writer::Phase as Stage;

    fn at(phase: Stage, received: u64, done: u64) -> image_writer::Progress {
        let eta = Some(Duration::from_secs(11));
        image_writer::Progress { phase, received, done, total: Some(100), rate: 7, eta }
    }

    fn disk() -> DiskProgress {
        DiskProgress {
            device: "/dev/sda".to_owned(),
            serial: Some("S1".to_owned()),
            phase: Phase::Pending,
            method: None,
            bytes_done: 0,
            bytes_total: 4096,
            rate: 0,
            eta: None,
            stalled_since: None,
        }
    }

    #[test]
    fn the_disk_shows_what_the_mirror_has_sent_and_then_what_was_read_back() {
        let context = StepContext::new();
        let watcher = StepWatch { disk: Some(disk()), ..StepWatch::new(&context, None) };
        watcher.progress(at(Stage::Writing, 12, 900));
        let writing = DiskProgress {
            phase: Phase::Writing,
            bytes_done: 12,
            bytes_total: 100,
            rate: 7,
            eta: Some(11),
            ..disk()
        };
        let expected = Progress { disks: vec![writing.clone()], ..Progress::default() };
        assert_eq!(context.progress(), expected);
        watcher.progress(at(Stage::ReadingBack, 100, 40));
        let read = DiskProgress { phase: Phase::Verifying, bytes_done: 40, ..writing };
        assert_eq!(context.progress().disks, [read]);
        watcher.progress(at(Stage::Finishing, 0, 0));
        assert_eq!(context.progress().text.as_deref(), Some("writing the partition table"));
    }

    #[test]
    fn a_mirror_that_stalls_is_named_until_a_byte_arrives() {
        let context = StepContext::new();
        let watcher = StepWatch { disk: Some(disk()), ..StepWatch::new(&context, None) };
        let begun = Instant::now();
        let since = |progress: &Progress| progress.disks[0].stalled_since;
        let late = begun + STALL;
        let first = watcher.seen(at(Stage::Writing, 12, 0), begun, 5.0);
        assert_eq!((since(&first), first.text), (None, None));
        watcher.note("http://mirror/x stalled");
        let short = watcher.seen(at(Stage::Writing, 12, 0), late - Duration::from_millis(1), 14.9);
        assert_eq!((since(&short), short.text.as_deref()), (None, Some("http://mirror/x stalled")));
        let stalled = watcher.seen(at(Stage::Writing, 12, 0), late, 15.0);
        assert_eq!(since(&stalled), Some(5.0), "since the last byte, not since the look");
        let moved = watcher.seen(at(Stage::Writing, 13, 0), late, 15.0);
        assert_eq!((since(&moved), moved.text), (None, None));
        let slow_disk = watcher.seen(at(Stage::Writing, 13, 1), late + STALL, 25.0);
        assert_eq!(since(&slow_disk), None, "the disk moves");
    }

    #[test]
    fn a_configuration_drive_that_is_fetched_has_no_disk_yet() {
        let context = StepContext::new();
        StepWatch::new(&context, None).progress(at(Stage::Writing, 1, 0));
        let expected = Some("fetching the configuration drive".to_owned());
        assert_eq!(context.progress(), Progress { text: expected, ..Progress::default() });
    }
}
