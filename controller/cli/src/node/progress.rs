//! How a followed node looks: pure text.

use crate::output::{bytes, duration, printable};
use crate::view::NodeView;
use agent_protocol::progress::{DiskProgress, Phase};

/// Everything about the node but its disks, in one line.
pub fn headline(node: &NodeView) -> String {
    headline_with(node, true)
}

/// `live` is what changes with each heartbeat.
fn headline_with(node: &NodeView, live: bool) -> String {
    let mut parts = vec![node.state().to_owned()];
    if let Some(target) = &node.target_provision_state {
        parts[0].push_str(&format!(" → {target}"));
    }
    parts.push(match (&node.power_state, &node.target_power_state) {
        (power, Some(target)) => format!("{} → {target}", power.as_deref().unwrap_or("power unknown")),
        (Some(power), None) => power.clone(),
        (None, None) => "power unknown".to_owned(),
    });
    if node.maintenance {
        parts.push(match &node.maintenance_reason {
            Some(reason) => format!("maintenance: {reason}"),
            None => "maintenance".to_owned(),
        });
    }
    parts.extend(node.step().map(|step| format!("step {step}")));
    if let Some(wait) = &node.driver_internal_info.anneal.wait {
        parts.push(match wait.deadline.as_ref().filter(|_| live) {
            Some(deadline) => format!("waiting: {} (until {deadline})", wait.reason),
            None => format!("waiting: {}", wait.reason),
        });
    }
    let progress = node.driver_internal_info.anneal.progress.as_ref().filter(|_| live);
    parts.extend(progress.and_then(|progress| progress.text.clone()));
    if let Some(error) = node.last_error.as_ref().filter(|_| node.has_failed() || node.is_stable()) {
        parts.push(format!("last error: {error}"));
    }
    printable(&format!("{}  {}", node.label(), parts.join("  |  "))).replace('\n', " ")
}

/// Name of a disk: device and serial number.
pub fn disk_name(disk: &DiskProgress) -> String {
    match &disk.serial {
        Some(serial) => printable(&format!("{} {serial}", disk.device)),
        None => printable(&disk.device),
    }
}

/// `erasing overwrite-zeroes`
pub fn disk_phase(disk: &DiskProgress) -> String {
    let phase = match disk.phase {
        Phase::Pending => "waiting",
        Phase::Sampling => "sampling",
        Phase::Erasing => "erasing",
        Phase::Writing => "writing",
        Phase::Verifying => "reading back",
        Phase::Done => "done",
    };
    match &disk.method {
        Some(method) => printable(&format!("{phase} {method}")),
        None => phase.to_owned(),
    }
}

/// `1.0 GiB of 2.0 GiB, 512.0 MiB/s, 2s left`, or without the whole while its size is not known
pub fn disk_pace(disk: &DiskProgress) -> String {
    if matches!(disk.phase, Phase::Pending | Phase::Done) {
        return String::new();
    }
    let mut text = bytes(disk.bytes_done);
    if disk.bytes_total > 0 {
        text.push_str(&format!(" of {}", bytes(disk.bytes_total)));
    }
    text.push_str(&format!(", {}/s", bytes(disk.rate)));
    if disk.stalled_since.is_some() {
        text.push_str(", stands still");
    }
    if let Some(seconds) = disk.eta {
        text.push_str(&format!(", {} left", duration(seconds)));
    }
    text
}

/// Share of the phase that is done, in percent, at most 100.
pub fn percent(disk: &DiskProgress) -> u64 {
    match disk.phase {
        Phase::Done => 100,
        Phase::Pending => 0,
        _ if disk.bytes_total == 0 => 0,
        _ => {
            let share = u128::from(disk.bytes_done) * 100 / u128::from(disk.bytes_total);
            u64::try_from(share).map_or(100, |share| share.min(100))
        }
    }
}

/// A line of a log, and the part of it whose changes are worth a new line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The line is printed again when this changes. It has no deadlines and no words of the agent: every heartbeat changes them.
    pub key: String,
    /// The line.
    pub text: String,
}

/// The lines that a log gets of the node: the headline, and each disk in steps of ten percent.
pub fn log_lines(node: &NodeView) -> Vec<LogLine> {
    let mut lines = vec![LogLine { key: headline_with(node, false), text: headline(node) }];
    for disk in node.driver_internal_info.anneal.progress.iter().flat_map(|progress| &progress.disks) {
        let tenth = percent(disk) / 10 * 10;
        let still = if disk.stalled_since.is_some() { ", stands still" } else { "" };
        let text = format!("{}  {}: {} {tenth}%{still}", node.label(), disk_name(disk), disk_phase(disk));
        lines.push(LogLine { key: text.clone(), text });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node() -> NodeView {
        NodeView::of(&json!({
            "uuid": "u", "name": "n1", "provision_state": "clean wait", "target_provision_state": "available",
            "power_state": "power on", "clean_step": {"interface": "deploy", "step": "erase_devices"},
            "last_error": "of an earlier run",
            "driver_internal_info": {"clean_steps": [{}], "clean_step_index": 0, "anneal": {
                "wait": {"reason": "the agent runs deploy.erase_devices", "deadline": "2026-11-21T09:00:00+00:00"},
                "progress": {"disks": [
                    {"device": "/dev/nvme0n1", "serial": "N1", "phase": "erasing", "method": "overwrite-zeroes",
                     "bytes_done": 268_435_456, "bytes_total": 1_073_741_824, "rate": 536_870_912, "eta": 1},
                    {"device": "/dev/sda", "phase": "pending", "bytes_done": 0, "bytes_total": 0, "rate": 0}
                ]}
            }}
        }))
    }

    #[test]
    fn a_node_under_erase() {
        let node = node();
        let lines: Vec<_> = log_lines(&node).into_iter().map(|line| line.text).collect();
        assert_eq!(
            lines,
            [
                "n1  clean wait → available  |  power on  |  step deploy.erase_devices (1/1)  |  waiting: \
                 the agent runs deploy.erase_devices (until 2026-11-21T09:00:00+00:00)",
                "n1  /dev/nvme0n1 N1: erasing overwrite-zeroes 20%",
                "n1  /dev/sda: waiting 0%",
            ]
        );
        let progress = node.driver_internal_info.anneal.progress.unwrap();
        assert_eq!(disk_pace(&progress.disks[0]), "256.0 MiB of 1.0 GiB, 512.0 MiB/s, 1s left");
        assert_eq!(disk_pace(&progress.disks[1]), "");
        let still =
            DiskProgress { stalled_since: Some(1.5), rate: 0, eta: None, ..progress.disks[0].clone() };
        assert_eq!(disk_pace(&still), "256.0 MiB of 1.0 GiB, 0 B/s, stands still");
        let image = DiskProgress {
            phase: Phase::Writing,
            method: None,
            bytes_total: 0,
            eta: None,
            ..progress.disks[0].clone()
        };
        assert_eq!((disk_phase(&image).as_str(), percent(&image)), ("writing", 0));
        assert_eq!(disk_pace(&image), "256.0 MiB, 512.0 MiB/s", "a mirror that does not say the length");
    }

    #[test]
    fn a_later_deadline_alone_is_no_news() {
        let (before, mut after) = (node(), node());
        after.driver_internal_info.anneal.wait.as_mut().unwrap().deadline = Some("later".into());
        let keys = |node| log_lines(node).into_iter().map(|line| line.key).collect::<Vec<_>>();
        let progress = after.driver_internal_info.anneal.progress.as_mut().unwrap();
        progress.text = Some("http://mirror/x stalled".into());
        assert_eq!(keys(&before), keys(&after));
        assert!(
            headline(&after).ends_with("(until later)  |  http://mirror/x stalled"),
            "{}",
            headline(&after)
        );
        assert_ne!(headline(&before), headline(&after));
    }

    #[test]
    fn an_error_shows_where_the_node_rests() {
        let mut node = node();
        node.provision_state = Some("clean failed".into());
        node.maintenance = true;
        node.driver_internal_info = Default::default();
        node.clean_step = json!({});
        assert_eq!(
            headline(&node),
            "n1  clean failed → available  |  power on  |  maintenance  |  last error: of an earlier run"
        );
    }
}
