//! Lets the owner of a node log in to the ramdisk, for `rescue.finalize_rescue`.
//!
//! A controller calls a node RESCUED when that command succeeds. So a [`LoginService`] succeeds only when a user
//! really can log in. The ramdisk itself has none: the archive of a rescue boot brings [`ADD_ON`].

use crate::crypt::HashedPassword;
use nix::sys::signal::SigSet;
use std::fs::{DirBuilder, File, OpenOptions, remove_file};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The login program of the archive that only rescue boots get (`image/rescue/login`).
pub const ADD_ON: &str = "/usr/lib/anneal/rescue-login";

/// What a login program prints when a user can log in.
const READY: &str = "ready";
/// What it prints before the kind and the fingerprint of its host key.
const HOST_KEY: &str = "host key: ";
/// A login program that is not ready after this time has failed. Making a host key takes a second.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// A program that has closed its output ends within this time, or is ended.
const END_LIMIT: Duration = Duration::from_secs(1);
/// It is looked at this often meanwhile.
const POLL: Duration = Duration::from_millis(20);
/// Longest line of a login program, and most of its lines that are logged.
const LINE_MAX: u64 = 512;
const LINES_MAX: usize = 64;

/// What a user may log in with.
pub struct Credentials {
    /// The hash of the password.
    pub password: HashedPassword,
    /// Public keys, as in `authorized_keys`.
    pub keys: Vec<String>,
}

/// A login that is possible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// Kind and fingerprint of the host key, where the program says it.
    pub host_key: Option<String>,
}

/// Lets the rescue user log in.
pub trait LoginService: Send + Sync {
    /// Accept this password and these keys, and no earlier ones. Returns when a user can log in. May be called again.
    ///
    /// # Errors
    /// [`LoginError`] when no login is possible; then the password is stored nowhere.
    fn admit(&self, who: &Credentials) -> Result<Login, LoginError>;
}

/// Why no login is possible.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// There is nothing to log in to.
    #[error(
        "this ramdisk has no login service, so no login is possible and the node is not rescued; boot it with the archive \
         `rescue` behind the initramfs, or name another login service by anneal.login-program"
    )]
    None,
    /// The file for the hash, or that for the keys.
    #[error("cannot write {path:?} for the login: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The program did not start.
    #[error("cannot start the login program {program:?}: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The program ended.
    #[error("the login program {program:?} ended ({how}) before it was ready, so no login is possible")]
    Ended {
        /// The program.
        program: PathBuf,
        /// Its exit status, where it is known.
        how: String,
    },
    /// The program is not ready.
    #[error("the login program {program:?} was not ready within {} s, so no login is possible", READY_LIMIT.as_secs())]
    NotReady {
        /// The program.
        program: PathBuf,
    },
}

/// No login service.
pub struct NoLogin;

impl LoginService for NoLogin {
    fn admit(&self, _: &Credentials) -> Result<Login, LoginError> {
        Err(LoginError::None)
    }
}

/// A program that lets a user log in for as long as it runs. It is started with the paths of two files that only root may
/// read: one holds the hash and nothing else, the other the keys, one a line. It prints `ready` when a user can log in.
pub struct LoginProgram {
    program: PathBuf,
    password_file: PathBuf,
    running: Mutex<Option<Child>>,
}

impl LoginProgram {
    /// A program and where the file with the hash goes; that with the keys is next to it.
    pub fn new(program: PathBuf, password_file: PathBuf) -> Self {
        Self { program, password_file, running: Mutex::new(None) }
    }

    fn keys_file(&self) -> PathBuf {
        self.password_file.with_extension("keys")
    }

    fn start(&self) -> Result<(Child, Login), LoginError> {
        let mut command = Command::new(&self.program);
        command.arg(&self.password_file).arg(self.keys_file());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = with_all_signals(|| command.spawn())
            .map_err(|source| LoginError::Start { program: self.program.clone(), source })?;
        let lines = child.stdout.take().map(lines);
        match lines.map_or(Err(RecvTimeoutError::Disconnected), |lines| ready(&lines)) {
            Ok(login) => Ok((child, login)),
            Err(RecvTimeoutError::Disconnected) => {
                let how = ending(child);
                Err(LoginError::Ended { program: self.program.clone(), how })
            }
            Err(RecvTimeoutError::Timeout) => {
                stop(child);
                Err(LoginError::NotReady { program: self.program.clone() })
            }
        }
    }

    fn write_files(&self, who: &Credentials) -> Result<(), LoginError> {
        let keys: String = who.keys.iter().map(|key| format!("{key}\n")).collect();
        for (path, text) in [(&self.password_file, who.password.expose()), (&self.keys_file(), &keys)] {
            write_secret(path, text).map_err(|source| LoginError::File { path: path.clone(), source })?;
        }
        Ok(())
    }

    fn remove_files(&self) {
        for file in [&self.password_file, &self.keys_file()] {
            for file in [file, &unfinished(file)] {
                if let Err(error) = remove(file) {
                    tracing::warn!(path = ?file, %error, "a file of the rescue login stays");
                }
            }
        }
    }
}

impl LoginService for LoginProgram {
    fn admit(&self, who: &Credentials) -> Result<Login, LoginError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // The earlier password ends with the earlier program.
        if let Some(earlier) = running.take() {
            stop(earlier);
        }
        match self.write_files(who).and_then(|()| self.start()) {
            Ok((child, login)) => {
                tracing::info!(program = ?self.program, pid = child.id(), host_key = login.host_key, "login is possible");
                *running = Some(child);
                Ok(login)
            }
            Err(error) => {
                self.remove_files();
                Err(error)
            }
        }
    }
}

/// The lines of a program's output, until there are no more. The rest is read and dropped, so that the program can write.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        for _ in 0..LINES_MAX {
            let mut line = Vec::new();
            if !matches!((&mut output).take(LINE_MAX).read_until(b'\n', &mut line), Ok(1..)) {
                return;
            }
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            tracing::info!(line, "the login program says");
            // After `ready` no receiver is left.
            let _ = sender.send(line);
        }
        let _ = io::copy(&mut output, &mut io::sink());
    });
    lines
}

/// Waits until the program says that a user can log in.
fn ready(lines: &Receiver<String>) -> Result<Login, RecvTimeoutError> {
    let end = Instant::now() + READY_LIMIT;
    let mut login = Login::default();
    loop {
        let line = lines.recv_timeout(end.saturating_duration_since(Instant::now()))?;
        match line.strip_prefix(HOST_KEY) {
            Some(key) => login.host_key = Some(key.to_owned()),
            None if line == READY => return Ok(login),
            None => {}
        }
    }
}

/// How a program ended that has closed its output.
fn ending(mut child: Child) -> String {
    let end = Instant::now() + END_LIMIT;
    loop {
        if let Some(how) = ended(&mut child) {
            return how;
        }
        if Instant::now() >= end {
            stop(child);
            return "stopped, since it had closed its output".to_owned();
        }
        std::thread::sleep(POLL);
    }
}

impl Drop for LoginProgram {
    fn drop(&mut self) {
        if let Some(child) = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            stop(child);
        }
    }
}

fn stop(mut child: Child) {
    if ended(&mut child).is_none() {
        let stopped = child.kill().and_then(|()| child.wait());
        tracing::info!(pid = child.id(), ?stopped, "the login program is stopped");
    }
}

/// How a child ended, if it has. As PID 1 the agent reaps all children as they end, and only that remains known.
fn ended(child: &mut Child) -> Option<String> {
    match child.try_wait() {
        Ok(None) => None,
        Ok(Some(status)) => Some(status.to_string()),
        Err(_) => Some("status unknown".into()),
    }
}

/// A child inherits the signal mask of the thread that starts it, and all threads of PID 1 block what its signal
/// thread waits for.
fn with_all_signals<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let blocked = SigSet::thread_get_mask()?;
    SigSet::empty().thread_set_mask()?;
    let started = start();
    blocked.thread_set_mask()?;
    started
}

/// A new file of mode 0600 in place of whatever is there, complete or not at all.
fn write_secret(path: &Path, secret: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let fresh = unfinished(path);
    remove(&fresh)?;
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(secret.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}

fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Remove a file that may not be there.
fn remove(path: &Path) -> io::Result<()> {
    match remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn password(salt: &str) -> HashedPassword {
        HashedPassword::new(&format!("$5${salt}$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc8"))
            .expect("a hash")
    }

    fn who(salt: &str) -> Credentials {
        Credentials { password: password(salt), keys: vec![format!("ssh-ed25519 AAAA {salt}")] }
    }

    /// Programs of the tests: not written by them, since a file just written may be busy when it is to be run.
    fn program(name: &str, directory: &Path) -> LoginProgram {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        LoginProgram::new(path, directory.join("etc/anneal/rescue-password"))
    }

    /// Process id and hash of each program that was started, when that many have been.
    fn log(directory: &Path, lines: usize) -> Vec<(u32, String)> {
        let path = directory.join("etc/anneal/rescue-password.log");
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.lines().count() >= lines {
                let parts = text.lines().filter_map(|line| line.split_once(' '));
                return parts.map(|(pid, hash)| (pid.parse().expect("pid"), hash.to_owned())).collect();
            }
            assert!(Instant::now() < end, "only {text:?} was started");
            std::thread::sleep(POLL);
        }
    }

    fn alive(pid: u32) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn the_program_runs_with_the_file_and_a_later_password_replaces_the_earlier() {
        let directory = tempfile::tempdir().expect("tempdir");
        let login = program("login.sh", directory.path());
        let possible = login.admit(&who("one")).expect("admitted");
        assert_eq!(possible.host_key.as_deref(), Some("test SHA256:of-a-test"));
        let file = directory.path().join("etc/anneal/rescue-password");
        let keys = directory.path().join("etc/anneal/rescue-password.keys");
        for (file, text) in [(&file, password("one").expose()), (&keys, "ssh-ed25519 AAAA one\n")] {
            let mode = std::fs::metadata(file).expect("file").permissions().mode();
            assert_eq!(mode & 0o7777, 0o600);
            assert_eq!(std::fs::read_to_string(file).expect("file"), text);
        }
        log(directory.path(), 1);
        login.admit(&who("two")).expect("admitted again");
        let log = log(directory.path(), 2);
        assert_eq!(
            log.iter().map(|(_, hash)| hash.as_str()).collect::<Vec<_>>(),
            [password("one").expose(), password("two").expose()]
        );
        assert!(!alive(log[0].0) && alive(log[1].0));
        drop(login);
        assert!(!alive(log[1].0));
    }

    #[test]
    fn a_program_that_is_never_ready_is_an_error_and_no_password_is_kept() {
        let directory = tempfile::tempdir().expect("tempdir");
        let login = program("login-fails.sh", directory.path());
        let error = login.admit(&who("one")).expect_err("ended").to_string();
        assert!(error.contains("exit status: 3") && !error.contains("$5$"), "{error}");
        let missing = LoginProgram::new("/nonexistent/login".into(), directory.path().join("p"));
        assert!(matches!(missing.admit(&who("one")), Err(LoginError::Start { .. })));
        for file in ["etc/anneal/rescue-password", "p"] {
            for end in ["", ".new", ".keys"] {
                assert!(!directory.path().join(format!("{file}{end}")).exists(), "{file}{end}");
            }
        }
        assert!(matches!(NoLogin.admit(&who("one")), Err(LoginError::None)));
    }

    #[test]
    fn the_program_gets_all_signals() {
        let directory = tempfile::tempdir().expect("tempdir");
        let mut blocked = SigSet::empty();
        blocked.add(nix::sys::signal::Signal::SIGTERM);
        blocked.thread_block().expect("blocked");
        let login = program("login.sh", directory.path());
        login.admit(&who("one")).expect("admitted");
        let pid = log(directory.path(), 1)[0].0;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
        let mask =
            status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("mask").trim().to_owned();
        assert_eq!(mask, "0000000000000000");
        assert!(SigSet::thread_get_mask().expect("mask").contains(nix::sys::signal::Signal::SIGTERM));
    }
}
