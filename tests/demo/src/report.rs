//! What was measured and found: judged, printed and written down.

use agent_protocol::record::{DiskRecord, EraseReport, Outcome};
use lab::scan::Findings;
use lab::timeline::Timeline;
use serde_json::{Value, json};

use crate::observe;

/// What is known of one disk at the end.
#[derive(Debug)]
pub struct DiskResult {
    /// Serial number.
    pub serial: String,
    /// Bus.
    pub bus: &'static str,
    /// The image file.
    pub file: String,
    /// What the agent says it did.
    pub record: Option<DiskRecord>,
    /// What is seen from outside.
    pub found: Findings,
}

/// What is known of one node at the end.
#[derive(Debug)]
pub struct NodeResult {
    /// Name.
    pub name: String,
    /// `bios` or `uefi`.
    pub firmware: &'static str,
    /// RAM.
    pub memory_mib: u32,
    /// MAC of its port.
    pub mac: String,
    /// When `provide` was asked for, on the timeline.
    pub asked_at: f64,
    /// Seconds that `manage` took.
    pub manage_seconds: f64,
    /// The node as the API shows it.
    pub node: Value,
    /// Peak memory of the agent in bytes, where it reported one.
    pub agent_memory: Option<u64>,
    /// Its disks.
    pub disks: Vec<DiskResult>,
}

impl DiskResult {
    /// What speaks against this disk; empty when nothing does.
    pub fn complaints(&self) -> Vec<String> {
        let serial = &self.serial;
        let mut list = Vec::new();
        let found = &self.found;
        if found.unchanged > 0 {
            list.push(format!("{serial}: {} sectors with old data are unchanged", found.unchanged));
        }
        if found.tags > 0 {
            list.push(format!("{serial}: old data is found in {} places", found.tags));
        }
        match &self.record {
            None => list.push(format!("{serial}: there is no erase record")),
            Some(record) => {
                if record.outcome != Outcome::Erased {
                    let why = record.reason.as_deref().unwrap_or("no reason given");
                    list.push(format!("{serial}: the record says {:?}: {why}", record.outcome));
                }
                if self.promises_zeroes() && found.nonzero_bytes > 0 {
                    list.push(format!("{serial}: {} bytes are not zero", found.nonzero_bytes));
                }
            }
        }
        list
    }

    fn promises_zeroes(&self) -> bool {
        let verification = self.record.as_ref().and_then(|record| record.verification.as_ref());
        verification.is_some_and(|seen| seen.expected == "zeroes")
    }

    fn json(&self) -> Value {
        let record = self.record.as_ref();
        let verification = record.and_then(|record| record.verification.as_ref());
        json!({
            "serial": self.serial,
            "bus": self.bus,
            "image": self.file,
            "bytes": self.found.size,
            "method": record.and_then(|record| record.method.clone()),
            "outcome": record.map(|record| record.outcome),
            "seconds": record.and_then(|r| Some(round(r.finished_at? - r.started_at?))),
            "verified": verification.is_some_and(|seen| seen.passed),
            "verification": verification,
            "promises_zeroes": self.promises_zeroes(),
            "old_sectors": self.found.held_data,
            "old_sectors_left": self.found.unchanged,
            "nonzero_bytes": self.found.nonzero_bytes,
            "old_tags_left": self.found.tags,
        })
    }
}

impl NodeResult {
    /// What speaks against this node; empty when nothing does.
    pub fn complaints(&self) -> Vec<String> {
        let mut list = Vec::new();
        let state = self.node["provision_state"].as_str().unwrap_or_default();
        if state != "available" {
            list.push(format!("{} is {state}: {}", self.name, self.node["last_error"]));
        }
        list.extend(self.disks.iter().flat_map(DiskResult::complaints));
        list
    }

    /// Seconds of the stages, from the moment `provide` was asked for.
    pub fn stages(&self, timeline: &Timeline) -> Value {
        let since = |subject: &str, what: &str| {
            timeline.first_since(self.asked_at, subject, what).map(|at| round(at - self.asked_at))
        };
        let served = |file: &str| since(&self.mac, &format!("served {file}"));
        json!({
            "manage": round(self.manage_seconds),
            "power_on": since(&self.name, "power on"),
            "first_byte_served": since(&self.mac, observe::SERVED),
            "script_served": served("ipxe"),
            "kernel_served": served("vmlinuz"),
            "initramfs_served": served("initramfs"),
            "first_heartbeat": since(&self.name, observe::HEARTBEAT),
            "steps_cached": since(&self.name, observe::STEPS_CACHED),
            "steps": self.steps(timeline),
            "power_off": since(&self.name, "power off"),
            "total": since(&self.name, "available"),
        })
    }

    /// Each step: when it was first seen running, and how long until its result was seen.
    fn steps(&self, timeline: &Timeline) -> Vec<Value> {
        let events = timeline.events();
        let mut mine = events.iter().filter(|e| e.subject == self.name && e.at >= self.asked_at).peekable();
        let mut list = Vec::new();
        while let Some(event) = mine.next() {
            let Some(step) = event.what.strip_prefix("step ") else { continue };
            let end = mine.clone().find(|next| {
                next.what.starts_with("step ") || next.what == "available" || next.what == "power off"
            });
            list.push(json!({
                "step": step,
                "start": round(event.at - self.asked_at),
                "seconds": end.map(|end| round(end.at - event.at)),
            }));
        }
        list
    }

    fn json(&self, timeline: &Timeline) -> Value {
        json!({
            "name": self.name,
            "uuid": self.node["uuid"],
            "firmware": self.firmware,
            "memory_mib": self.memory_mib,
            "provision_state": self.node["provision_state"],
            "last_error": self.node["last_error"],
            "agent_peak_memory_bytes": self.agent_memory,
            "stages_seconds": self.stages(timeline),
            "disks": self.disks.iter().map(DiskResult::json).collect::<Vec<_>>(),
        })
    }
}

/// The erase records in a node's last run, by serial number; a later step's record wins.
pub fn records(node: &Value) -> Vec<DiskRecord> {
    let results = node["driver_internal_info"]["anneal"]["run"]["results"].as_array();
    let mut records: Vec<DiskRecord> = Vec::new();
    for result in results.into_iter().flatten() {
        let result = &result["result"];
        let report = result.get("clean_result").unwrap_or(result);
        let Ok(report) = serde_json::from_value::<EraseReport>(report.clone()) else { continue };
        for record in report.disks {
            // Another step's record of the same disk: a full erase says more than one of metadata.
            records.retain(|old| old.serial != record.serial);
            records.push(record);
        }
    }
    records
}

/// The whole report.
pub fn document(
    nodes: &[NodeResult],
    timeline: &Timeline,
    sizes: &Value,
    controller_memory: Option<u64>,
) -> Value {
    let complaints: Vec<String> = nodes.iter().flat_map(NodeResult::complaints).collect();
    let agent_memory = nodes.iter().filter_map(|node| node.agent_memory).max();
    json!({
        "anneal": env!("CARGO_PKG_VERSION"),
        "ok": complaints.is_empty(),
        "complaints": complaints,
        "image": sizes,
        "peak_memory_bytes": {"controller": controller_memory, "agent": agent_memory},
        "resolution_seconds": observe::RESOLUTION,
        "nodes": nodes.iter().map(|node| node.json(timeline)).collect::<Vec<_>>(),
    })
}

/// The end of the demo in a few lines.
pub fn print(nodes: &[NodeResult], timeline: &Timeline, document: &Value) {
    let seconds = |value: &Value| match value.as_f64() {
        Some(number) => format!("{number:.1} s"),
        None => "-".to_owned(),
    };
    for node in nodes {
        let stages = node.stages(timeline);
        println!(
            "\n{} ({}, {} MiB): {}",
            node.name, node.firmware, node.memory_mib, node.node["provision_state"]
        );
        for (stage, label) in [
            ("power_on", "power on"),
            ("first_byte_served", "first byte served"),
            ("first_heartbeat", "first heartbeat"),
            ("steps_cached", "steps cached"),
        ] {
            println!("  {label:<20} {:>8}", seconds(&stages[stage]));
        }
        for step in stages["steps"].as_array().into_iter().flatten() {
            let label = step["step"].as_str().unwrap_or_default();
            println!("  {label:<35} took {}", seconds(&step["seconds"]));
        }
        println!("  {:<20} {:>8}", "available", seconds(&stages["total"]));
        println!(
            "  {:<14} {:>6} {:<24} {:>12} {:>10} {:>10}",
            "serial", "bus", "method", "old sectors", "left", "not zero"
        );
        for disk in &node.disks {
            let method = disk.record.as_ref().and_then(|r| r.method.as_deref()).unwrap_or("-");
            let found = &disk.found;
            println!(
                "  {:<14} {:>6} {:<24} {:>12} {:>10} {:>10}",
                disk.serial, disk.bus, method, found.held_data, found.unchanged, found.nonzero_bytes
            );
        }
    }
    let memory = &document["peak_memory_bytes"];
    let mib = |value: &Value| match value.as_f64() {
        Some(bytes) => format!("{:.1} MiB", bytes / 1_048_576.0),
        None => "not reported".to_owned(),
    };
    println!(
        "\nkernel + initramfs {} bytes; peak memory: controller {}, agent {}",
        document["image"]["total"],
        mib(&memory["controller"]),
        mib(&memory["agent"])
    );
}

/// To milliseconds.
fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(outcome: Outcome, expected: &str) -> DiskRecord {
        let value = json!({
            "device": "/dev/sda", "serial": "S1", "size": 1024, "outcome": outcome, "bytes_erased": 1024,
            "method": "overwrite-zeroes",
            "verification": {
                "kind": "full", "bytes_read": 1024, "expected": expected, "mismatched_bytes": 0,
                "unchanged_samples": 0, "samples": 2, "passed": true,
            },
        });
        serde_json::from_value(value).unwrap()
    }

    fn disk(found: Findings, record: Option<DiskRecord>) -> DiskResult {
        DiskResult { serial: "S1".into(), bus: "sata", file: "s1.img".into(), record, found }
    }

    const CLEAN: Findings = Findings { size: 1024, held_data: 2, unchanged: 0, nonzero_bytes: 0, tags: 0 };

    #[test]
    fn a_clean_disk_has_no_complaints() {
        let good = disk(CLEAN, Some(record(Outcome::Erased, "zeroes")));
        assert_eq!(good.complaints(), Vec::<String>::new());
        let changed = Findings { nonzero_bytes: 9, ..CLEAN };
        let random = disk(changed, Some(record(Outcome::Erased, "changed")));
        assert_eq!(random.complaints(), Vec::<String>::new());
    }

    #[test]
    fn every_shortcoming_is_reported() {
        let erased = || Some(record(Outcome::Erased, "zeroes"));
        for (disk, word) in [
            (disk(Findings { unchanged: 1, ..CLEAN }, erased()), "1 sectors"),
            (disk(Findings { tags: 1, ..CLEAN }, erased()), "1 places"),
            (disk(Findings { nonzero_bytes: 7, ..CLEAN }, erased()), "7 bytes"),
            (disk(CLEAN, Some(record(Outcome::Skipped, "zeroes"))), "Skipped"),
            (disk(CLEAN, None), "no erase record"),
        ] {
            let complaints = disk.complaints();
            assert!(complaints.len() == 1 && complaints[0].contains(word), "{complaints:?}");
        }
    }

    #[test]
    fn steps_are_timed_by_what_follows_them() {
        let timeline = Timeline::default();
        for (at, what) in [(1.0, "step deploy.a"), (3.5, "step deploy.b"), (4.0, "power off")] {
            timeline.note_at(at, "n", what);
        }
        let node = NodeResult {
            name: "n".into(),
            firmware: "bios",
            memory_mib: 256,
            mac: "m".into(),
            asked_at: 0.5,
            manage_seconds: 1.0,
            node: json!({"provision_state": "available"}),
            agent_memory: None,
            disks: vec![],
        };
        let stages = node.stages(&timeline);
        assert_eq!(stages["steps"][0], json!({"step": "deploy.a", "start": 0.5, "seconds": 2.5}));
        assert_eq!(stages["steps"][1]["seconds"], 0.5);
        assert_eq!(stages["power_off"], 3.5);
        assert_eq!(stages["total"], Value::Null);
    }
}
