//! What agents report of the disks that they work on. Their words are theirs: a report that cannot be read counts nothing.

use crate::family::{Counters, Histograms, locked};
use crate::labels;
use crate::text::Text;
use agent_protocol::progress::{Phase, Progress};
use agent_protocol::record::{DiskRecord, EraseReport, Outcome};
use model::agent::AgentKind;
use model::{Node, StepKind};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Mutex;
use uuid::Uuid;

/// Bytes per second of one disk: from USB sticks to commands that end at once.
const RATES: &[f64] = &[1e7, 2.5e7, 5e7, 1e8, 2.5e8, 5e8, 1e9, 2.5e9, 5e9, 1e10, 1e11];
/// Nodes whose last progress is kept; more do not erase at once.
const NODES: usize = 100_000;

/// How far the disks of a node are: by device, the phase and its bytes.
type Reached = HashMap<String, (&'static str, u64)>;

/// Erases and other work on disks.
#[derive(Debug)]
pub struct Erases {
    disks: Counters<2>,
    bytes: Counters<1>,
    rates: Histograms<1>,
    progress: Counters<1>,
    reached: Mutex<HashMap<Uuid, Reached>>,
}

impl Erases {
    /// None yet.
    pub fn new() -> Self {
        Self {
            disks: Counters::new(
                "anneal_erased_disks_total",
                "Disks of erase steps that ended, by method and outcome.",
                ["method", "outcome"],
            ),
            bytes: Counters::new(
                "anneal_erased_bytes_total",
                "Bytes that erase steps which ended have written, or had the drive erase.",
                ["method"],
            ),
            rates: Histograms::new(
                "anneal_erase_rate_bytes_per_second",
                "Bytes of an erased disk by the seconds that it took, its read-back included.",
                ["method"],
                RATES,
            ),
            progress: Counters::new(
                "anneal_disk_progress_bytes_total",
                "Bytes by which work on disks has gone on, as heartbeats report it.",
                ["phase"],
            )
            .starting([["erasing"], ["writing"], ["verifying"]]),
            reached: Mutex::default(),
        }
    }

    /// Count the records of a step that ended with this result.
    pub fn ended(&self, result: &Value) {
        let report = &result[StepKind::Clean.result_field()];
        let Ok(report) = EraseReport::deserialize(report) else { return };
        report.disks.iter().for_each(|disk| self.erased(disk));
    }

    fn erased(&self, disk: &DiskRecord) {
        let (outcome, otherwise) = match disk.outcome {
            Outcome::Erased => ("erased", labels::OTHER),
            Outcome::MetadataErased => ("metadata-erased", labels::METADATA),
            Outcome::Skipped => ("skipped", "none"),
            Outcome::Failed => ("failed", "none"),
        };
        let method = disk.method.as_deref().map_or(otherwise, labels::method);
        self.disks.count([method, outcome]);
        if disk.outcome != Outcome::Erased {
            return;
        }
        self.bytes.add([method], disk.bytes_erased);
        if let (Some(from), Some(to)) = (disk.started_at, disk.finished_at)
            && to > from
        {
            // Exact below 9 PB.
            self.rates.observe([method], disk.bytes_erased as f64 / (to - from));
        }
    }

    /// Count how far the disks of a node have come since its last heartbeat.
    pub fn heard(&self, node: Uuid, agent: &AgentKind) {
        let progress = agent.anneal().and_then(|agent| agent.progress.as_ref());
        let progress = progress.and_then(|progress| Progress::deserialize(progress).ok());
        let mut known = locked(&self.reached);
        let disks = progress.map(|progress| progress.disks).unwrap_or_default();
        if disks.is_empty() {
            known.remove(&node);
            return;
        }
        if known.len() >= NODES {
            known.clear();
        }
        let before = known.remove(&node).unwrap_or_default();
        let mut reached = Reached::new();
        for disk in disks {
            let phase = match disk.phase {
                Phase::Erasing => "erasing",
                Phase::Writing => "writing",
                Phase::Verifying => "verifying",
                Phase::Pending | Phase::Sampling | Phase::Done => continue,
            };
            let from = before.get(&disk.device).filter(|(of, _)| *of == phase).map_or(0, |(_, bytes)| *bytes);
            self.progress.add([phase], disk.bytes_done.saturating_sub(from));
            reached.insert(disk.device, (phase, disk.bytes_done));
        }
        known.insert(node, reached);
    }

    /// Forget a node at which nothing is under way.
    pub fn rests(&self, node: &Node) {
        if !node.run.as_ref().is_some_and(|run| run.is_active()) {
            locked(&self.reached).remove(&node.uuid);
        }
    }

    /// Write the families.
    pub fn write(&self, text: &mut Text) {
        self.disks.write(text);
        self.bytes.write(text);
        self.rates.write(text);
        self.progress.write(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::agent::AgentState;
    use serde_json::json;

    fn heartbeat(phase: &str, bytes: u64) -> AgentKind {
        let disk =
            json!({"device": "/dev/sda", "phase": phase, "bytes_done": bytes, "bytes_total": 100, "rate": 1});
        AgentKind::Anneal(AgentState {
            boot_id: "b".into(),
            process_id: "p".into(),
            evidence_key: None,
            running: Some("c".into()),
            ended: Vec::new(),
            progress: Some(json!({"disks": [disk]})),
        })
    }

    fn text(erases: &Erases) -> String {
        let mut text = Text::default();
        erases.write(&mut text);
        text.into_string()
    }

    #[test]
    fn progress_counts_what_was_added_since_the_heartbeat_before() {
        let (erases, node) = (Erases::new(), Uuid::nil());
        for (phase, bytes) in [("erasing", 10), ("erasing", 25), ("erasing", 25), ("verifying", 5)] {
            erases.heard(node, &heartbeat(phase, bytes));
        }
        // It began again.
        erases.heard(node, &heartbeat("verifying", 2));
        let text = text(&erases);
        assert!(text.contains("anneal_disk_progress_bytes_total{phase=\"erasing\"} 25\n"), "{text}");
        assert!(text.contains("anneal_disk_progress_bytes_total{phase=\"verifying\"} 5\n"), "{text}");
    }

    #[test]
    fn a_record_counts_bytes_and_rate_and_its_words_are_ours() {
        let erases = Erases::new();
        let disk = |method: &str, outcome: &str| {
            json!({"device": "/dev/sda", "size": 4000, "outcome": outcome, "method": method, "bytes_erased": 4000,
                   "started_at": 10.0, "finished_at": 12.0})
        };
        let disks =
            [disk("overwrite-zeroes", "erased"), disk("node-17", "erased"), disk("zero-out", "failed")];
        erases.ended(&json!({"clean_result": {"disks": disks}}));
        erases.ended(&json!({"clean_result": "not a report"}));
        let text = text(&erases);
        for line in [
            "anneal_erased_disks_total{method=\"overwrite-zeroes\",outcome=\"erased\"} 1\n",
            "anneal_erased_disks_total{method=\"zero-out\",outcome=\"failed\"} 1\n",
            "anneal_erased_bytes_total{method=\"overwrite-zeroes\"} 4000\n",
            "anneal_erased_bytes_total{method=\"other\"} 4000\n",
            "anneal_erase_rate_bytes_per_second_sum{method=\"overwrite-zeroes\"} 2000\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("node-17"), "{text}");
    }
}
