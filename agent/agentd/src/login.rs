//! Lets the owner of a node log in to the ramdisk, for `rescue.finalize_rescue`.
//!
//! A controller calls a node RESCUED when that command succeeds. So a [`LoginService`] succeeds only when a user
//! really can log in; the ramdisk has none yet, and says so.

use crate::crypt::HashedPassword;
use nix::sys::signal::SigSet;
use std::fs::{DirBuilder, File, OpenOptions, remove_file};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A login program that ends within this time has failed.
const GRACE: Duration = Duration::from_secs(1);
/// It is looked at this often meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// Lets the rescue user log in.
pub trait LoginService: Send + Sync {
    /// Accept this password, and no earlier one. Returns when a user can log in. May be called again.
    ///
    /// # Errors
    /// [`LoginError`] when no login is possible; then the password is stored nowhere.
    fn admit(&self, password: &HashedPassword) -> Result<(), LoginError>;
}

/// Why no login is possible.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// There is nothing to log in to.
    #[error(
        "this ramdisk has no login service, so no login is possible and the node is not rescued; boot one that has, and \
         name it by anneal.login-program"
    )]
    None,
    /// The file for the hash.
    #[error("cannot write the rescue password's file {path:?}: {source}")]
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
    /// The program ended at once.
    #[error("the login program {program:?} ended at once ({how}), so no login is possible")]
    Ended {
        /// The program.
        program: PathBuf,
        /// Its exit status, where it is known.
        how: String,
    },
}

/// No login service.
pub struct NoLogin;

impl LoginService for NoLogin {
    fn admit(&self, _: &HashedPassword) -> Result<(), LoginError> {
        Err(LoginError::None)
    }
}

/// A program that lets a user log in for as long as it runs. It is started with one argument, the path of a file
/// that holds the hash and nothing else, and that only root may read.
pub struct LoginProgram {
    program: PathBuf,
    password_file: PathBuf,
    running: Mutex<Option<Child>>,
}

impl LoginProgram {
    /// A program and where its file goes.
    pub fn new(program: PathBuf, password_file: PathBuf) -> Self {
        Self { program, password_file, running: Mutex::new(None) }
    }

    fn start(&self) -> Result<Child, LoginError> {
        let mut command = Command::new(&self.program);
        command.arg(&self.password_file).stdin(Stdio::null());
        let mut child = with_all_signals(|| command.spawn())
            .map_err(|source| LoginError::Start { program: self.program.clone(), source })?;
        let end = Instant::now() + GRACE;
        while Instant::now() < end {
            if let Some(how) = ended(&mut child) {
                return Err(LoginError::Ended { program: self.program.clone(), how });
            }
            std::thread::sleep(POLL);
        }
        Ok(child)
    }
}

impl LoginService for LoginProgram {
    fn admit(&self, password: &HashedPassword) -> Result<(), LoginError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // The earlier password ends with the earlier program.
        if let Some(earlier) = running.take() {
            stop(earlier);
        }
        let admitted = write_secret(&self.password_file, password.expose())
            .map_err(|source| LoginError::File { path: self.password_file.clone(), source })
            .and_then(|()| self.start());
        match admitted {
            Ok(child) => {
                tracing::info!(program = ?self.program, pid = child.id(), "login is possible");
                *running = Some(child);
                Ok(())
            }
            Err(error) => {
                for file in [&self.password_file, &unfinished(&self.password_file)] {
                    if let Err(error) = remove(file) {
                        tracing::warn!(path = ?file, %error, "the rescue password's file stays");
                    }
                }
                Err(error)
            }
        }
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
        login.admit(&password("one")).expect("admitted");
        let file = directory.path().join("etc/anneal/rescue-password");
        let mode = std::fs::metadata(&file).expect("file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(std::fs::read_to_string(&file).expect("file"), password("one").expose());
        log(directory.path(), 1);
        login.admit(&password("two")).expect("admitted again");
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
    fn a_program_that_does_not_stay_is_an_error_and_no_password_is_kept() {
        let directory = tempfile::tempdir().expect("tempdir");
        let login = program("login-fails.sh", directory.path());
        let error = login.admit(&password("one")).expect_err("ended").to_string();
        assert!(error.contains("exit status: 3") && !error.contains("$5$"), "{error}");
        let missing = LoginProgram::new("/nonexistent/login".into(), directory.path().join("p"));
        assert!(matches!(missing.admit(&password("one")), Err(LoginError::Start { .. })));
        for file in ["etc/anneal/rescue-password", "etc/anneal/rescue-password.new", "p", "p.new"] {
            assert!(!directory.path().join(file).exists(), "{file}");
        }
        assert!(matches!(NoLogin.admit(&password("one")), Err(LoginError::None)));
    }

    #[test]
    fn the_program_gets_all_signals() {
        let directory = tempfile::tempdir().expect("tempdir");
        let mut blocked = SigSet::empty();
        blocked.add(nix::sys::signal::Signal::SIGTERM);
        blocked.thread_block().expect("blocked");
        let login = program("login.sh", directory.path());
        login.admit(&password("one")).expect("admitted");
        let pid = log(directory.path(), 1)[0].0;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
        let mask =
            status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("mask").trim().to_owned();
        assert_eq!(mask, "0000000000000000");
        assert!(SigSet::thread_get_mask().expect("mask").contains(nix::sys::signal::Signal::SIGTERM));
    }
}
