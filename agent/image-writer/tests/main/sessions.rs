//! Connections that break, sessions that go on, and a cancel.

use crate::disks::{MIB, image, old, packed, qcow2, request, sha256, with_tables_at_its_end};
use crate::mirror::{Behaviour, Mirror};
use block::fake::{FakeDisk, FakeFault};
use image_writer::{Checkpoint, Phase, Progress, Request, Watch, write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SIZE: usize = 8 * MIB;
const DISK: usize = 16 * MIB;

fn disk(faults: Vec<FakeFault>) -> FakeDisk {
    FakeDisk::new(old(DISK), 512, faults)
}

#[test]
fn a_connection_that_drops_goes_on_where_it_was() {
    let raw = image(SIZE);
    let mirror = Mirror::new(raw.clone(), |number, _| Behaviour {
        cut: (number < 4).then_some(MIB + 17 * number),
        ..Behaviour::default()
    });
    let disk = disk(vec![]);
    let record = write(&request(&mirror, &raw), &disk, &()).expect("written");
    assert_eq!(record.read_back_sha256, sha256(&raw));
    let places: Vec<_> = mirror.seen().iter().map(|seen| seen.range).collect();
    let from = |number: usize| Some(number * MIB + 17 * (number * (number - 1) / 2));
    assert_eq!(places, [None, from(1), from(2), from(3), from(4)], "every byte is fetched once");
}

#[test]
fn a_mirror_without_ranges_sends_it_again_and_only_the_rest_counts() {
    let raw = image(SIZE);
    let mirror = Mirror::new(raw.clone(), |number, _| Behaviour {
        cut: (number == 0).then_some(3 * MIB),
        no_range: true,
        ..Behaviour::default()
    });
    let record = write(&request(&mirror, &raw), &disk(vec![]), &()).expect("written");
    assert_eq!((record.downloaded, record.read_back_sha256), (SIZE as u64, sha256(&raw)));
}

#[test]
fn a_file_that_changes_between_two_connections_is_not_mixed() {
    let raw = image(SIZE);
    let mirror = Mirror::new(raw.clone(), |number, _| Behaviour {
        cut: (number == 0).then_some(3 * MIB),
        etag: (number > 0).then_some("\"2\""),
        ..Behaviour::default()
    });
    let disk = disk(vec![]);
    let error = write(&request(&mirror, &raw), &disk, &()).expect_err("changed").to_string();
    assert!(error.contains("changed while it was being fetched: ETag \"2\""), "{error}");
    assert!(disk.content()[..MIB].iter().all(|&byte| byte == 0));
}

#[test]
fn tables_at_the_end_of_a_qcow2_file_are_read_by_range() {
    let (file, expected) = with_tables_at_its_end(24 * MIB);
    let mirror = Mirror::good(file.clone());
    let disk = FakeDisk::new(old(32 * MIB), 512, vec![]);
    let record = write(&request(&mirror, &file), &disk, &()).expect("written");
    assert_eq!(record.read_back_sha256, sha256(&expected));
    assert!(mirror.seen().iter().any(|seen| seen.range.is_some()));
    let deaf = Mirror::new(file.clone(), |_, _| Behaviour { no_range: true, ..Behaviour::default() });
    let error = write(&request(&deaf, &file), &disk, &()).expect_err("no ranges").to_string();
    assert!(
        error.contains("not read ahead from this server") && error.contains("qemu-img convert"),
        "{error}"
    );
}

/// Stops at the first checkpoint, and remembers what was reported.
#[derive(Default)]
struct Stop {
    at_checkpoint: bool,
    checkpoint: Mutex<Option<Checkpoint>>,
    progress: Mutex<Vec<Progress>>,
    stop: AtomicBool,
}

impl Watch for Stop {
    fn progress(&self, progress: Progress) {
        self.progress.lock().expect("no panic").push(progress);
    }
    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
    fn checkpoint(&self, checkpoint: Checkpoint) {
        if self.at_checkpoint {
            self.stop.store(true, Ordering::Release);
        }
        *self.checkpoint.lock().expect("no panic") = Some(checkpoint);
    }
}

fn interrupted(file: &[u8], mirror: &Mirror, content: &Mutex<Vec<u8>>) -> (Request, Checkpoint) {
    let slow = FakeDisk::new(content.lock().expect("no panic").clone(), 512, vec![FakeFault::Slow(8 << 20)]);
    let mut request = request(mirror, file);
    request.checkpoint_every = 2 << 20;
    let watch = Stop { at_checkpoint: true, ..Stop::default() };
    let error = write(&request, &slow, &watch).expect_err("interrupted").to_string();
    assert_eq!(error, "cancelled");
    *content.lock().expect("no panic") = slow.content();
    assert!(slow.content()[..MIB].iter().all(|&byte| byte == 0), "nothing can be booted");
    let checkpoint = watch.checkpoint.lock().expect("no panic").clone().expect("a checkpoint");
    (request, checkpoint)
}

#[test]
fn a_later_session_does_not_write_again_what_is_there() {
    let raw = image(SIZE);
    for file in [raw.clone(), packed(&["zstd", "-1"], &raw), qcow2(&["-c"], &raw)] {
        let mirror = Mirror::good(file.clone());
        let content = Mutex::new(old(DISK));
        let (mut request, checkpoint) = interrupted(&file, &mirror, &content);
        let written = checkpoint.written;
        request.checkpoint = Some(checkpoint.clone());
        let disk = FakeDisk::new(content.lock().expect("no panic").clone(), 512, vec![]);
        let record = write(&request, &disk, &()).expect("written");
        assert_eq!(record.read_back_sha256, sha256(&raw));
        assert!(record.written + written <= SIZE as u64 && written > 0, "{} + {written}", record.written);
        // A disk that lost what the checkpoint says it has is found out.
        let blank = FakeDisk::new(old(DISK), 512, vec![]);
        let error = write(&request, &blank, &()).expect_err("lost").to_string();
        assert!(error.contains("does not return what was written"), "{error}");
        // A checkpoint of another file counts for nothing.
        let mut image = checkpoint.image.clone();
        image.etag = Some("\"other\"".to_owned());
        request.checkpoint = Some(Checkpoint { image, ..checkpoint });
        let blank = FakeDisk::new(old(DISK), 512, vec![]);
        write(&request, &blank, &()).expect("from the beginning");
    }
}

#[test]
fn progress_is_reported_and_a_cancel_is_heard() {
    let raw = image(SIZE);
    let mirror = Mirror::good(raw.clone());
    let watch = Stop::default();
    write(&request(&mirror, &raw), &disk(vec![FakeFault::Slow(20 << 20)]), &watch).expect("written");
    let reported = watch.progress.lock().expect("no panic").clone();
    let phases: Vec<Phase> = reported.iter().map(|one| one.phase).collect();
    let mut order = phases.clone();
    order.dedup();
    assert_eq!(order, [Phase::Writing, Phase::ReadingBack, Phase::Finishing]);
    let last = reported.iter().rfind(|one| one.phase == Phase::Writing).expect("reported");
    assert_eq!((last.received, last.done, last.total), (SIZE as u64, SIZE as u64, Some(SIZE as u64)));
    assert!(reported.iter().any(|one| one.rate > 0));

    let silent = Mirror::new(raw.clone(), |_, _| Behaviour { stall: Some(MIB), ..Behaviour::default() });
    let mut request = request(&silent, &raw);
    request.source.limits.stall = Duration::from_secs(60);
    let watch = Stop::default();
    std::thread::scope(|scope| {
        let disk = disk(vec![]);
        let writer = scope.spawn({
            let (request, watch) = (&request, &watch);
            move || write(request, &disk, watch).map_err(|error| error.to_string())
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        while watch.progress.lock().expect("no panic").iter().all(|one| one.received < MIB as u64) {
            assert!(Instant::now() < deadline, "the first MiB never came");
            std::thread::yield_now();
        }
        watch.stop.store(true, Ordering::Release);
        let begun = Instant::now();
        assert_eq!(writer.join().expect("no panic").expect_err("cancelled"), "cancelled");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    });
}
