//! Anneal's own command line, which scenarios ask with.

use crate::World;
use crate::process::{check, feed};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `anneal`, against one controller.
#[derive(Debug, Clone)]
pub struct Tool {
    program: PathBuf,
    endpoint: String,
}

impl Tool {
    /// For the controller, or the Ironic, at `endpoint`.
    pub fn anneal(world: &World, endpoint: &str) -> Self {
        Self { program: world.bin_dir.join("anneal"), endpoint: endpoint.to_owned() }
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(line).env("ANNEAL_ENDPOINT", &self.endpoint).stdin(Stdio::null());
        command
    }

    /// Runs a command that has no answer of interest.
    pub fn run(&self, line: &[&str]) -> Result<()> {
        check(&mut self.command(line)).with_context(|| line.join(" "))?;
        Ok(())
    }

    /// Runs a command and gives its answer.
    pub fn json(&self, line: &[&str]) -> Result<Value> {
        let output = check(self.command(line).args(["-o", "json"])).with_context(|| line.join(" "))?;
        serde_json::from_slice(&output.stdout).with_context(|| line.join(" "))
    }

    /// Runs a command and gives what it prints for people.
    pub fn text(&self, line: &[&str]) -> Result<String> {
        let output = check(&mut self.command(line)).with_context(|| line.join(" "))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command with something on its standard input.
    pub fn piped(&self, line: &[&str], input: &str) -> Result<()> {
        feed(&mut self.command(line), input).with_context(|| line.join(" "))
    }

    /// Runs a command that must be refused, and gives what it said.
    pub fn refused(&self, line: &[&str]) -> Result<String> {
        let output = self.command(line).output()?;
        if output.status.success() {
            bail!("{} was not refused", line.join(" "));
        }
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
