//! Hostile programs, really started: none does harm, and each failure is reported.
//!
//! Needs root, busybox and a C compiler, like the rest of the suite.

mod common;

use common::{Jail, KEPT, PATIENCE};
use sandbox::{DeviceNode, Ended, Error, Grants, Host, NodeKind};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const VIEW: &str = "echo root: $(ls /); echo dev: $(ls /dev); echo user: $(id -u); echo host: $(hostname)
echo pid: $$; echo proc: $(ls /proc | busybox grep -v '^[0-9]'); echo pwd: $(busybox pwd); echo given: $GIVEN
echo fds: $(ls /proc/self/fd); busybox grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status
touch /x /usr/x /dev/x; echo data > /tmp/x && cat /scratch/x; echo out > /dev/stdout";

/// What the program of [`VIEW`] sees, whatever way its root was changed.
fn assert_view(jail: &Jail) {
    let mut running = jail.start(VIEW, &Grants::default());
    assert_eq!(running.finish(), Ended::Exited(0));
    let said = running.kept.take();
    let expected = [
        "root: bin dev proc scratch tmp usr",
        "dev: fd full null random shm stderr stdin stdout urandom zero",
        &format!("user: {}", running.user),
        "host: anneal",
        "pid: 1",
        "proc: self thread-self",
        "pwd: /scratch",
        "given: yes",
        // 4 is the directory that ls reads.
        "fds: 0 1 2 3 4",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "touch: /x: Read-only file system",
        "touch: /usr/x: Read-only file system",
        "touch: /dev/x: Read-only file system",
        "data",
        "out",
    ];
    for line in expected {
        assert!(said.lines().any(|said| said == line), "{line:?} is not in:\n{said}");
    }
}

#[test]
fn a_program_sees_its_root_and_nothing_of_the_host() {
    assert_view(&Jail::new());
}

#[test]
fn the_way_of_the_ramdisk_where_the_root_cannot_be_pivoted_shows_the_same() {
    let mut jail = Jail::new();
    jail.host = Host { root_is_rootfs: true, ..jail.host };
    assert_view(&jail);
}

#[test]
fn the_calls_that_break_walls_are_refused() {
    let jail = Jail::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile.c");
    let binary = jail.root.path().join("usr/bin/hostile");
    let built =
        Command::new("cc").args(["-static", "-o"]).args([&binary, &source]).status().expect("a compiler");
    assert!(built.success());
    let mut running = jail.execute(&["/bin/hostile"], &Grants::default()).expect("started");
    assert_eq!(running.finish(), Ended::Exited(0));
    let said = running.kept.take();
    for line in said.lines() {
        let expected = if line.starts_with("harmless") { "0" } else { "1" };
        assert_eq!(line.split_once(' ').map(|(_, errno)| errno), Some(expected), "{said}");
    }
    assert_eq!(said.lines().count(), 17, "{said}");
}

#[test]
fn a_fork_bomb_is_bounded_and_dies_with_everything_it_made() {
    let jail = Jail::new();
    let grants = Grants { pids: 20, ..Grants::default() };
    // Each copy leaves its parent, and starts two more. The first shell starts the bomb by a single fork and never
    // forks again: a shell whose fork fails ends with status 2, and with it everything in its pid namespace.
    let mut running =
        jail.start("bomb() { bomb | bomb & }; trap '' TERM; (bomb) & while :; do :; done", &grants);
    let deadline = Instant::now() + PATIENCE;
    while running.processes().len() < 15 && !running.kept.take().contains("can't fork") {
        assert!(Instant::now() < deadline, "the bomb does not go off");
        running.drain();
    }
    assert!(running.processes().len() <= 20, "{:?}", running.processes());
    assert_eq!(running.confined.kill(), Some(Ended::Killed(9)));
    assert_eq!(running.processes(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn output_without_end_is_counted_and_kept_to_its_limit() {
    let jail = Jail::new();
    let mut running = jail.start("cat /dev/zero", &Grants::default());
    running.until(|running| running.read > 10 << 30);
    assert_eq!(running.confined.kill(), Some(Ended::Killed(9)));
    let kept = running.kept.take();
    assert!(
        kept.len() < KEPT + 100 && kept.ends_with("more bytes of output were dropped]\n"),
        "{}",
        kept.len()
    );
}

#[test]
fn memory_scratch_and_files_are_bounded() {
    let grants = Grants { scratch_mib: 2, memory_mib: 64, ..Grants::default() };
    let jail = Jail::new();
    let said = jail.run("dd if=/dev/zero of=/scratch/a bs=1M count=9", &grants);
    assert!(said.contains("No space left"), "{said}");
    let mut greedy = jail.start("dd if=/dev/zero of=/dev/null bs=128M", &grants);
    let ended = greedy.finish();
    if jail.host.cgroup.as_ref().is_some_and(|(_, all)| all.iter().any(|name| name == "memory")) {
        assert_eq!(ended, Ended::Killed(9), "the whole group is killed");
    } else {
        let said = greedy.kept.take();
        assert!(said.contains("out of memory"), "{said}");
    }
    // Small files, many of them: inodes are the kernel's memory.
    let said = jail.run(
        "i=0; while : > /scratch/$i; do i=$((i + 1)); done; echo $i",
        &Grants { scratch_mib: 64, ..grants },
    );
    assert!(said.contains("No space left"), "{said}");
}

/// The directory of this process's groups goes with its last program, and not from under the next.
#[test]
fn a_program_starts_while_others_end() {
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let jail = Jail::new();
                (0..50).for_each(|_| drop(jail.run(":", &Grants::default())));
            });
        }
    });
}

/// A loop device over a file of 4 MiB; detached when dropped.
struct Loop {
    path: String,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn new() -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(4 << 20).expect("its size");
        let made =
            Command::new("losetup").args(["--find", "--show"]).arg(file.path()).output().expect("losetup");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { path: String::from_utf8(made.stdout).expect("a path").trim().to_owned(), _file: file }
    }

    fn node(&self, writable: bool) -> DeviceNode {
        let metadata = fs::metadata(&self.path).expect("a device");
        assert!(metadata.file_type().is_block_device());
        let (major, minor) = (libc_major(metadata.rdev()), libc_minor(metadata.rdev()));
        DeviceNode { name: self.name().into(), kind: NodeKind::Block, major, minor, writable }
    }

    fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}

fn libc_major(device: u64) -> u32 {
    u32::try_from(nix::sys::stat::major(device)).expect("a major number")
}

fn libc_minor(device: u64) -> u32 {
    u32::try_from(nix::sys::stat::minor(device)).expect("a minor number")
}

#[test]
fn only_granted_devices_can_be_opened_and_only_as_granted() {
    let (writable, readable, other) = (Loop::new(), Loop::new(), Loop::new());
    let jail = Jail::new();
    // The root brings a node of the third one along.
    fs::create_dir(jail.root.path().join("node")).expect("node");
    let numbers = other.node(false);
    // Everybody may write it: only that the root has no devices keeps the program away.
    let status = Command::new("mknod")
        .arg("--mode=666")
        .arg(jail.root.path().join("node/disk"))
        .args(["b", &numbers.major.to_string(), &numbers.minor.to_string()])
        .status();
    assert!(status.expect("mknod").success());
    let script = format!(
        "echo mark | dd of=/dev/{} bs=1 seek=3000000 conv=notrunc; dd if=/dev/{} bs=512 count=1 of=/dev/null; \
         echo no > /dev/{}; echo no > /dev/{}; echo no > /node/disk; mknod /scratch/disk b {} {}; \
         busybox grep CapEff /proc/self/status",
        writable.name(),
        readable.name(),
        readable.name(),
        other.name(),
        numbers.major,
        numbers.minor
    );
    let devices = vec![writable.node(true), readable.node(false)];
    // The bound on files does not bound a device: the mark lies behind it.
    let said = jail.run(&script, &Grants { devices, scratch_mib: 1, ..Grants::default() });
    let mut content = Vec::new();
    fs::File::open(&writable.path).and_then(|mut disk| disk.read_to_end(&mut content)).expect("the disk");
    assert_eq!(&content[3_000_000..3_000_004], b"mark", "{said}");
    for line in [
        "1+0 records in",
        &format!("can't create /dev/{}: Permission denied", readable.name()),
        &format!("can't create /dev/{}: Read-only file system", other.name()),
        "can't create /node/disk: Permission denied",
        "mknod: /scratch/disk: Operation not permitted",
        "CapEff:\t0000000000020000",
    ] {
        assert!(said.contains(line), "{line:?} is not in:\n{said}");
    }
    for disk in [&readable, &other] {
        assert!(fs::read(&disk.path).expect("the disk").iter().all(|byte| *byte == 0));
    }
}

#[test]
fn the_network_is_there_only_when_granted() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let script = format!("nc -w 2 127.0.0.1 {port} < /dev/null && echo connected");
    let jail = Jail::new();
    let said = jail.run(&script, &Grants::default());
    assert!(said.contains("Network is unreachable") && !said.contains("connected"), "{said}");
    let accepted = std::thread::spawn(move || listener.accept().map(drop));
    let said = jail.run(&script, &Grants { network: true, ..Grants::default() });
    assert!(said.contains("connected"), "{said}");
    accepted.join().expect("no panic").expect("accepted");
}

#[test]
fn descriptor_3_is_the_socket_and_the_deaf_are_killed_at_once() {
    let jail = Jail::new();
    let mut running = jail.start(
        "trap '' TERM INT HUP; (busybox setsid sh -c 'trap \"\" TERM; while :; do busybox sleep 1; done' &)
         read line <&3; echo heard $line >&3; while :; do sleep 1; done",
        &Grants::default(),
    );
    running.confined.socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    running.confined.socket.write_all(b"hello\n").expect("sent");
    let mut answer = [0; 12];
    running.confined.socket.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"heard hello\n");
    let killed = Instant::now();
    assert_eq!(running.confined.kill(), Some(Ended::Killed(9)));
    assert!(killed.elapsed() < Duration::from_secs(2));
    assert_eq!(running.processes(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_program_dies_with_the_thread_that_started_it() {
    let started = std::thread::spawn(|| {
        let running = Jail::new().start("while :; do sleep 1; done", &Grants::default());
        assert!(!running.processes().is_empty());
        running
    });
    let mut running = started.join().expect("no panic");
    assert_eq!(running.confined.wait(PATIENCE), Some(Ended::Killed(9)));
    assert_eq!(running.processes(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_cannot_be_started_is_reported_by_what_failed() {
    let jail = Jail::new();
    let refused =
        |argv: &[&str], grants: &Grants| jail.execute(argv, grants).err().expect("refused").to_string();
    assert_eq!(
        refused(&["/bin/absent"], &Grants::default()),
        "the program is not started, since it cannot be confined: execute its program: No such file or directory \
         (os error 2)"
    );
    let node =
        DeviceNode { name: "a".repeat(300), kind: NodeKind::Block, major: 8, minor: 0, writable: false };
    let long = refused(&["/bin/sh"], &Grants { devices: vec![node], ..Grants::default() });
    assert!(long.contains("make device node") && long.contains("File name too long"), "{long}");
    let program = sandbox::Program {
        name: "x".into(),
        root: "/nonexistent".into(),
        argv: vec!["/x".into()],
        environment: Vec::new(),
    };
    assert!(matches!(sandbox::start(&program, &Grants::default()), Err(Error::Host { .. })));
}
