//! Command line of a task: flags, `--name VALUE` options and words.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::sh;

/// Arguments not yet taken. Whatever is left at the end is an error ([`Args::finish`]).
#[derive(Default)]
pub struct Args(Vec<String>);

impl Args {
    /// The arguments after the task's name.
    pub fn new(words: Vec<String>) -> Self {
        Self(words)
    }

    /// Takes `--name`; true when it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|w| w == name);
        if let Some(at) = found {
            self.0.remove(at);
        }
        found.is_some()
    }

    /// Takes `--name VALUE` or `--name=VALUE`.
    pub fn option(&mut self, name: &str) -> Result<Option<String>> {
        let prefix = format!("{name}=");
        let Some(at) = self.0.iter().position(|w| w == name || w.starts_with(&prefix)) else {
            return Ok(None);
        };
        let word = self.0.remove(at);
        if let Some(value) = word.strip_prefix(&prefix) {
            return Ok(Some(value.to_owned()));
        }
        if at >= self.0.len() {
            bail!("{name} needs a value");
        }
        Ok(Some(self.0.remove(at)))
    }

    /// Takes `--name VALUE VALUE`.
    pub fn pair(&mut self, name: &str) -> Result<Option<(String, String)>> {
        let Some(at) = self.0.iter().position(|w| w == name) else { return Ok(None) };
        if at + 2 >= self.0.len() {
            bail!("{name} needs two values");
        }
        let mut taken = self.0.drain(at..=at + 2).skip(1);
        Ok(taken.next().zip(taken.next()))
    }

    /// Takes `--name WORD…`: all words up to the next that begins with a hyphen. `None` without `--name`.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(at) = self.0.iter().position(|w| w == name) else { return Ok(None) };
        let count = self.0[at + 1..].iter().take_while(|word| !word.starts_with('-')).count();
        if count == 0 {
            bail!("{name} needs at least one value");
        }
        Ok(Some(self.0.drain(at..=at + count).skip(1).collect()))
    }

    /// Takes `--root DIR`, the checkout to look at: by default this one.
    pub fn root(&mut self) -> Result<PathBuf> {
        Ok(self.option("--root")?.map_or_else(sh::root, Into::into))
    }

    /// Takes the words that are not options.
    pub fn words(&mut self) -> Vec<String> {
        let (words, rest) = self.0.drain(..).partition(|w| !w.starts_with("--"));
        self.0 = rest;
        words
    }

    /// The arguments that were not taken, for another program.
    pub fn rest(self) -> Vec<String> {
        self.0
    }

    /// Rejects arguments that were not taken.
    pub fn finish(self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => bail!("unknown argument {word:?}"),
        }
    }
}
