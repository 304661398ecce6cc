//! A node as the controller shows it, read with names.

use std::time::Duration;

use agent_protocol::progress::{DiskProgress, Phase};
use agent_protocol::record::{DiskRecord, EraseReport, Outcome};
use anyhow::{Context, Result, ensure};
use lab::controller::Controller;
use lab::wait;
use serde_json::Value;

use crate::stage::ERASE;

/// The answer to `GET /v1/nodes/{ident}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Node(pub Value);

impl Node {
    /// As it is now.
    ///
    /// # Errors
    /// When the controller does not show it.
    pub async fn now(controller: &Controller, ident: &str) -> Result<Self> {
        Ok(Self(controller.node(ident).await?))
    }

    /// Its provision state.
    pub fn state(&self) -> &str {
        self.0["provision_state"].as_str().unwrap_or_default()
    }

    /// Its last error, empty when there is none.
    pub fn last_error(&self) -> &str {
        self.0["last_error"].as_str().unwrap_or_default()
    }

    /// Its last error says all of this.
    ///
    /// # Errors
    /// When it does not.
    pub fn ensure_says(&self, words: &[&str]) -> Result<()> {
        for word in words {
            ensure!(self.last_error().contains(word), "{word:?} is not in last_error: {}", self.last_error());
        }
        Ok(())
    }

    /// What Anneal adds: run, wait, progress, agent, rival.
    pub fn anneal(&self) -> &Value {
        &self.0["driver_internal_info"]["anneal"]
    }

    /// Results of ended steps with this label.
    pub fn results(&self, step: &str) -> Vec<&Value> {
        let results = self.anneal()["run"]["results"].as_array();
        results.into_iter().flatten().filter(|result| result["step"] == step).collect()
    }

    /// What the only ended step with this label says of each disk.
    ///
    /// # Errors
    /// When there is no such result, several, or no report in it.
    pub fn records(&self, step: &str) -> Result<Vec<DiskRecord>> {
        let results = self.results(step);
        ensure!(results.len() == 1, "{} results of {step}: {}", results.len(), self.anneal()["run"]);
        let result = &results[0]["result"];
        let report = if result["clean_result"].is_null() { result } else { &result["clean_result"] };
        let report: EraseReport = serde_json::from_value(report.clone())
            .with_context(|| format!("the result of {step} is no report: {}", results[0]))?;
        Ok(report.disks)
    }

    /// The record of the disk with this serial number.
    ///
    /// # Errors
    /// When there is none.
    pub fn record(&self, step: &str, serial: &str) -> Result<DiskRecord> {
        let records = self.records(step)?;
        let found = records.iter().find(|record| record.serial.as_deref() == Some(serial));
        found.cloned().with_context(|| format!("no record of {serial} in {records:?}"))
    }

    /// The record of a disk that was erased, and read back.
    ///
    /// # Errors
    /// When it was not.
    pub fn erased(&self, serial: &str) -> Result<DiskRecord> {
        let record = self.record(ERASE, serial)?;
        let verified = record.verification.as_ref().is_some_and(|seen| seen.passed);
        ensure!(record.outcome == Outcome::Erased && verified, "{record:?}");
        Ok(record)
    }

    /// Progress of the disk with this serial number, from the last heartbeat.
    pub fn progress(&self, serial: &str) -> Option<DiskProgress> {
        let disks = self.anneal()["progress"]["disks"].as_array()?;
        let found = disks.iter().find(|disk| disk["serial"] == serial)?;
        serde_json::from_value(found.clone()).ok()
    }

    /// Failed, held for the operator, as Ironic holds a node whose cleaning failed.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn ensure_held(&self) -> Result<()> {
        let node = &self.0;
        ensure!(self.state() == "clean failed", "the node is {}", self.state());
        ensure!(node["maintenance"] == true, "not in maintenance");
        ensure!(node["fault"] == "clean failure", "its fault is {}", node["fault"]);
        ensure!(!self.last_error().is_empty(), "no last_error");
        let reason = node["maintenance_reason"].as_str().unwrap_or_default();
        ensure!(!reason.is_empty(), "no maintenance_reason");
        Ok(())
    }
}

/// Waits until this disk is being erased and `share` of it (0 to 1) is done, as heartbeats report.
///
/// # Errors
/// When that is not seen within `limit`, or the node has left the cleaning states.
pub async fn erasing(
    controller: &Controller,
    ident: &str,
    serial: &str,
    share: f64,
    limit: Duration,
) -> Result<(Node, DiskProgress)> {
    busy(controller, (ident, serial), (["cleaning", "clean wait"], Phase::Erasing), share, limit).await
}

/// Waits until an image is being written to this disk and `share` of it (0 to 1) was received, as heartbeats report.
///
/// # Errors
/// When that is not seen within `limit`, or the node has left the deploying states.
pub async fn writing(
    controller: &Controller,
    ident: &str,
    serial: &str,
    share: f64,
    limit: Duration,
) -> Result<(Node, DiskProgress)> {
    busy(controller, (ident, serial), (["deploying", "wait call-back"], Phase::Writing), share, limit).await
}

async fn busy(
    controller: &Controller,
    (ident, serial): (&str, &str),
    (states, phase): ([&str; 2], Phase),
    share: f64,
    limit: Duration,
) -> Result<(Node, DiskProgress)> {
    let what = format!("{ident} to be at work on {serial} ({phase:?})");
    wait::until(&what, limit, || async {
        let node = Node::now(controller, ident).await?;
        ensure!(states.contains(&node.state()), "it is {}: {}", node.state(), node.last_error());
        let progress = node.progress(serial).filter(|progress| progress.phase == phase);
        #[allow(clippy::cast_precision_loss, reason = "a share of a small disk")]
        let far = progress.filter(|seen| seen.bytes_done as f64 >= share * seen.bytes_total as f64);
        Ok(far.map(|progress| (node, progress)))
    })
    .await
}

/// Texts of the node's history, oldest first.
///
/// # Errors
/// When the controller does not show it.
pub async fn history(controller: &Controller, ident: &str) -> Result<Vec<String>> {
    let body = controller.get(&format!("/v1/nodes/{ident}/history?detail=true")).await?;
    let events = body["history"].as_array().context("no history")?;
    Ok(events.iter().map(|event| event["event"].as_str().unwrap_or_default().to_owned()).collect())
}

/// How many events of the node's history begin so.
///
/// # Errors
/// As [`history`].
pub async fn count(controller: &Controller, ident: &str, beginning: &str) -> Result<usize> {
    let events = history(controller, ident).await?;
    Ok(events.iter().filter(|event| event.starts_with(beginning)).count())
}
