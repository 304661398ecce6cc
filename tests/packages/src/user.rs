//! A user at a terminal of the machine. What the user types is the next command of a page of the book.

use crate::room::Room;
use crate::transcript::Transcript;
use anyhow::{Context, Result, ensure};
use contract::process::Daemon;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Where the user is in the root, and where the ramdisk is.
const HOME: &str = "root";
const RAMDISK: &str = "/usr/share/anneal";

/// The user of a root.
pub struct User<'a> {
    room: &'a Room,
    /// What is done is noted here.
    pub transcript: Transcript,
    commands: std::vec::IntoIter<String>,
    typed: usize,
}

impl<'a> User<'a> {
    /// One with these commands before them.
    pub fn new(room: &'a Room, commands: Vec<String>, transcript: Transcript) -> Self {
        Self { room, transcript, commands: commands.into_iter(), typed: 0 }
    }

    /// The user's directory, as the machine that tests sees it.
    pub fn home(&self) -> PathBuf {
        self.room.root.join(HOME)
    }

    /// Types the next command, which begins like this, and waits for its end; what it printed.
    ///
    /// # Errors
    /// When the next command is another, or it fails.
    pub fn types(&mut self, begin: &str) -> Result<String> {
        let command = self.next(begin)?;
        let script = format!("exec 2>&1\ncd /{HOME}\n{command}");
        let output = self.room.command(&["HOME=/root", "sh", "-ec", &script]).output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        self.transcript.command(&command, &printed)?;
        ensure!(output.status.success(), "{command}: {}: {printed}", output.status);
        Ok(printed)
    }

    /// Types the next command, which goes on in the background (`&`). Its program is that of the machine that tests: the root has
    /// no emulator.
    ///
    /// # Errors
    /// When the next command is another, or it cannot be started.
    pub fn starts(&mut self, begin: &str) -> Result<Daemon> {
        let command = self.next(begin)?;
        let program =
            command.strip_suffix('&').with_context(|| format!("{command}: not in the background"))?;
        let ramdisk = self.room.root.join(RAMDISK.trim_start_matches('/'));
        let program = program.replace(RAMDISK, &ramdisk.display().to_string());
        let mut shell = Command::new("sh");
        shell.args(["-ec", &format!("cd '{}'\nexec {program}", self.home().display())]);
        self.transcript.command(&command, "")?;
        Daemon::start(&shell, &self.room.root.join("var/log/background.log"))
    }

    /// The user has reached the goal: every command was typed, at most so many, in at most so long.
    ///
    /// # Errors
    /// When that is not so.
    pub fn ends(mut self, most_commands: usize, most_time: Duration) -> Result<()> {
        ensure!(self.commands.next().is_none(), "the page has commands that were not typed");
        let (typed, took) = (self.typed, self.transcript.elapsed());
        self.transcript.end(&format!("{typed} commands, {:.0} s", took.as_secs_f64()))?;
        ensure!(typed <= most_commands, "{typed} commands, not {most_commands}");
        ensure!(took <= most_time, "{} s, not {}", took.as_secs(), most_time.as_secs());
        Ok(())
    }

    fn next(&mut self, begin: &str) -> Result<String> {
        let command =
            self.commands.next().with_context(|| format!("the page has no command {begin:?} here"))?;
        ensure!(command.starts_with(begin), "the page has {command:?}, not {begin:?}");
        self.typed += 1;
        Ok(command)
    }
}
