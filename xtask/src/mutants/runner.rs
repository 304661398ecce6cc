//! Builds and runs tests in the copied tree, each run bounded in time and kept in a log.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::command::{Suite, TestCommand};
use super::judge::{Verdict, judge};
use super::tree::Tree;
use crate::{kill, sh};

/// A build on two shared cores, the agent of the ramdisk with link-time optimization included.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);

/// The crates that `Cargo.toml` optimizes in the development profile and that rows change.
const BUILT_AGAIN: [&str; 4] = ["api", "conductor", "model", "store"];

/// The copied tree with its own target directory.
pub struct Runner {
    tree: Tree,
    target: PathBuf,
    log: PathBuf,
    /// Where tests put their files; short, since sockets have short names.
    temp: PathBuf,
    clean_image: PathBuf,
    clean_image_built: Cell<bool>,
    /// Held until the end: two runs at once would change each other's tree.
    _lock: File,
}

impl Runner {
    /// Copies the tree; a first target directory is seeded with what is already built.
    pub fn prepare() -> Result<Self> {
        let home = sh::target_dir().join("mutants");
        fs::create_dir_all(&home)?;
        let lock = home.join("lock");
        let file = File::create(&lock).with_context(|| lock.display().to_string())?;
        file.try_lock().with_context(|| format!("another run holds {}", lock.display()))?;
        let runner = Self {
            _lock: file,
            target: home.join("target"),
            log: home.join("log"),
            temp: std::env::temp_dir().join(format!("mutants-{}", std::process::id())),
            clean_image: home.join("image"),
            clean_image_built: Cell::new(false),
            tree: Tree::sync(home.join("tree"))?,
        };
        fs::create_dir_all(&runner.log)?;
        if !runner.target.exists() {
            seed(&sh::target_dir(), &runner.target)?;
        }
        Ok(runner)
    }

    /// The copy.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Builds and runs a test in the tree as it is now. `image`: the agent in the ramdisk is built from it too.
    pub fn judge(&self, name: &str, test: &TestCommand, image: bool, limit: Duration) -> Result<Verdict> {
        let log = self.log.join(format!("{name}.log"));
        fs::write(&log, format!("{name}: {test}\n"))?;
        for step in self.builds(test, image) {
            match bounded(self.cargo_for(test).args(step), &log, BUILD_LIMIT)? {
                Some(status) if status.success() => {}
                Some(_) => return Ok(Verdict::Broken("it does not build".to_owned())),
                None => {
                    let limit = BUILD_LIMIT.as_secs();
                    return Ok(Verdict::Broken(format!("the build did not end within {limit} s")));
                }
            }
        }
        let mut run = self.command(test, image)?;
        fs::create_dir_all(&self.temp)?;
        let ended = bounded(run.env("TMPDIR", &self.temp), &log, limit)?;
        // Scenarios that fail keep their disks for a person to look at; here failing is the rule.
        fs::remove_dir_all(&self.temp)?;
        match ended {
            None => Ok(Verdict::Hung(limit.as_secs())),
            Some(status) => Ok(judge(test, status.success(), &String::from_utf8_lossy(&fs::read(&log)?))),
        }
    }

    /// What cargo is to do before a test.
    fn builds<'a>(&self, test: &'a TestCommand, image: bool) -> Vec<Vec<&'a str>> {
        let programs = || vec!["build", "--workspace", "--bins"];
        match &test.suite {
            Suite::Cargo { package, target, .. } => {
                let target = target.iter().map(String::as_str);
                vec![["test", "--no-run", "-p", package].into_iter().chain(target).collect()]
            }
            Suite::Kill => vec![kill::BUILD.into()],
            Suite::Machines if image || !self.clean_image_built.get() => {
                vec![programs(), vec!["xtask", "image"]]
            }
            Suite::Machines => vec![programs()],
        }
    }

    /// The command that runs a test, of what [`builds`](Self::builds) have built.
    fn command(&self, test: &TestCommand, image: bool) -> Result<Command> {
        let bins = self.target.join("debug");
        let mut run = match &test.suite {
            Suite::Cargo { package, target, ignored } => {
                let mut run = self.cargo_for(test);
                run.args(["test", "-p", package]).args(target).args(["--no-fail-fast", &test.filter]);
                run.args(["--", "--ignored"].iter().filter(|_| *ignored));
                return Ok(run);
            }
            Suite::Kill => kill::command(&bins),
            Suite::Machines => {
                let mut run = Command::new(bins.join("machines"));
                run.current_dir(self.tree.dir()).arg("--bin-dir").arg(&bins);
                run.arg("--image").arg(self.image(image)?);
                run
            }
        };
        run.args(["--filter", &test.filter]);
        Ok(run)
    }

    /// The directory of an image: the mutated one that was just built, or a copy of the one built before anything was
    /// taken out (every test is first run unmutated).
    fn image(&self, mutated: bool) -> Result<PathBuf> {
        let out = self.tree.dir().join("image/out");
        if mutated {
            return Ok(out);
        }
        if !self.clean_image_built.replace(true) {
            fs::create_dir_all(&self.clean_image)?;
            for entry in fs::read_dir(&out)? {
                let entry = entry?;
                fs::copy(entry.path(), self.clean_image.join(entry.file_name()))?;
            }
        }
        Ok(self.clean_image.clone())
    }

    /// Cargo with what the crates that every mutant builds again need to be built quickly. The tests that look at
    /// thousands of worlds take longer without optimization than it takes to build.
    fn cargo_for(&self, test: &TestCommand) -> Command {
        let mut command = sh::cargo();
        if !test.wants_optimization() {
            for package in BUILT_AGAIN {
                command.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
            }
        }
        command.current_dir(self.tree.dir()).env("CARGO_TARGET_DIR", &self.target);
        // A mutant changes a few tokens of one crate.
        command.env("CARGO_INCREMENTAL", "1");
        command
    }
}

/// Copies what cargo and the image task have built so far, without what they would not look at.
fn seed(from: &Path, to: &Path) -> Result<()> {
    let ramdisk = ["x86_64-unknown-linux-gnu/ramdisk", "ramdisk"].map(|dir| (dir, PROFILE));
    for (dir, parts) in [("debug", PROFILE), ("", &["image"])].into_iter().chain(ramdisk) {
        for part in parts {
            let (from, to) = (from.join(dir).join(part), to.join(dir));
            if from.exists() {
                fs::create_dir_all(&to)?;
                sh::run(Command::new("cp").args(["-a", "--reflink=auto"]).args([&from, &to]))?;
            }
        }
    }
    Ok(())
}

/// What cargo looks at in the directory of a profile.
const PROFILE: &[&str] = &[".fingerprint", "build", "deps"];

/// Runs a command with its output added to `log`; `None` when it did not end in time and was killed, with all
/// the processes that it started in its group.
pub fn bounded(command: &mut Command, log: &Path, limit: Duration) -> Result<Option<ExitStatus>> {
    let out = File::options().append(true).open(log).with_context(|| log.display().to_string())?;
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let group = format!("-{}", child.id());
    let (ended, end) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let status = child.wait();
        // The receiver is gone when the limit has passed.
        let _ = ended.send(());
        status
    });
    let in_time = end.recv_timeout(limit).is_ok();
    // The shell's own kill: a minimal Debian has no program of that name.
    let kill = format!("kill -s KILL -- {group}");
    if !in_time
        && !sh::succeeds(Command::new("sh").args(["-c", &kill]))
        // It may have ended by itself since.
        && end.recv_timeout(Duration::from_secs(5)).is_err()
    {
        bail!("cannot kill process group {group} of {command:?}");
    }
    let status = match waiter.join() {
        Ok(status) => status.with_context(|| format!("cannot wait for {command:?}"))?,
        Err(_) => bail!("the thread that waited for {command:?} panicked"),
    };
    Ok(in_time.then_some(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_hang_is_ended_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        fs::write(&log, "").unwrap();
        let begun = Instant::now();
        let mut hang = Command::new("sh");
        hang.args(["-c", "sleep 1000 & echo $!; wait"]);
        assert!(bounded(&mut hang, &log, Duration::from_millis(300)).unwrap().is_none());
        assert!(begun.elapsed() < Duration::from_secs(60));
        let child = fs::read_to_string(&log).unwrap();
        let stat = format!("/proc/{}/stat", child.trim());
        // The kernel ends it in its own time; then it may stay a zombie where no process reaps orphans.
        let is_gone = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        while !is_gone() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{stat} is still there");
            thread::sleep(Duration::from_millis(5));
        }
        let ended = bounded(Command::new("sh").args(["-c", "echo said; exit 3"]), &log, BUILD_LIMIT).unwrap();
        assert_eq!(ended.and_then(|status| status.code()), Some(3));
        assert!(fs::read_to_string(&log).unwrap().ends_with("said\n"));
    }
}
