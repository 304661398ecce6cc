//! The two command lines that scenarios ask with.

use crate::World;
use anyhow::{Context, Result, bail};
use contract::process::check;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A command line that can answer in JSON.
#[derive(Debug, Clone)]
pub struct Tool {
    program: PathBuf,
    before: Vec<String>,
    environment: Vec<(&'static str, String)>,
    json: [&'static str; 2],
}

impl Tool {
    /// Anneal's own.
    pub fn anneal(world: &World, endpoint: &str) -> Self {
        Self {
            program: world.bin_dir.join("anneal"),
            before: Vec::new(),
            environment: vec![("ANNEAL_ENDPOINT", endpoint.to_owned())],
            json: ["-o", "json"],
        }
    }

    /// OpenStack's, without authentication.
    pub fn openstack(world: &World, endpoint: &str) -> Self {
        Self {
            program: world.peers.program("osc", "openstack"),
            before: vec!["baremetal".to_owned()],
            environment: vec![("OS_AUTH_TYPE", "none".to_owned()), ("OS_ENDPOINT", endpoint.to_owned())],
            json: ["-f", "json"],
        }
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).args(line).envs(self.environment.iter().cloned()).stdin(Stdio::null());
        command
    }

    /// Runs a command that has no answer of interest.
    pub fn run(&self, line: &[&str]) -> Result<()> {
        check(&mut self.command(line)).with_context(|| line.join(" "))?;
        Ok(())
    }

    /// Runs a command and gives its answer.
    pub fn json(&self, line: &[&str]) -> Result<Value> {
        let output = check(self.command(line).args(self.json)).with_context(|| line.join(" "))?;
        serde_json::from_slice(&output.stdout).with_context(|| line.join(" "))
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
