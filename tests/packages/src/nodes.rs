//! Simulated nodes (anneal-fleet) of the controller in a root, what the API says of them, and what they saw.

use anyhow::{Context, Result, ensure};
use contract::process::{Daemon, check, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How many.
pub const COUNT: usize = 4;
/// Steps of a cleaning of the fleet; the first and the last must not be repeated.
const STEPS: usize = 3;
/// Nodes boot at once, and each step takes long enough for an upgrade in the middle.
const BEHAVIOUR: &str =
    "[agent]\nfirmware_ms = [100, 200]\nramdisk_ms = [100, 200]\nstep_ms = [9000, 9000]\n";
const LIMIT: Duration = Duration::from_secs(120);

/// The API of a controller at its socket.
pub struct Api(pub PathBuf);

impl Api {
    /// The answer to a request.
    ///
    /// # Errors
    /// When it is refused, or no controller answers.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail-with-body", "--request", method, "--unix-socket"]);
        curl.arg(&self.0).args(["--header", "X-OpenStack-Ironic-API-Version: 1.82"]);
        if let Some(body) = body {
            curl.args(["--header", "Content-Type: application/json", "--data", &body.to_string()]);
        }
        let output = check(curl.arg(format!("http://localhost{path}")))?;
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    /// Waits until a controller answers.
    ///
    /// # Errors
    /// When none does.
    pub fn wait(&self) -> Result<()> {
        wait_until("the controller answers", LIMIT, || Ok(self.call("GET", "/v1/drivers", None).is_ok()))
    }

    /// State of every node, by its UUID.
    ///
    /// # Errors
    /// When they cannot be listed, or one has failed.
    pub fn states(&self) -> Result<BTreeMap<String, String>> {
        let list = self.call("GET", "/v1/nodes?fields=uuid,provision_state,last_error", None)?;
        let mut states = BTreeMap::new();
        for node in list["nodes"].as_array().context("a list of nodes")? {
            let (uuid, state) = (node["uuid"].as_str(), node["provision_state"].as_str());
            let (uuid, state) = (uuid.context("a UUID")?, state.context("a state")?);
            ensure!(!state.ends_with("failed"), "{uuid} is {state}: {}", node["last_error"]);
            states.insert(uuid.to_owned(), state.to_owned());
        }
        Ok(states)
    }

    /// The events of a node, oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn history(&self, uuid: &str) -> Result<Vec<String>> {
        let path = format!("/v1/nodes/{uuid}/history?detail=true&limit=1000");
        let body = self.call("GET", &path, None)?;
        let events = body["history"].as_array().context("a history")?;
        Ok(events.iter().filter_map(|event| event["event"].as_str()).map(str::to_owned).collect())
    }

    /// The beginnings of steps of a node, each with the id of its command.
    ///
    /// # Errors
    /// When its history cannot be read.
    pub fn begun(&self, uuid: &str) -> Result<Vec<String>> {
        let events = self.history(uuid)?;
        Ok(events.into_iter().filter(|event| event.contains(" begins (")).collect())
    }
}

/// The nodes.
pub struct Nodes {
    fleet: Daemon,
    journal: PathBuf,
    enrolments: PathBuf,
}

impl Nodes {
    /// Starts them; the controller serves boot scripts at its usual port.
    ///
    /// # Errors
    /// When they do not start.
    pub fn start(bin_dir: &Path, dir: &Path) -> Result<Self> {
        let behaviour = dir.join("behaviour.toml");
        fs::write(&behaviour, BEHAVIOUR)?;
        let (journal, enrolments) = (dir.join("journal"), dir.join("enrolments"));
        let mut command = Command::new(bin_dir.join("anneal-fleet"));
        command.args(["serve", "--boot", "127.0.0.1:8089", "--nodes", &COUNT.to_string()]);
        command.arg("--journal").arg(&journal).arg("--enrolments").arg(&enrolments);
        command.arg("--behaviour").arg(&behaviour);
        let mut fleet = Daemon::start(&command, &dir.join("fleet.log"))?;
        wait_until("the fleet is there", LIMIT, || {
            fleet.ensure_running()?;
            Ok(fs::read_to_string(&enrolments).is_ok_and(|text| text.lines().count() == COUNT))
        })?;
        Ok(Self { fleet, journal, enrolments })
    }

    /// Enrols them, has their BMCs verified, and lets them be cleaned until each is in the middle of a step.
    ///
    /// # Errors
    /// When one fails.
    pub fn to_the_middle_of_a_step(&self, api: &Api) -> Result<()> {
        for line in fs::read_to_string(&self.enrolments)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            api.call("POST", "/v1/nodes", Some(&line["node"]))?;
            api.call("POST", "/v1/ports", Some(&line["port"]))?;
        }
        let uuids: Vec<String> = api.states()?.into_keys().collect();
        ensure!(uuids.len() == COUNT, "{uuids:?}");
        for (verb, state) in [("manage", "manageable"), ("provide", "clean wait")] {
            for uuid in &uuids {
                let path = format!("/v1/nodes/{uuid}/states/provision");
                api.call("PUT", &path, Some(&json!({ "target": verb })))?;
            }
            wait_until(state, LIMIT, || Ok(api.states()?.values().all(|now| now == state)))?;
        }
        wait_until("a step begins", LIMIT, || {
            for uuid in &uuids {
                if api.begun(uuid)?.is_empty() {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Ends them. What they saw: for each node how often it was powered on for the cleaning, and the ids of commands of the
    /// steps that its agent began.
    ///
    /// # Errors
    /// When the fleet does not end.
    pub fn end(mut self) -> Result<BTreeMap<u64, (usize, Vec<String>)>> {
        check(Command::new("kill").args(["-INT", &self.fleet.id().to_string()]))?;
        wait_until("the fleet ends", LIMIT, || Ok(self.fleet.ended()?.is_some()))?;
        let mut seen: BTreeMap<u64, (usize, Vec<String>)> = BTreeMap::new();
        for line in fs::read_to_string(&self.journal)?.lines() {
            let entry: Value = serde_json::from_str(line)?;
            let node = seen.entry(entry["node"].as_u64().context("a node's number")?).or_default();
            match entry["what"].as_str() {
                Some("on") => node.0 += 1,
                Some("step") => node.1.push(entry["id"].as_str().context("a command")?.to_owned()),
                _ => {}
            }
        }
        Ok(seen)
    }
}

/// Fails unless each of these nodes was powered on once and began each step once, under the id that the controller has stored.
///
/// # Errors
/// What a node saw twice, or not at all.
pub fn ensure_no_run_was_restarted(
    seen: &BTreeMap<u64, (usize, Vec<String>)>,
    stored: &[Vec<String>],
) -> Result<()> {
    ensure!(seen.len() == COUNT && stored.len() == COUNT, "{} nodes saw something", seen.len());
    for (node, (powered_on, steps)) in seen {
        ensure!(*powered_on == 1, "node {node} was powered on {powered_on} times");
        ensure!(steps.len() == STEPS, "node {node} began {steps:?}");
        let of_node =
            |begun: &&Vec<String>| steps.iter().all(|id| begun.iter().any(|event| event.contains(id)));
        let begun = stored.iter().find(of_node).with_context(|| format!("no history has {steps:?}"))?;
        ensure!(begun.len() == STEPS, "the history of node {node}: {begun:?}");
    }
    Ok(())
}
