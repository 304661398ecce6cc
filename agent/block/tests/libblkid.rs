//! libblkid's process: what it is confined to, and what becomes of its end.

use crate::common::Loop;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The process over a disk, once it has its answer and waits for room to write it.
struct Waiting {
    child: Child,
    _room: fs::File,
}

impl Waiting {
    fn over(disk: &Loop) -> Self {
        let (read, write) = nix::unistd::pipe().unwrap();
        let (read, mut write) = (fs::File::from(read), fs::File::from(write));
        // Full, so that a writer waits.
        let full = nix::fcntl::fcntl(&write, nix::fcntl::FcntlArg::F_GETPIPE_SZ).unwrap();
        write.write_all(&vec![0; usize::try_from(full).unwrap()]).unwrap();
        let request = format!("{{\"size\":{},\"sector\":512,\"partitions\":[]}}", 64 << 20);
        let child = Command::new("/proc/self/exe")
            .args(["--find-signatures", &request])
            .stdin(Stdio::from(fs::File::open(&disk.path).unwrap()))
            .stdout(Stdio::from(write))
            .spawn()
            .unwrap();
        let waiting = Waiting { child, _room: read };
        let deadline = Instant::now() + Duration::from_secs(60);
        // It sleeps for the pipe; for the disk it would be in state D.
        let written = |status: &str| status.contains("State:\tS") && status.contains("Seccomp:\t2");
        while !written(&waiting.of("status")) {
            assert!(Instant::now() < deadline, "{}", waiting.of("status"));
            std::thread::sleep(Duration::from_millis(5));
        }
        waiting
    }

    fn of(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    fn path(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.child.id())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn the_process_that_reads_a_disk_has_nothing_but_the_disk() {
    let disk = Loop::sparse(64 << 20, &[]);
    let waiting = Waiting::over(&disk);
    let status = waiting.of("status");
    for line in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    assert!(!status.contains("Uid:\t0"), "{status}");
    let link = |of: String| fs::read_link(of).unwrap();
    for namespace in ["net", "mnt", "ipc"] {
        let own = Path::new("/proc/self/ns").join(namespace);
        assert_ne!(
            link(waiting.path(&format!("ns/{namespace}"))),
            fs::read_link(own).unwrap(),
            "{namespace}"
        );
    }
    let root: Vec<_> =
        fs::read_dir(waiting.path("root")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(root, ["sys"]);
    assert_eq!(link(waiting.path("fd/0")), disk.path);
    let flags = waiting.of("fdinfo/0");
    let flags = flags.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
    assert_eq!(u32::from_str_radix(flags, 8).unwrap() & 3, 0, "read-only");
    for descriptor in fs::read_dir(waiting.path("fd")).unwrap() {
        let path = descriptor.unwrap().path();
        // Its messages go where those of this process go.
        if path.ends_with("2") {
            continue;
        }
        let to = link(path.to_str().unwrap().to_owned());
        let standard = to == disk.path || to.starts_with("/dev") || to.to_str().unwrap().starts_with("pipe:");
        assert!(standard, "{to:?}");
    }
}

#[test]
fn a_disk_that_cannot_be_read_by_it_is_an_error_that_says_so() {
    let disk = Loop::sparse(64 << 20, &[]);
    let mut listed = disk.probe().disk;
    // Larger than the device: the read fails in the other process.
    listed.size = u64::MAX;
    let error = block::probe(&listed).unwrap_err();
    assert!(error.to_string().contains("cannot look for signatures"), "{error}");
}
