//! What a user typed and saw, with times, as text and pictures in a directory. It is written as it happens: of a trial that fails,
//! the beginning is there.

use anyhow::{Context, Result};
use browser::Page;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the text.
const TEXT: &str = "transcript.txt";

/// One trial.
pub struct Transcript {
    dir: PathBuf,
    text: File,
    begun: Instant,
    pictures: usize,
}

impl Transcript {
    /// Begins one in a directory, in the place of an earlier one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(dir: &Path) -> Result<Self> {
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        let text = File::create(dir.join(TEXT))?;
        Ok(Self { dir: dir.to_owned(), text, begun: Instant::now(), pictures: 0 })
    }

    /// A command, and what it printed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn command(&mut self, command: &str, printed: &str) -> Result<()> {
        let printed = printed.trim_end();
        let end = if printed.is_empty() { "" } else { "\n" };
        self.line(&format!("$ {command}\n{printed}{end}"))
    }

    /// What the user did in the page and saw there, with a picture of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn seen(&mut self, page: &Page<'_>, what: &str) -> Result<()> {
        self.pictures += 1;
        let name = format!("{:02}.png", self.pictures);
        page.screenshot(&self.dir.join(&name))?;
        self.line(&format!("page: {what} [{name}]\n"))
    }

    /// How long it has taken.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A sentence at the end.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(mut self, text: &str) -> Result<()> {
        self.line(&format!("{text}\n"))
    }

    fn line(&mut self, text: &str) -> Result<()> {
        Ok(write!(self.text, "[{:6.1} s] {text}", self.begun.elapsed().as_secs_f64())?)
    }
}
