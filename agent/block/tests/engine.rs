//! The erase engine on disks that go wrong.

use block::aligned::is_zero;
use block::fake::{FakeDisk, FakeFault, MAGIC};
use block::{
    Ending, Fill, Method, Passes, Phase, Progress, RequiredVerification, Target, Watch, erase,
    erase_metadata, erase_requiring,
};
use proptest::prelude::*;
use std::num::NonZeroU8;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const ALL: [Method; 4] = [Method::NvmeFormat, Method::ZeroOut, Method::Discard, Method::Overwrite];

/// No sector is zero, and none is of one byte throughout.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from((index / 512 + index) % 255).unwrap() + 1).collect()
}

fn reason(ending: &Ending) -> &str {
    match ending {
        Ending::Failed(reason) => reason,
        other => panic!("{other:?} is not a failure"),
    }
}

#[test]
fn the_first_bad_sector_is_named_and_bytes_are_what_was_written() {
    let bad = 5 * (1 << 20) + 512 * 3;
    let flaws = vec![FakeFault::WriteError(bad..bad + 100)];
    let disk = FakeDisk::new(content(12 << 20), 512, flaws);
    let record = erase(&disk, &[Method::Overwrite], &());
    let reason = reason(&record.ending);
    assert!(
        reason.contains(&format!("byte offset {bad} ")) && reason.contains("write of 512 bytes"),
        "{reason}"
    );
    assert!(reason.contains("Input/output error"), "{reason}");
    assert_eq!(record.bytes_erased, disk.written());
    assert!(record.bytes_erased < 12 << 20);
    assert!(record.verification.is_none());
}

#[test]
fn a_device_that_ignores_writes_is_found_out() {
    let disk = FakeDisk::new(content(8 << 20), 512, vec![FakeFault::IgnoresWrites(0..8 << 20)]);
    let record = erase(&disk, &[Method::Overwrite], &());
    let seen = record.verification.clone().unwrap();
    assert!(reason(&record.ending).contains("read-back"), "{:?}", record.ending);
    assert!(!seen.passed && seen.mismatched_bytes > 0);
    assert_eq!((seen.unchanged_samples, seen.samples), (257, 257));
}

#[test]
fn one_sector_that_ignores_writes_is_found_out() {
    let at = (3 << 20) + 4096 + 512;
    let disk = FakeDisk::new(content(8 << 20), 512, vec![FakeFault::IgnoresWrites(at..at + 512)]);
    let record = erase(&disk, &[Method::Overwrite], &());
    assert!(reason(&record.ending).contains("512 bytes are not zero"), "{:?}", record.ending);
}

#[test]
fn each_lie_falls_back_to_the_next_method_and_is_kept() {
    let flaws = vec![FakeFault::FormatDoesNothing, FakeFault::IgnoresZeroOut, FakeFault::DiscardLeavesEdges];
    let disk = FakeDisk::new(content(6 << 20), 512, flaws);
    let record = erase(&disk, &ALL, &());
    assert_eq!((record.ending, record.method), (Ending::Erased, Some(Method::Overwrite)));
    let tried: Vec<Method> = record.fallbacks.iter().map(|fallback| fallback.0).collect();
    assert_eq!(tried, ALL[..3]);
    assert!(record.fallbacks.iter().all(|(_, why)| why.starts_with("read-back: ")), "{:?}", record.fallbacks);
    assert!(is_zero(&disk.content()));
}

#[test]
fn a_refused_method_keeps_its_error() {
    let disk = FakeDisk::new(content(1 << 20), 4096, vec![FakeFault::RefusesZeroOut]);
    let record = erase(&disk, &[Method::ZeroOut, Method::Overwrite], &());
    assert_eq!(record.ending, Ending::Erased);
    assert!(record.fallbacks[0].1.contains("not supported"), "{:?}", record.fallbacks);
}

#[test]
fn a_format_that_fills_with_ones_is_held_to_change_and_one_that_zeroes_to_zero() {
    for (fill, expected) in [(0xff, "changed"), (0, "zeroes")] {
        let disk = FakeDisk::new(content(4 << 20), 512, vec![FakeFault::FormatFills(fill)]);
        let record = erase(&disk, &[Method::NvmeFormat], &());
        assert_eq!(record.ending, Ending::Erased);
        let seen = record.verification.unwrap();
        assert_eq!((seen.expected.as_str(), seen.unchanged_samples, seen.passed), (expected, 0, true));
        assert_eq!(seen.mismatched_bytes, 0, "no particular content was expected");
    }
}

#[test]
fn a_method_that_promises_only_change_is_not_believed_without_a_sample_that_changed() {
    // A blank disk: only uniform sectors, which prove something if they have changed.
    let blank = || vec![0; 4 << 20];
    let disk = FakeDisk::new(blank(), 512, vec![FakeFault::FormatFills(0xff)]);
    let record = erase(&disk, &[Method::NvmeFormat], &());
    let seen = record.verification.unwrap();
    assert_eq!((record.ending, seen.samples, seen.passed), (Ending::Erased, 257, true));
    // A disk that holds 0xff, takes no markers and goes on holding it.
    for flaw in [FakeFault::FormatDoesNothing, FakeFault::FormatFills(0xff)] {
        let deaf = FakeFault::IgnoresWrites(0..4 << 20);
        let disk = FakeDisk::new(vec![0xff; 4 << 20], 512, vec![flaw, deaf]);
        let record = erase(&disk, &[Method::NvmeFormat], &());
        assert!(
            reason(&record.ending).contains("no sample shows that it has changed"),
            "{:?}",
            record.ending
        );
        let seen = record.verification.unwrap();
        assert_eq!((seen.kind.as_str(), seen.samples, seen.passed), ("none", 0, false));
        let record = erase_requiring(&disk, &[Method::NvmeFormat], RequiredVerification::None, &());
        let seen = record.verification.unwrap();
        assert_eq!((record.ending, seen.kind.as_str(), seen.passed), (Ending::Erased, "none", false));
    }
    let seeds = [(); 2].map(|()| {
        let disk = FakeDisk::new(content(1 << 20), 512, vec![FakeFault::FormatFills(7)]);
        erase(&disk, &[Method::NvmeFormat], &()).verification.unwrap().seed.expect("it is in the record")
    });
    assert_ne!(seeds[0], seeds[1], "each erase looks elsewhere");
}

#[test]
fn markers_distinguish_a_format_that_does_nothing_from_one_that_leaves_what_was_there() {
    let of = |flaw| {
        let disk = FakeDisk::new(vec![0xff; 4 << 20], 512, vec![flaw]);
        let record = erase(&disk, &[Method::NvmeFormat], &());
        (record.ending, record.verification.unwrap())
    };
    let (ending, seen) = of(FakeFault::FormatFills(0xff));
    assert_eq!((ending, seen.kind.as_str()), (Ending::Erased, "sampled"));
    assert_eq!((seen.samples, seen.markers, seen.markers_found), (0, 256, 0));
    assert!(seen.seed.is_some());
    let (ending, seen) = of(FakeFault::FormatDoesNothing);
    assert!(reason(&ending).contains("256 of 256 markers are still there"), "{ending:?}");
    assert_eq!((seen.markers_found, seen.passed), (256, false));
}

#[test]
fn samples_alone_show_it_of_a_drive_that_takes_no_writes() {
    let flaws = vec![FakeFault::FormatDoesNothing, FakeFault::WriteError(0..4 << 20)];
    let disk = FakeDisk::new(content(4 << 20), 512, flaws);
    let record = erase(&disk, &[Method::NvmeFormat], &());
    assert!(reason(&record.ending).contains("257 of 257 sampled sectors are unchanged"), "{record:?}");
    assert_eq!(record.verification.map(|seen| seen.markers), Some(0));
}

#[test]
fn markers_are_new_for_each_method_since_the_ones_before_may_have_changed_the_samples() {
    // The overwrite changes every sample before it fails at the last sector. The format then does nothing.
    let end = FakeFault::WriteError((1 << 20) - 512..1 << 20);
    let disk = FakeDisk::new(content(1 << 20), 512, vec![FakeFault::FormatDoesNothing, end]);
    let record = erase(&disk, &[Method::Overwrite, Method::NvmeFormat], &());
    assert!(reason(&record.ending).contains("markers are still there"), "{record:?}");
    assert_eq!(record.verification.map(|seen| seen.unchanged_samples), Some(0));
}

#[test]
fn short_writes_are_continued() {
    let disk = FakeDisk::new(content((5 << 20) + 1536), 512, vec![FakeFault::ShortWrites(64 << 10)]);
    let record = erase(&disk, &[Method::Overwrite], &());
    assert_eq!((record.ending, record.bytes_erased), (Ending::Erased, (5 << 20) + 1536));
    assert!(is_zero(&disk.content()));
    assert_eq!(disk.flushed(), disk.written());
}

#[test]
fn a_signal_fails_no_read_and_no_write() {
    // A write of one sector has no halves to be tried.
    for size in [512, 1 << 20] {
        let disk = FakeDisk::new(content(size), 512, vec![FakeFault::Interrupts]);
        let record = erase(&disk, &[Method::Overwrite], &());
        assert_eq!((record.ending, record.bytes_erased), (Ending::Erased, size as u64));
    }
}

#[test]
fn a_disk_that_vanishes_is_said_to_and_no_other_method_is_tried() {
    let disk = FakeDisk::new(content(16 << 20), 512, vec![FakeFault::VanishesAfter(4 << 20)]);
    let record = erase(&disk, &[Method::Overwrite, Method::ZeroOut], &());
    assert!(reason(&record.ending).contains("vanished"), "{:?}", record.ending);
    assert_eq!((record.method, record.fallbacks.len()), (Some(Method::Overwrite), 0));
}

#[test]
fn an_unreadable_sector_after_the_erase_is_no_success() {
    let disk = FakeDisk::new(content(4 << 20), 512, vec![FakeFault::ReadError((2 << 20)..(2 << 20) + 1)]);
    let record = erase(&disk, &[Method::Overwrite], &());
    assert!(reason(&record.ending).contains("read of"), "{:?}", record.ending);
}

/// Cancels at the n-th question; keeps the reported progress.
struct Impatient {
    left: AtomicUsize,
    reported: Mutex<Vec<Progress>>,
}

impl Watch for Impatient {
    fn progress(&self, progress: Progress) {
        self.reported.lock().unwrap().push(progress);
    }
    fn cancelled(&self) -> bool {
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn cancelling_at_any_question_ends_as_cancelled_or_done() {
    let mut endings = Vec::new();
    for after in (0..520).step_by(13).chain(256..280) {
        let watch = Impatient { left: AtomicUsize::new(after), reported: Mutex::default() };
        let disk = FakeDisk::new(content(1 << 20), 512, vec![]);
        let record = erase(&disk, &[Method::Overwrite], &watch);
        if after == 0 {
            assert_eq!((disk.written(), record.method), (0, None), "nothing is written after a cancellation");
        }
        if record.ending == Ending::Erased {
            assert!(is_zero(&disk.content()));
        }
        endings.push(record.ending);
    }
    assert!(endings.contains(&Ending::Cancelled) && endings.contains(&Ending::Erased));
    assert!(endings.iter().all(|ending| !matches!(ending, Ending::Failed(_))), "{endings:?}");
}

/// Cancels when so many bytes are done, and knows when it did.
struct Cancels {
    at: u64,
    since: Mutex<Option<Instant>>,
    rests: AtomicUsize,
}

impl Cancels {
    fn after(at: u64) -> Self {
        Cancels { at, since: Mutex::default(), rests: AtomicUsize::new(0) }
    }
}

impl Watch for Cancels {
    fn progress(&self, progress: Progress) {
        if progress.phase == Phase::Erasing && progress.done >= self.at {
            self.since.lock().unwrap().get_or_insert_with(Instant::now);
        }
    }
    fn cancelled(&self) -> bool {
        self.since.lock().unwrap().is_some()
    }
    fn resting(&self, temperature: Option<block::temperature::Temperature>) {
        self.rests.fetch_add(usize::from(temperature.is_some()), Ordering::AcqRel);
    }
}

#[test]
fn a_slow_disk_is_left_within_two_seconds_of_a_cancellation_and_reports_what_was_done() {
    for method in [Method::Overwrite, Method::of("overwrite-random").unwrap()] {
        let watch = Cancels::after(128 << 10);
        let disk = FakeDisk::new(content(8 << 20), 512, vec![FakeFault::Slow(256 << 10)]);
        let record = erase(&disk, &[method], &watch);
        let took = watch.since.into_inner().unwrap().expect("it was cancelled").elapsed();
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!((record.ending, record.bytes_erased), (Ending::Cancelled, disk.written()));
        assert!(disk.written() < 1 << 20);
    }
}

#[test]
fn a_hot_disk_rests_and_says_so_and_is_erased_all_the_same() {
    let watch = Cancels::after(u64::MAX);
    // Hot when it is asked first; it is asked again five seconds later.
    let disk = FakeDisk::new(content(2 << 20), 512, vec![FakeFault::Hot(0, 1)]);
    let begun = Instant::now();
    let record = erase(&disk, &[Method::Overwrite], &watch);
    assert_eq!(record.ending, Ending::Erased);
    assert_eq!(watch.rests.into_inner(), 1);
    assert!(begun.elapsed() >= Duration::from_secs(5), "no byte is written while it rests");
}

#[test]
fn random_content_and_patterns_are_written_in_all_passes_and_read_back() {
    let size = (1 << 20) + 512;
    for (count, last, expected) in [
        (1, Fill::Random, "random"),
        (3, Fill::Random, "random"),
        (2, Fill::Byte(0xa5), "pattern"),
        (2, Fill::Byte(0), "zeroes"),
    ] {
        let passes = Passes { count: NonZeroU8::new(count).unwrap(), last };
        let disks = [0, 1].map(|_| FakeDisk::new(content(size), 512, vec![]));
        for disk in &disks {
            let record = erase(disk, &[Method::OverwriteWith(passes)], &());
            assert_eq!(record.ending, Ending::Erased, "{passes:?}");
            let seen = record.verification.unwrap();
            assert_eq!((seen.expected.as_str(), seen.bytes_read), (expected, size as u64));
            assert_eq!(disk.written(), size as u64 * u64::from(count));
        }
        let [one, other] = disks.map(|disk| disk.content());
        match last {
            Fill::Byte(byte) => assert!(one.iter().all(|&seen| seen == byte)),
            Fill::Random => {
                let same = one.iter().zip(&other).filter(|(a, b)| a == b).count();
                assert!(same < size / 100, "each disk has its own: {same}");
                let ones: u32 = one.iter().map(|byte| byte.count_ones()).sum();
                assert!((f64::from(ones) / (size as f64 * 8.0) - 0.5).abs() < 0.001);
            }
        }
    }
}

#[test]
fn one_sector_that_is_not_as_the_last_pass_left_it_is_found_out() {
    for last in [Fill::Random, Fill::Byte(0xff), Fill::Byte(0)] {
        let passes = Passes { count: NonZeroU8::new(2).unwrap(), last };
        let deaf = (1 << 20) + 512..(1 << 20) + 1024;
        let disk = FakeDisk::new(content(2 << 20), 512, vec![FakeFault::IgnoresWrites(deaf)]);
        let record = erase(&disk, &[Method::OverwriteWith(passes)], &());
        assert!(reason(&record.ending).contains("read-back"), "{:?}", record.ending);
        assert!(!record.verification.unwrap().passed);
    }
}

#[test]
fn progress_goes_through_the_phases_and_ends_at_the_size() {
    let watch = Impatient { left: AtomicUsize::new(usize::MAX), reported: Mutex::default() };
    let disk = FakeDisk::new(content(9 << 20), 512, vec![]);
    erase(&disk, &[Method::Overwrite], &watch);
    let reported = watch.reported.into_inner().unwrap();
    let mut phases: Vec<Phase> = reported.iter().map(|progress| progress.phase).collect();
    phases.dedup();
    assert_eq!(phases, [Phase::Sampling, Phase::Erasing, Phase::Verifying]);
    for phase in [Phase::Erasing, Phase::Verifying] {
        let last = reported.iter().rfind(|progress| progress.phase == phase).unwrap();
        assert_eq!((last.done, last.total), (9 << 20, 9 << 20));
    }
    let sampled: Vec<u64> =
        reported.iter().filter(|seen| seen.phase == Phase::Sampling).map(|seen| seen.done).collect();
    let part = (9 << 20) / 257;
    assert_eq!(sampled, (0..257).map(|index| index * part).collect::<Vec<_>>(), "in bytes of the disk");
}

#[test]
fn the_progress_of_several_passes_is_that_of_all_of_them() {
    let passes = Passes { count: NonZeroU8::new(2).unwrap(), last: Fill::Byte(0) };
    let watch = Impatient { left: AtomicUsize::new(usize::MAX), reported: Mutex::default() };
    let disk = FakeDisk::new(content(1 << 20), 512, vec![]);
    erase(&disk, &[Method::OverwriteWith(passes)], &watch);
    let reported = watch.reported.into_inner().unwrap().into_iter();
    let erasing = reported.filter(|seen| seen.phase == Phase::Erasing);
    let seen: Vec<(u64, u64)> = erasing.map(|seen| (seen.done, seen.total)).collect();
    assert!(seen.is_sorted() && seen.iter().all(|(_, total)| *total == 2 << 20), "{seen:?}");
    assert_eq!(seen.last(), Some(&(2 << 20, 2 << 20)));
}

#[test]
fn metadata_in_the_middle_is_removed_and_the_rest_stays() {
    let mut before = vec![7u8; 8 << 20];
    before[(3 << 20) + 1024..][..8].copy_from_slice(MAGIC);
    let disk = FakeDisk::new(before, 512, vec![]);
    let record = erase_metadata(&disk, &());
    assert_eq!(record.ending, Ending::Erased);
    assert_eq!(record.removed, ["fake at byte 3146752"]);
    assert!(disk.signatures().unwrap().is_empty());
    let after = disk.content();
    assert_eq!(after[(3 << 20) + 512..][..512], [7; 512], "the neighbour sector stays");
    assert!(is_zero(&after[..1 << 20]) && is_zero(&after[7 << 20..]));
}

#[test]
fn a_signature_that_cannot_be_removed_fails_and_is_named() {
    let at = 4 << 20;
    let mut before = vec![7u8; 8 << 20];
    before[at..at + 8].copy_from_slice(MAGIC);
    let at = at as u64;
    let disk = FakeDisk::new(before, 512, vec![FakeFault::IgnoresWrites(at..at + 512)]);
    let record = erase_metadata(&disk, &());
    assert!(reason(&record.ending).contains("fake at byte 4194304"), "{:?}", record.ending);
}

#[test]
fn a_place_of_labels_that_ignores_writes_is_found_out_though_nothing_is_recognised_there() {
    let before = vec![7u8; 8 << 20];
    let disk = FakeDisk::new(before, 512, vec![FakeFault::IgnoresWrites((8 << 20) - 512..8 << 20)]);
    let record = erase_metadata(&disk, &());
    assert!(reason(&record.ending).contains("512 bytes where signatures can be"), "{:?}", record.ending);
    assert!(!record.verification.unwrap().passed);
}

fn flaw(size: u64) -> impl Strategy<Value = FakeFault> {
    let range = (0..size, 1..4096u64).prop_map(move |(start, length)| start..(start + length).min(size));
    prop_oneof![
        range.clone().prop_map(FakeFault::WriteError),
        range.clone().prop_map(FakeFault::ReadError),
        range.prop_map(FakeFault::IgnoresWrites),
        Just(FakeFault::IgnoresZeroOut),
        Just(FakeFault::RefusesZeroOut),
        Just(FakeFault::DiscardLeavesEdges),
        any::<u8>().prop_map(FakeFault::FormatFills),
        Just(FakeFault::FormatDoesNothing),
        (1usize..64).prop_map(|sectors| FakeFault::ShortWrites(sectors * 4096)),
        (0..size * 2).prop_map(FakeFault::VanishesAfter),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    /// The one rule: whatever is wrong with a disk, "erased" is only said of one that is.
    #[test]
    fn erased_is_only_said_of_an_erased_disk(
        sectors in 1usize..600,
        block in prop::sample::select(vec![512u32, 4096]),
        flaws in prop::collection::vec(flaw(600 * 4096), 0..4),
        methods in prop::sample::subsequence(ALL.to_vec(), 1..=4),
        blank in any::<bool>(),
    ) {
        let length = sectors * block as usize;
        let before = if blank { vec![0; length] } else { content(length) };
        let disk = FakeDisk::new(before.clone(), block, flaws);
        let record = erase(&disk, &methods, &());
        prop_assert!(record.bytes_erased <= length as u64);
        prop_assert!(record.ending != Ending::Cancelled);
        let position = methods.iter().position(|method| Some(*method) == record.method);
        prop_assert!(record.fallbacks.len() == position.unwrap_or(0));
        if record.ending == Ending::Erased {
            let after = disk.content();
            let seen = record.verification.unwrap();
            prop_assert!(seen.passed);
            prop_assert_eq!(record.bytes_erased, length as u64);
            prop_assert_eq!(disk.flushed(), disk.written());
            prop_assert!(!disk.is_dirty());
            if seen.expected == block::ExpectedContent::Zeroes {
                prop_assert!(is_zero(&after));
                prop_assert_eq!(seen.bytes_read, length as u64);
            }
            let sector = block as usize;
            for (old, new) in before.chunks(sector).zip(after.chunks(sector)) {
                prop_assert!(is_zero(old) || old != new || seen.expected == block::ExpectedContent::Changed && old[0] == new[0]);
            }
        }
    }
}
