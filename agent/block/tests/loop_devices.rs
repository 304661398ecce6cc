//! Real block devices: loop devices that each test makes for itself. Needs root, losetup, sfdisk, sgdisk,
//! addpart, mkfs.ext4, mkswap; each test fails where they are missing.

use crate::common::{Loop, lvm_label, md_superblock, pattern, run, survivors};
use block::{
    Ending, Fill, Holder, HolderKind, Method, OpenError, Passes, Refusal, Target, TeardownStep, erase,
    erase_metadata, judge, methods,
};
use std::num::NonZeroU8;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;

/// GPT with three partitions: ext4, an LVM physical volume, an md member; old data everywhere else.
fn used_disk(size: u64) -> (Loop, Vec<u8>) {
    let disk = Loop::new(&pattern(usize::try_from(size).unwrap()));
    let script = "label: gpt\nstart=2048, size=16384\nstart=20480, size=16384\nstart=40960, size=16384\n";
    let mut sfdisk = Command::new("sfdisk")
        .args(["--no-reread", "--wipe", "never", "--quiet", disk.node()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut sfdisk.stdin.take().unwrap(), script.as_bytes()).unwrap();
    assert!(sfdisk.wait().unwrap().success());
    disk.add_partitions(&[(2048, 16384), (20480, 16384), (40960, 16384)]);
    run("mkfs.ext4", &["-q", "-F", "-L", "old-data", &disk.partition(1)]);
    disk.write(20480 * 512 + 512, &lvm_label());
    // Version 1.2: 4 KiB into the member; sectors count from the beginning of the member.
    disk.write(40960 * 512 + 4096, &md_superblock(8));
    run("sync", &[disk.node()]);
    let before = disk.outside();
    (disk, before)
}

fn names(disk: &Loop) -> Vec<String> {
    disk.probe().signatures.into_iter().map(|signature| signature.name).collect()
}

/// As udev does, a program looks at a partition for a moment.
#[test]
fn partitions_are_forgotten_once_none_is_open() {
    let (disk, _) = used_disk(64 * MIB);
    let device = disk.open();
    disk.write(0, &[0; 34 * 512]);
    let backup = 64 * MIB - 33 * 512;
    disk.write(backup, &[0; 33 * 512]);
    let held = std::fs::File::open(disk.partition(3)).unwrap();
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| ended.send(device.forget_partitions().map_err(|error| error.to_string())).unwrap());
        let early = end.recv_timeout(std::time::Duration::from_millis(300));
        assert!(early.is_err(), "a partition is open: {early:?}");
        drop(held);
        assert_eq!(end.recv().unwrap(), Ok(()));
    });
    assert_eq!(disk.probe().disk.partitions, []);
}

#[test]
fn a_probe_sees_tables_partitions_and_signatures() {
    let (disk, _) = used_disk(64 * MIB);
    let probe = disk.probe();
    assert_eq!(probe.disk.size, 64 * MIB);
    assert_eq!(probe.disk.partitions.len(), 3);
    assert_eq!(probe.disk.partitions[2].start, 40960 * 512);
    let mut found = names(&disk);
    found.sort();
    found.dedup();
    for expected in ["LVM2_member", "ext4", "gpt", "linux_raid_member"] {
        assert!(found.iter().any(|name| name == expected), "{expected} in {found:?}");
    }
    assert!(probe.signatures.iter().any(|signature| signature.label.as_deref() == Some("old-data")));
    assert_eq!(judge(&probe), [], "old signatures are what is to be erased");
}

#[test]
fn every_method_a_loop_device_has_erases_all_of_it() {
    let (disk, before) = used_disk(64 * MIB);
    let all = methods(&disk.probe());
    assert_eq!(all.last(), Some(&Method::Overwrite));
    for method in all {
        let (disk, before) =
            if method == Method::Overwrite { used_disk(64 * MIB) } else { used_disk(96 * MIB) };
        let device = disk.open();
        let record = erase(&device, &[method], &());
        assert_eq!(record.ending, Ending::Erased, "{method:?}");
        let seen = record.verification.unwrap();
        assert_eq!((seen.bytes_read, seen.mismatched_bytes, seen.passed), (before.len() as u64, 0, true));
        assert!(seen.samples > 200 && record.bytes_erased == before.len() as u64);
        drop(device);
        let after = disk.outside();
        assert_eq!(survivors(&before, &after), 0);
        assert!(after.len() == before.len() && after.iter().all(|&byte| byte == 0));
        let probe = disk.probe();
        assert!(probe.signatures.is_empty() && probe.disk.partitions.is_empty(), "{probe:?}");
    }
    assert_eq!(disk.outside(), before, "the first disk was only looked at");
}

#[test]
fn passes_and_patterns_are_on_the_disk() {
    for (name, last) in [("overwrite-pattern", Fill::Byte(0xa5)), ("overwrite-random", Fill::Random)] {
        let passes = Passes { count: NonZeroU8::new(2).unwrap(), last };
        let method = Method::OverwriteWith(passes);
        assert_eq!(method.as_str(), name);
        let (disk, before) = used_disk(32 * MIB);
        let device = disk.open();
        let record = erase(&device, &[method], &());
        assert_eq!(record.ending, Ending::Erased, "{name}");
        let seen = record.verification.unwrap();
        assert_eq!((seen.bytes_read, seen.mismatched_bytes, seen.passed), (32 * MIB, 0, true));
        drop(device);
        let after = disk.outside();
        assert_eq!(survivors(&before, &after), 0);
        assert!(last == Fill::Random || after.iter().all(|&byte| byte == 0xa5));
        assert!(disk.probe().disk.partitions.is_empty());
    }
}

#[test]
fn odd_sizes_are_overwritten_to_the_last_byte() {
    for (size, arguments) in [
        (9 * MIB + 512, &[][..]),
        (512, &[][..]),
        (5 * MIB + 4096, &["--sector-size", "4096"][..]),
        (4 * MIB + 512, &["--sector-size", "4096"][..]),
    ] {
        let before = pattern(usize::try_from(size).unwrap());
        let disk = Loop::with(&before, arguments);
        let probe = disk.probe();
        let record = erase(&disk.open(), &[Method::Overwrite], &());
        assert_eq!(record.ending, Ending::Erased, "{size} {arguments:?}");
        assert_eq!(record.bytes_erased, probe.disk.size);
        let after = disk.outside();
        let size = usize::try_from(probe.disk.size).unwrap();
        // The kernel itself cannot reach what is less than a sector at the end.
        assert_eq!(
            size,
            before.len() / probe.disk.logical_block as usize * probe.disk.logical_block as usize
        );
        assert!(after[..size].iter().all(|&byte| byte == 0), "{size} {arguments:?}");
    }
}

#[test]
fn metadata_goes_and_data_between_stays() {
    let (disk, before) = used_disk(64 * MIB);
    let device = disk.open();
    let record = erase_metadata(&device, &());
    assert_eq!(record.ending, Ending::Erased, "{record:?}");
    assert!(record.removed.iter().any(|removed| removed.starts_with("LVM2_member at byte")), "{record:?}");
    assert!(record.verification.unwrap().passed);
    assert!(record.bytes_erased < 12 * MIB);
    drop(device);
    let probe = disk.probe();
    assert!(probe.signatures.is_empty() && probe.disk.partitions.is_empty(), "{probe:?}");
    let after = disk.outside();
    let kept = 58 * usize::try_from(MIB).unwrap();
    assert_eq!(after[kept..kept + 4096], before[kept..kept + 4096]);
    // From outside, with a tool of others.
    assert_eq!(run("wipefs", &["--no-act", disk.node()]), "");
    let record = erase_metadata(&disk.open(), &());
    assert_eq!((record.ending, record.removed.len()), (Ending::Erased, 0), "again");
}

#[test]
fn metadata_in_partitions_the_kernel_does_not_know_goes_too() {
    let size = 64 * MIB;
    let disk = Loop::new(&vec![0; usize::try_from(size).unwrap()]);
    run("sgdisk", &["-n", "1:2048:+8M", "-n", "2:40960:+8M", disk.node()]);
    // md 0.90 and 1.0 live at the end; 1.0: 8 KiB before the end, on 4 KiB.
    let sector = 8 * MIB / 512 - 16;
    disk.write(2048 * 512 + sector * 512, &md_superblock(sector));
    disk.write(40960 * 512 + 512, &lvm_label());
    let found = names(&disk);
    assert!(
        found.contains(&"linux_raid_member".into()) && found.contains(&"LVM2_member".into()),
        "{found:?}"
    );
    assert_eq!(erase_metadata(&disk.open(), &()).ending, Ending::Erased);
    assert!(disk.outside().iter().all(|&byte| byte == 0));
}

#[test]
fn both_ends_of_a_gpt_go_for_sectors_of_4096_bytes_and_backup_alone_counts() {
    let disk = Loop::with(&vec![0; usize::try_from(32 * MIB).unwrap()], &["--sector-size", "4096"]);
    run("sgdisk", &["-n", "1:0:+4M", disk.node()]);
    // The primary is gone, as after a careless dd.
    disk.write(0, &[0; 64 * 1024]);
    assert!(names(&disk).contains(&"gpt".into()), "{:?}", names(&disk));
    assert_eq!(erase_metadata(&disk.open(), &()).ending, Ending::Erased);
    assert!(disk.outside().iter().all(|&byte| byte == 0));
}

#[test]
fn real_lvm_metadata_goes() {
    let disk = Loop::new(&vec![0; usize::try_from(32 * MIB).unwrap()]);
    let node = disk.node();
    let devices = format!("devices {{ use_devicesfile=0 filter=[\"a|^{node}$|\",\"r|.*|\"] }}");
    run("pvcreate", &["--config", &devices, "-ff", "-y", node]);
    assert_eq!(names(&disk), ["LVM2_member"]);
    assert_eq!(erase_metadata(&disk.open(), &()).ending, Ending::Erased);
    assert!(names(&disk).is_empty());
}

#[test]
fn a_disk_that_is_held_for_a_moment_is_opened_when_it_is_let_go() {
    let disk = Loop::new(&pattern(1 << 20));
    let probe = disk.probe();
    let held = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&disk.path).unwrap();
    let moment = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(held);
    });
    let device = block::Device::open(&block::Roots::default(), &probe).unwrap();
    moment.join().unwrap();
    assert_eq!(device.probe(), &probe, "as it was judged");
    assert_eq!(Target::name(&device), probe.disk.describe());
}

#[test]
fn a_mounted_disk_is_refused_and_cannot_be_opened() {
    let disk = Loop::new(&vec![0; usize::try_from(16 * MIB).unwrap()]);
    run("mkfs.ext4", &["-q", "-F", disk.node()]);
    let clean = disk.probe();
    let point = tempfile::tempdir().unwrap();
    run("mount", &[disk.node(), point.path().to_str().unwrap()]);
    let refusals = judge(&disk.probe());
    let opened = block::Device::open(&block::Roots::default(), &clean).map(|_| ());
    run("umount", &[point.path().to_str().unwrap()]);
    assert_eq!(refusals, [Refusal::Mounted { what: disk.name(), at: point.path().into() }]);
    let error = opened.unwrap_err();
    assert!(error.to_string().contains("something else uses it"), "{error}");
    assert_eq!(judge(&disk.probe()), []);
}

/// Where something is mounted for a test, and what of it a failed test would leave.
struct Mounted {
    point: tempfile::TempDir,
}

impl Mounted {
    fn new(disk: &Loop) -> Self {
        run("mkfs.ext4", &["-q", "-F", disk.node()]);
        let mounted = Mounted { point: tempfile::tempdir().unwrap() };
        run("mount", &[disk.node(), mounted.at()]);
        mounted
    }

    fn at(&self) -> &str {
        self.point.path().to_str().unwrap()
    }

    fn step(&self, disk: &Loop) -> TeardownStep {
        TeardownStep::Unmount { what: disk.name(), at: self.point.path().into() }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        while Command::new("umount").arg("-l").arg(self.at()).output().unwrap().status.success() {}
    }
}

#[test]
fn what_uses_a_disk_is_taken_down_and_waited_for_while_it_is_busy() {
    let [swap, disk] = [(); 2].map(|()| Loop::new(&vec![0; usize::try_from(16 * MIB).unwrap()]));
    run("mkswap", &[swap.node()]);
    run("swapon", &[swap.node()]);
    let mounted = Mounted::new(&disk);
    // A mount cannot go while something in it is open.
    let open = std::fs::File::open(mounted.at()).unwrap();
    let moment = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(open);
    });
    let steps = [TeardownStep::SwapOff { what: swap.name() }, mounted.step(&disk)];
    let taken = block::take_down(&block::Roots::default(), &steps);
    moment.join().unwrap();
    let used = [&swap, &disk].map(|disk| !judge(&disk.probe()).is_empty());
    let _ = Command::new("swapoff").arg(swap.node()).output().unwrap();
    assert!(taken.is_ok() && used == [false; 2], "{taken:?} {used:?}");
}

#[test]
fn a_mount_is_known_by_its_device_number_and_only_what_is_seen_there_is_unmounted() {
    let disk = Loop::new(&vec![0; usize::try_from(16 * MIB).unwrap()]);
    let mounted = Mounted::new(&disk);
    run("umount", &[mounted.at()]);
    // By a name that is gone, as of a volume that was renamed.
    let (major, minor) = disk.probe().disk.dev;
    let name = disk.node().to_owned() + "-renamed";
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};
    mknod(name.as_str(), SFlag::S_IFBLK, Mode::S_IRUSR | Mode::S_IWUSR, makedev(major.into(), minor.into()))
        .unwrap();
    run("mount", &[&name, mounted.at()]);
    std::fs::remove_file(&name).unwrap();
    run("mount", &["-t", "tmpfs", "none", mounted.at()]);
    let steps = [mounted.step(&disk)];
    let covered = block::take_down(&block::Roots::default(), &steps).unwrap_err();
    assert_eq!(covered.step, steps[0]);
    assert!(block::fault::chain(&covered).contains("something else is mounted over it"), "{covered:?}");
    run("umount", &[mounted.at()]);
    assert_eq!(judge(&disk.probe()).len(), 1, "it was left alone");
    block::take_down(&block::Roots::default(), &steps).unwrap();
    assert_eq!(judge(&disk.probe()), []);
}

/// Names the disk to the test that runs again as a program of its own.
const CHILD: &str = "ANNEAL_TEST_REREAD";

/// Not a test of its own: the program that [`a_table_that_cannot_be_read_again_is_an_error`] starts.
#[test]
fn the_program_that_may_not_read_tables_again() {
    let Some(node) = std::env::var_os(CHILD) else { return };
    let roots = block::Roots::default();
    let disk = block::list(&roots, &block::Filter::Only(vec![node.into()])).unwrap().remove(0);
    let device = block::Device::open(&roots, &block::Probe { disk, ..block::Probe::default() }).unwrap();
    let error = device.forget_partitions().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn a_table_that_cannot_be_read_again_is_an_error() {
    let disk = Loop::sparse(4 * MIB, &[]);
    let again = ["--exact", "loop_devices::the_program_that_may_not_read_tables_again"];
    let program = std::env::current_exe().unwrap();
    let mut without = Command::new("setpriv");
    without.arg("--bounding-set=-sys_admin").arg(program).args(again).env(CHILD, disk.node());
    let output = without.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn what_is_on_the_volumes_above_a_disk_is_read_once_each() {
    let [disk, first, second, silent] = [(); 4].map(|()| Loop::sparse(64 * MIB, &[]));
    run("mkswap", &[first.node()]);
    run("mkfs.ext4", &["-q", "-F", second.node()]);
    run("mkswap", &[silent.node()]);
    // Loop devices in the place of volumes.
    let volume = |name: &str, over: &Loop| Holder {
        name: over.name(),
        kind: HolderKind::Lvm(name.to_owned()),
        path: over.path.clone(),
        size: 64 * MIB,
        ..Holder::default()
    };
    let mut listed = disk.probe().disk;
    listed.holders = vec![
        volume("vg-swap", &first),
        volume("vg-data", &second),
        volume("vg-swap", &first),
        Holder { suspended: true, ..volume("vg-asleep", &silent) },
        Holder { kind: HolderKind::Multipath("mpatha".to_owned()), ..volume("", &silent) },
    ];
    let probe = block::probe(&listed).unwrap();
    let above: Vec<(&str, &str)> =
        probe.above.iter().map(|layer| (layer.what.as_str(), layer.signatures[0].name.as_str())).collect();
    let named = [0, 1].map(|at: usize| listed.holders[at].to_string());
    assert_eq!(above, [(named[0].as_str(), "swap"), (&named[1], "ext4")]);
}

#[test]
fn a_mounted_partition_refuses_the_whole_disk() {
    let (disk, before) = used_disk(64 * MIB);
    let clean = disk.probe();
    let point = tempfile::tempdir().unwrap();
    run("mount", &["-o", "ro,noload", &disk.partition(1), point.path().to_str().unwrap()]);
    let refusals = judge(&disk.probe());
    let opened = block::Device::open(&block::Roots::default(), &clean).map(|_| ());
    run("umount", &[point.path().to_str().unwrap()]);
    assert!(
        matches!(&refusals[..], [Refusal::Mounted { what, .. }] if *what == disk.name() + "p1"),
        "{refusals:?}"
    );
    assert!(matches!(opened, Err(OpenError::Open { .. })));
    assert!(disk.outside() == before, "looking changes nothing");
}

#[test]
fn swap_in_use_is_refused() {
    let disk = Loop::new(&vec![0; usize::try_from(16 * MIB).unwrap()]);
    run("mkswap", &[disk.node()]);
    run("swapon", &[disk.node()]);
    let refusals = judge(&disk.probe());
    run("swapoff", &[disk.node()]);
    assert_eq!(refusals, [Refusal::Swap { what: disk.name() }]);
}

#[test]
fn a_read_only_disk_is_refused_and_cannot_be_opened() {
    let disk = Loop::with(&pattern(1 << 20), &["--read-only"]);
    let probe = disk.probe();
    assert_eq!(judge(&probe), [Refusal::ReadOnly]);
    assert!(block::Device::open(&block::Roots::default(), &probe).is_err());
}

#[test]
fn a_disk_that_was_replaced_after_it_was_judged_is_not_opened() {
    let first = Loop::new(&pattern(1 << 20));
    let mut judged = first.probe();
    judged.disk.sequence = judged.disk.sequence.map(|sequence| sequence + 1);
    let error = block::Device::open(&block::Roots::default(), &judged).unwrap_err();
    assert!(error.to_string().contains("replaced"), "{error}");
    let mut judged = first.probe();
    judged.disk.size += 512;
    assert!(matches!(block::Device::open(&block::Roots::default(), &judged), Err(OpenError::Changed { .. })));
}

#[test]
fn two_paths_are_believed_only_with_the_same_content() {
    let content = pattern(4 << 20);
    let (first, second) = (Loop::new(&content), Loop::new(&content));
    let mut judged = first.probe();
    judged.disk.other_paths = vec![second.name()];
    let roots = block::Roots::default();
    let device = block::Device::open(&roots, &judged).unwrap();
    let meanwhile = block::Device::open(&roots, &second.probe()).map(|_| ());
    assert!(matches!(meanwhile, Err(OpenError::Open { .. })), "the other path is held too");
    drop(device);
    second.write((4 << 20) - 512, &[1; 512]);
    let error = block::Device::open(&roots, &judged).unwrap_err();
    assert!(error.to_string().contains("another disk"), "{error}");
}

/// A second loop device over the content of a disk, in the place of a multipath map: this kernel has no device-mapper.
struct SecondWay(block::Map);

impl SecondWay {
    fn to(disk: &Loop) -> Self {
        let path = std::path::PathBuf::from(run("losetup", &["--find", "--show", &disk.backing()]).trim());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let number = std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
        let (major, minor) = number.trim().split_once(':').unwrap();
        SecondWay(block::Map { name, path, dev: (major.parse().unwrap(), minor.parse().unwrap()) })
    }
}

impl Drop for SecondWay {
    fn drop(&mut self) {
        run("losetup", &["-d", self.0.path.to_str().unwrap()]);
    }
}

#[test]
fn a_disk_with_a_healthy_map_is_erased_through_it_and_only_when_it_is_the_same_disk() {
    let (disk, other) = (Loop::new(&pattern(4 << 20)), Loop::new(&vec![7; 4 << 20]));
    let (map, foreign) = (SecondWay::to(&disk), SecondWay::to(&other));
    let roots = block::Roots::default();
    let with = |map: &block::Map| block::Probe { map: Some(map.clone()), ..disk.probe() };
    let error = block::Device::open(&roots, &with(&foreign.0)).unwrap_err();
    assert!(error.to_string().contains("another disk"), "{error}");
    let renumbered = block::Map { dev: foreign.0.dev, ..map.0.clone() };
    let error = block::Device::open(&roots, &with(&renumbered)).unwrap_err();
    assert!(error.to_string().contains("another device number"), "{error}");

    let device = block::Device::open(&roots, &with(&map.0)).unwrap();
    let busy = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&map.0.path);
    assert_eq!(busy.unwrap_err().raw_os_error(), Some(libc::EBUSY), "no other opener has the map");
    // A real map has its paths for itself: ours must not ask for the first one alone.
    let claimed = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&disk.path);
    assert!(claimed.is_ok(), "{claimed:?}");
    assert!(device.present());
    let record = erase(&device, &[Method::Overwrite], &());
    assert_eq!(record.ending, Ending::Erased, "{record:?}");
    assert!(disk.part(0, 4 << 20).iter().all(|&byte| byte == 0));
}

#[test]
fn a_disk_that_is_detached_during_the_erase_fails_as_vanished() {
    let disk = Loop::new(&pattern(8 << 20));
    let device = disk.open();
    assert!(device.present());
    // The medium goes while the device is held: the kernel then says size 0, as of a pulled disk.
    run("truncate", &["-s", "0", &disk.backing()]);
    run("losetup", &["--set-capacity", disk.node()]);
    let record = erase(&device, &[Method::Overwrite], &());
    assert!(matches!(&record.ending, Ending::Failed(reason) if reason.contains("vanished")), "{record:?}");
}
