//! Programs in a root of their own: busybox, and what the test adds.

use sandbox::{Confined, Ended, Entry, EntryKind, Grants, Host, OutputBuffer, Program, plan, spawn};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest that any program of these tests runs.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Output kept of each.
pub const KEPT: usize = 64 * 1024;

/// A root with `/bin/sh`.
pub struct Jail {
    pub root: TempDir,
    pub host: Host,
}

/// A program that was started.
pub struct Running {
    pub confined: Confined,
    pub user: u32,
    pub kept: OutputBuffer,
    pub read: u64,
}

impl Jail {
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        // Not 0700, which keeps the program's user out of its own root.
        let modes = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(root.path(), modes).expect("permissions");
        fs::create_dir_all(root.path().join("usr/bin")).expect("usr/bin");
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).expect("bin");
        // By a process of its own: a descriptor of this one that is open for writing would go to every child that
        // another test forks meanwhile, and until that child's exec the copy could not be executed (ETXTBSY).
        let copied =
            Command::new("cp").arg("/usr/bin/busybox").arg(root.path().join("usr/bin/busybox")).status();
        assert!(copied.expect("cp").success(), "package busybox-static");
        std::os::unix::fs::symlink("busybox", root.path().join("usr/bin/sh")).expect("sh");
        Self { root, host: Host::look() }
    }

    /// Start `/bin/sh -c SCRIPT`.
    pub fn start(&self, script: &str, grants: &Grants) -> Running {
        let script =
            format!("alias {}\n{script}", APPLETS.map(|name| format!("{name}='busybox {name}'")).join(" "));
        self.execute(&["/bin/sh", "-c", &script], grants).expect("started")
    }

    pub fn execute(&self, argv: &[&str], grants: &Grants) -> Result<Running, sandbox::Error> {
        let program = Program {
            name: "hostile".into(),
            root: self.root.path().into(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            environment: vec![("GIVEN".into(), "yes".into())],
        };
        let user = Host::look().user;
        let host = Host { user, ..self.host.clone() };
        let plan = plan(&program, grants, self.root.path(), &entries(self.root.path()), &host)?;
        Ok(Running { confined: spawn(plan)?, user, kept: OutputBuffer::new(KEPT), read: 0 })
    }

    /// Start, let it end, and say what it said.
    pub fn run(&self, script: &str, grants: &Grants) -> String {
        let mut running = self.start(script, grants);
        running.finish();
        running.kept.take()
    }
}

/// Applets that scripts use by name.
const APPLETS: [&str; 14] = [
    "cat", "dd", "head", "hostname", "id", "ls", "mkdir", "mknod", "nc", "ps", "sleep", "touch", "yes", "wc",
];

fn entries(root: &Path) -> Vec<Entry> {
    let mut entries = vec![
        Entry { name: "bin".into(), kind: EntryKind::Link("usr/bin".into()) },
        Entry { name: "usr".into(), kind: EntryKind::Directory },
    ];
    if root.join("node").exists() {
        entries.push(Entry { name: "node".into(), kind: EntryKind::Directory });
    }
    entries
}

impl Running {
    /// Read its output once; false at the end.
    pub fn drain(&mut self) -> bool {
        let mut buffer = [0; 65_536];
        match self.confined.output.read(&mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.read += length as u64;
                self.kept.push(&buffer[..length]);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                self.confined.wait(Duration::from_millis(1));
                true
            }
            Err(error) => panic!("its output: {error}"),
        }
    }

    /// Read its output until it has said this.
    pub fn until(&mut self, said: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !said(self) {
            assert!(Instant::now() < deadline, "waited too long; so far: {}", self.kept.take());
            assert!(self.drain(), "it ended: {}", self.kept.take());
        }
    }

    /// Read its output to its end.
    pub fn finish(&mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        while self.drain() {
            assert!(Instant::now() < deadline, "it does not end: {}", self.kept.take());
        }
        self.confined.wait(PATIENCE).expect("it closed its output and lives")
    }

    /// Process ids, in the host's namespace, of all that run as its user.
    pub fn processes(&self) -> Vec<PathBuf> {
        let line = format!("Uid:\t{}\t", self.user);
        let of =
            |path: &PathBuf| fs::read_to_string(path.join("status")).is_ok_and(|text| text.contains(&line));
        let all = fs::read_dir("/proc").expect("/proc").filter_map(|entry| Some(entry.ok()?.path()));
        all.filter(of).collect()
    }
}
