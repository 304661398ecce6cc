//! An overwrite that was interrupted goes on from its checkpoint, and from no wrong one.

use crate::common::{Loop, pattern};
use block::fake::{FakeDisk, FakeFault};
use block::{
    Checkpoint, Ending, Method, Phase, Progress, Record, RequiredVerification, Target, Watch, erase,
};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;

const MIB: u64 = 1 << 20;
/// The first part of every pass.
const PART: u64 = 64 * MIB;
/// Names the disk to erase to the test that runs again as a program of its own.
const CHILD: &str = "ANNEAL_TEST_ERASE";

fn resume(target: &dyn Target, methods: &[Method], from: &Checkpoint, watch: &dyn Watch) -> Record {
    block::resume(target, methods, RequiredVerification::default(), from, watch)
}

/// Keeps the checkpoints, and the first reported progress of erasing.
#[derive(Default)]
struct Seen {
    kept: Mutex<Vec<Checkpoint>>,
    began_at: Mutex<Option<u64>>,
}

impl Watch for Seen {
    fn progress(&self, progress: Progress) {
        if progress.phase == Phase::Erasing {
            self.began_at.lock().unwrap().get_or_insert(progress.done);
        }
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn checkpoint(&self, checkpoint: Checkpoint) {
        self.kept.lock().unwrap().push(checkpoint);
    }
}

fn content() -> Vec<u8> {
    pattern(1 << 20).repeat(66)
}

/// A disk that was overwritten up to the first checkpoint, and that checkpoint.
fn interrupted(flaws: Vec<FakeFault>) -> (FakeDisk, Checkpoint) {
    let (whole, seen) = (FakeDisk::new(content(), 512, Vec::new()), Seen::default());
    assert_eq!(erase(&whole, &[Method::Overwrite], &seen).ending, Ending::Erased);
    let kept = seen.kept.into_inner().unwrap();
    let offsets: Vec<u64> = kept.iter().map(|checkpoint| checkpoint.offset).collect();
    assert_eq!(offsets, [PART, 66 * MIB], "one at the end of each part, the last for the read-back");
    let half = FakeDisk::new(content(), 512, flaws);
    half.fill(0, 0..PART).unwrap();
    (half, kept.into_iter().next().unwrap())
}

#[test]
fn only_what_is_left_is_written_and_all_of_it_is_read_back() {
    let ((disk, checkpoint), seen) = (interrupted(Vec::new()), Seen::default());
    assert_eq!(checkpoint.samples.len(), 29, "a few of 257");
    let record = resume(&disk, &[Method::Overwrite], &checkpoint, &seen);
    assert_eq!((record.ending, record.resumed_from), (Ending::Erased, Some(PART)));
    assert_eq!((disk.written(), record.bytes_erased), (2 * MIB, 66 * MIB));
    assert!(disk.content().iter().all(|&byte| byte == 0));
    let read = record.verification.unwrap();
    assert_eq!((read.bytes_read, read.samples, read.unchanged_samples), (66 * MIB, 29, 0));
    assert!(*seen.began_at.lock().unwrap() >= Some(PART), "progress does not begin at 0 again");
}

/// Checks at each checkpoint that everything below it was flushed.
struct Flushed<'a>(&'a FakeDisk);

impl Watch for Flushed<'_> {
    fn progress(&self, _: Progress) {}
    fn cancelled(&self) -> bool {
        false
    }
    fn checkpoint(&self, checkpoint: Checkpoint) {
        assert!(self.0.flushed() >= checkpoint.offset, "{} of {}", self.0.flushed(), checkpoint.offset);
        assert!(
            self.0.content()[..usize::try_from(checkpoint.offset).unwrap()].iter().all(|&byte| byte == 0)
        );
    }
}

#[test]
fn a_checkpoint_is_reported_when_all_below_it_is_on_the_disk() {
    let disk = FakeDisk::new(content(), 512, Vec::new());
    assert_eq!(erase(&disk, &[Method::Overwrite], &Flushed(&disk)).ending, Ending::Erased);
}

#[test]
fn the_read_back_compares_with_what_was_there_before_the_first_byte() {
    let (disk, checkpoint) = interrupted(vec![FakeFault::IgnoresWrites(PART..66 * MIB)]);
    let record = resume(&disk, &[Method::Overwrite], &checkpoint, &());
    let Ending::Failed(reason) = record.ending else { panic!("{:?}", record.ending) };
    let read = record.verification.unwrap();
    assert!(!read.passed && read.unchanged_samples > 0 && read.samples == 29, "{reason}");
}

#[test]
fn a_lie_below_the_checkpoint_is_found_by_the_read_back() {
    let (disk, checkpoint) = interrupted(Vec::new());
    // Between two of the places that are looked at before it goes on.
    disk.fill(7, PART - 3 * MIB..PART - 3 * MIB + 512).unwrap();
    let record = resume(&disk, &[Method::Overwrite], &checkpoint, &());
    assert_eq!(record.resumed_from, Some(PART));
    assert!(matches!(&record.ending, Ending::Failed(reason) if reason.contains("512 bytes are not zero")));
}

#[test]
fn what_speaks_against_a_checkpoint_makes_it_begin_at_0() {
    let spoilt = |spoil: &dyn Fn(&mut Checkpoint)| {
        let (disk, mut checkpoint) = interrupted(Vec::new());
        spoil(&mut checkpoint);
        (disk, checkpoint)
    };
    let (other_content, same) = interrupted(Vec::new());
    other_content.fill(7, PART - 512..PART).unwrap();
    let (unreadable, again) = interrupted(vec![FakeFault::ReadError(PART - 512..PART)]);
    for (what, (disk, checkpoint)) in [
        ("content", (other_content, same)),
        ("unreadable", (unreadable, again)),
        ("method", spoilt(&|checkpoint| checkpoint.method = Method::ZeroOut)),
        ("a discard", spoilt(&|checkpoint| checkpoint.method = Method::Discard)),
        ("size", spoilt(&|checkpoint| checkpoint.offset = 66 * MIB + 512)),
        ("sector", spoilt(&|checkpoint| checkpoint.offset -= 1)),
        ("nothing", spoilt(&|checkpoint| checkpoint.offset = 0)),
    ] {
        let record = resume(&disk, &[Method::Discard, Method::Overwrite], &checkpoint, &());
        assert_eq!(record.resumed_from, None, "{what}");
        assert!(record.method.is_some(), "{what}: it begins");
        if what != "unreadable" && what != "a discard" {
            assert_eq!(record.ending, Ending::Erased, "{what}");
        }
    }
}

#[test]
fn methods_before_that_of_the_checkpoint_are_not_tried_again_and_those_after_begin_at_0() {
    let (disk, checkpoint) = interrupted(vec![FakeFault::WriteError(PART..PART + 512)]);
    let methods = [Method::Discard, Method::Overwrite, Method::ZeroOut];
    let record = resume(&disk, &methods, &checkpoint, &());
    assert_eq!((record.method, record.resumed_from), (Some(Method::ZeroOut), None), "{record:?}");
    let given_up: Vec<Method> = record.fallbacks.iter().map(|(method, _)| *method).collect();
    assert_eq!(given_up, [Method::Discard, Method::Overwrite]);
    assert!(record.fallbacks[0].1.contains("before the interruption"));
}

/// Prints the first checkpoint, and waits there to be killed.
struct PrintsCheckpoint;

impl Watch for PrintsCheckpoint {
    fn progress(&self, _: Progress) {}
    fn cancelled(&self) -> bool {
        false
    }
    fn checkpoint(&self, Checkpoint { method, offset, samples }: Checkpoint) {
        let samples: Vec<String> =
            samples.iter().map(|(at, digest)| format!("{at}:{}", u64::from_le_bytes(*digest))).collect();
        println!("checkpoint {} {offset} {}", method.as_str(), samples.join(" "));
        loop {
            std::thread::park();
        }
    }
}

/// Not a test of its own: the program that [`a_killed_process_is_gone_on_from_on_a_real_device`] kills.
#[test]
fn the_program_that_is_killed() {
    let Some(node) = std::env::var_os(CHILD) else { return };
    let filter = block::Filter::Only(vec![node.into()]);
    let disks = block::list(&block::Roots::default(), &filter).unwrap();
    let device = block::Device::open(&block::Roots::default(), &block::probe(&disks[0]).unwrap()).unwrap();
    erase(&device, &[Method::Overwrite], &PrintsCheckpoint);
}

fn killed(disk: &Loop) -> Checkpoint {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "resume::the_program_that_is_killed", "--nocapture"])
        .env(CHILD, disk.node())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line =
        output.into_iter().find_map(|line| line.split_once("checkpoint ").map(|(_, rest)| rest.to_owned()));
    child.kill().unwrap();
    child.wait().unwrap();
    let line = line.expect("the program came as far as its first checkpoint");
    let mut words = line.split(' ');
    let method = Method::of(words.next().unwrap()).unwrap();
    let offset = words.next().unwrap().parse().unwrap();
    let sample = |word: &str| {
        let (at, digest) = word.split_once(':').unwrap();
        (at.parse().unwrap(), digest.parse::<u64>().unwrap().to_le_bytes())
    };
    Checkpoint { method, offset, samples: words.map(sample).collect() }
}

#[test]
fn a_killed_process_is_gone_on_from_on_a_real_device() {
    let size = 200 * MIB;
    let mut disk = Loop::new(&pattern(1 << 20).repeat(200));
    let checkpoint = killed(&disk);
    assert_eq!(checkpoint.offset, PART);
    disk.attach_again();
    assert!(disk.part(0, 1 << 20).iter().all(|&byte| byte == 0));
    assert!(disk.part(size - MIB, 1 << 20).iter().any(|&byte| byte != 0), "it was not killed in the middle");
    let seen = Seen::default();
    let record = resume(&disk.open(), &[Method::Overwrite], &checkpoint, &seen);
    assert_eq!((record.ending, record.resumed_from), (Ending::Erased, Some(PART)));
    assert!(*seen.began_at.lock().unwrap() >= Some(PART));
    let read = record.verification.unwrap();
    assert_eq!((read.bytes_read, read.samples), (size, checkpoint.samples.len() as u64));
    assert!(disk.outside().iter().all(|&byte| byte == 0));
}
