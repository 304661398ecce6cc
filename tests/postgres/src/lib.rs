//! A PostgreSQL server of a test's own: Debian's package postgresql-15, in a temporary directory, reached through a Unix socket
//! there. It ends with the value, and with the process of the test, however that ends.
//!
//! initdb refuses root, so as root it runs as the user `postgres`, whom the package makes.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where Debian has the programs of the server.
pub const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// How long the server may take to begin or to end.
const LIMIT: Duration = Duration::from_secs(60);
/// Of the user `postgres` over TCP; through the socket everybody who reaches it is believed.
pub const PASSWORD: &str = "only of this test";

/// What survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing is synced: for what is never killed.
    None,
    /// What is acknowledged is on the disk.
    Full,
}

/// The server.
#[derive(Debug)]
pub struct Server {
    dir: TempDir,
    settings: Vec<String>,
    /// The postmaster, and the thread that ends with it.
    running: Option<(Pid, JoinHandle<()>)>,
    port: u16,
    databases: AtomicU32,
}

impl Server {
    /// Make one and start it.
    pub fn start(durability: Durability) -> Self {
        Self::with(durability, &[])
    }

    /// The same with further settings, as `name=value`.
    pub fn with(durability: Durability, settings: &[&str]) -> Self {
        let mut server = Self::stopped(durability, settings);
        let password = server.dir().join("password");
        fs::write(&password, PASSWORD).expect("a file");
        give(&password);
        let made = server
            .program("initdb")
            .arg("-D")
            .arg(server.data())
            .args(["-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"])
            .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
            .arg(format!("--pwfile={}", password.display()))
            .stdout(Stdio::null())
            .status()
            .expect("initdb of the Debian package postgresql-15");
        assert!(made.success(), "initdb: {made}");
        server.run();
        server
    }

    /// A server without data yet, which does not run.
    pub fn empty(settings: &[&str]) -> Self {
        Self::stopped(Durability::Full, settings)
    }

    /// A standby that streams from this server as `name`, with further settings.
    pub fn standby(&self, name: &str, settings: &[&str]) -> Self {
        let mut standby = Self::empty(settings);
        let primary =
            format!("host={} port={} user=postgres application_name={name}", self.dir().display(), self.port);
        let copied = standby
            .program("pg_basebackup")
            .arg("-D")
            .arg(standby.data())
            .args(["--dbname", &primary, "--write-recovery-conf", "--checkpoint=fast", "--no-sync"])
            .status()
            .expect("pg_basebackup of the Debian package postgresql-client-15");
        assert!(copied.success(), "pg_basebackup: {copied}");
        standby.run();
        standby
    }

    /// Make a standby the primary; returns when it takes writes.
    pub fn promote(&self) {
        self.sql("postgres", "SELECT pg_promote(true, 60)");
    }

    /// A directory and settings, without data yet.
    fn stopped(durability: Durability, settings: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("pg-").tempdir_in("/tmp").expect("a temporary directory");
        give(dir.path());
        let mut all: Vec<String> =
            ["listen_addresses=", "max_connections=400", "shared_buffers=64MB", "log_min_messages=warning"]
                .map(str::to_owned)
                .to_vec();
        if durability == Durability::None {
            all.extend(["fsync=off", "full_page_writes=off"].map(str::to_owned));
        }
        all.extend(settings.iter().map(|setting| (*setting).to_owned()));
        let port = settings.iter().find_map(|setting| setting.strip_prefix("port=")?.parse().ok());
        let (port, databases) = (port.unwrap_or(5432), AtomicU32::new(0));
        Self { dir, settings: all, running: None, port, databases }
    }

    /// Its directory: the socket, and the files that a test puts there.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its data.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// One of PostgreSQL's programs, or another by its path, as a user who may run it.
    fn program(&self, name: &str) -> Command {
        let program = Path::new(PROGRAMS).join(name);
        // It dies with the thread that starts it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(user) = other_user() {
            command
                .arg(format!("--reuid={}", user.uid))
                .arg(format!("--regid={}", user.gid))
                .arg("--clear-groups");
        }
        command.arg(program).env_clear().env("LC_ALL", "C").current_dir(self.dir.path());
        command
    }

    /// Start it again after [`Server::kill`] or [`Server::stop`]; returns when it answers.
    pub fn run(&mut self) {
        assert!(self.running.is_none(), "it runs");
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.dir.path());
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.path().join("log"))
            .expect("a log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        let (started, pid) = mpsc::channel();
        let end = std::thread::spawn(move || {
            let mut child = command.spawn().expect("setpriv starts postgres");
            let _ = started.send(Pid::from_raw(child.id().cast_signed()));
            let _ = child.wait();
        });
        self.running = Some((pid.recv().expect("a process"), end));
        let began = Instant::now();
        while !self.answers() {
            assert!(began.elapsed() < LIMIT, "PostgreSQL does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its first process, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.running.as_ref().and_then(|(process, _)| u32::try_from(process.as_raw()).ok())
    }

    /// What it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn answers(&self) -> bool {
        let mut ask = Command::new(format!("{PROGRAMS}/pg_isready"));
        ask.arg("-q")
            .arg("-p")
            .arg(self.port.to_string())
            .arg("-h")
            .arg(self.dir.path())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Kill all of its processes at once, as a failure of the machine would.
    pub fn kill(&mut self) {
        let Some((postmaster, end)) = self.running.take() else { return };
        // It can neither start nor end one while they are counted.
        let _ = kill(postmaster, Signal::SIGSTOP);
        let children = children(postmaster);
        for process in children.iter().chain([&postmaster]) {
            let _ = kill(*process, Signal::SIGKILL);
        }
        let began = Instant::now();
        let _ = end.join();
        while children.iter().any(|child| is_alive(*child)) && began.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// End it as an administrator would: connections are closed, transactions are undone.
    pub fn stop(&mut self) {
        let Some((postmaster, end)) = self.running.take() else { return };
        let _ = kill(postmaster, Signal::SIGINT);
        let began = Instant::now();
        while !end.is_finished() {
            assert!(began.elapsed() < LIMIT, "PostgreSQL does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What `psql` prints of statements in a database.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let ran = Command::new(format!("{PROGRAMS}/psql"))
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database, "-h"])
            .arg(self.dir.path())
            .args(["-p", &self.port.to_string(), "-c", sql])
            .output()
            .expect("psql of the Debian package postgresql-client-15");
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim_end().to_owned()
    }

    /// What a script of bash prints, which is run as who runs the server, with PostgreSQL's programs, at this server.
    pub fn shell(&self, script: &str) -> String {
        let mut command = self.program("/usr/bin/bash");
        command.args(["-e", "-o", "pipefail", "-c", script]).env("PATH", format!("{PROGRAMS}:/usr/bin:/bin"));
        command.env("PGHOST", self.dir()).env("PGPORT", self.port.to_string()).env("PGUSER", "postgres");
        let ran = command.output().expect("bash");
        assert!(ran.status.success(), "{script}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// A new database; its name.
    pub fn create(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// A new database that is a copy of another, to which no client may be connected; its name.
    pub fn copy(&self, template: &str) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        name
    }

    /// Remove a database, also while clients are connected to it.
    pub fn remove(&self, database: &str) {
        self.sql("postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
    }

    /// The URL of a database, through the socket.
    pub fn url(&self, database: &str) -> String {
        let path = self.dir.path().to_str().expect("a path in UTF-8").replace('/', "%2F");
        format!("postgres://postgres@{path}:{}/{database}", self.port)
    }
}

/// The server that the tests of one process share, which is not durable: it ends with the last that holds it. A test takes it
/// at its beginning and holds it to its end.
pub fn shared() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(Server::start(Durability::None));
        *shared = Arc::downgrade(&server);
        server
    })
}

impl Server {
    /// Keep it until the process ends, with which it ends, too. Its directory is removed then.
    #[expect(clippy::zombie_processes, reason = "it ends after this process")]
    pub fn until_exit(self) -> &'static Self {
        // The pipe is closed by the end of this process, however that comes. The last processes of the server may still write.
        const CLEAN: &str = "read -r _; for _ in 1 2 3 4 5; do rm -rf -- \"$0\" && exit; sleep 1; done";
        let mut cleaner = Command::new("sh")
            .args(["-c", CLEAN])
            .arg(self.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a shell");
        std::mem::forget(cleaner.stdin.take());
        Box::leak(Box::new(self))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Give a path to whom PostgreSQL runs as.
fn give(path: &Path) {
    if let Some(user) = other_user() {
        let owner = (Some(user.uid.as_raw()), Some(user.gid.as_raw()));
        std::os::unix::fs::chown(path, owner.0, owner.1).expect("chown");
    }
}

/// Whom PostgreSQL runs as, if not as who runs the test.
fn other_user() -> Option<User> {
    let user = || User::from_name("postgres").ok().flatten();
    geteuid().is_root().then(|| user().expect("the user postgres of the Debian package postgresql-common"))
}

/// State and parent of a process, from proc(5).
fn status(process: &str) -> Option<(char, Pid)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, Pid::from_raw(fields.next()?.parse().ok()?)))
}

fn children(parent: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let own = names.filter(|name| status(name).is_some_and(|(_, of)| of == parent));
    own.filter_map(|name| name.parse().ok()).map(Pid::from_raw).collect()
}

fn is_alive(process: Pid) -> bool {
    status(&process.to_string()).is_some_and(|(state, _)| state != 'Z')
}
