//! Measuring from outside: what the API says of a node, and when the boot services first served it.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use lab::controller::Controller;
use lab::net::mac_of;
use lab::timeline::Timeline;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio_util::sync::CancellationToken;

/// Pause between two questions; the resolution of what is measured by asking, in seconds.
pub const RESOLUTION: f64 = 0.2;

/// A boot service sent something.
pub const SERVED: &str = "served";
/// First heartbeat of the agent in this run.
pub const HEARTBEAT: &str = "first heartbeat";
/// The agent's steps are stored.
pub const STEPS_CACHED: &str = "steps cached";

/// Notes on the timeline, until `stop`, when a node's states, heartbeat and steps change.
pub async fn follow(
    controller: &Controller,
    timeline: &Timeline,
    nodes: &[&str],
    stop: CancellationToken,
) -> Result<()> {
    let mut last: Vec<Seen> = vec![Seen::default(); nodes.len()];
    while !stop.is_cancelled() {
        for (name, last) in nodes.iter().zip(&mut last) {
            let now = Seen::look(controller, name).await?;
            if now.state != last.state {
                timeline.note(name, &now.state);
            }
            if now.heartbeat.is_some() && now.heartbeat != last.heartbeat && last.heartbeat.is_none() {
                timeline.note(name, HEARTBEAT);
            }
            if now.steps && !last.steps {
                timeline.note(name, STEPS_CACHED);
            }
            if now.step != last.step && !now.step.is_empty() {
                timeline.note(name, &format!("step {}", now.step));
            }
            *last = now;
        }
        let pause = Duration::from_secs_f64(RESOLUTION);
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    Ok(())
}

/// What is compared from one look to the next.
#[derive(Debug, Clone, Default)]
struct Seen {
    state: String,
    step: String,
    heartbeat: Option<String>,
    steps: bool,
}

impl Seen {
    async fn look(controller: &Controller, name: &str) -> Result<Self> {
        let node = controller.node(name).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (interface, step) = (&node["clean_step"]["interface"], &node["clean_step"]["step"]);
        let step = match (interface.as_str(), step.as_str()) {
            (Some(interface), Some(step)) => format!("{interface}.{step}"),
            _ => String::new(),
        };
        let heartbeat = &node["driver_internal_info"]["agent_last_heartbeat"];
        let steps = controller.get(&format!("/v1/nodes/{name}/cleaning/steps")).await?;
        Ok(Self {
            state: text(&node["provision_state"]),
            step,
            heartbeat: heartbeat.as_str().map(str::to_owned),
            steps: steps.as_array().is_some_and(|steps| !steps.is_empty()),
        })
    }
}

/// Puts what the boot services served to whom, read from the controller's log, on the timeline: a MAC as
/// the subject, [`SERVED`] for everything and `served FILE` for each file as the events.
pub fn boot_services(log: &Path, timeline: &Timeline) -> Result<()> {
    for line in std::fs::read_to_string(log)?.lines() {
        let Some(served) = Served::read(line) else { continue };
        let mac = match served.client {
            Client::Mac(mac) => Some(mac),
            Client::Address(address) => mac_of(&address)?,
        };
        if let Some(mac) = mac {
            timeline.note_at(timeline.at(served.time), &mac, SERVED);
            timeline.note_at(timeline.at(served.time), &mac, &format!("served {}", served.file));
        }
    }
    Ok(())
}

/// A line of the boot services' log.
#[derive(Debug, PartialEq)]
struct Served {
    time: SystemTime,
    client: Client,
    file: String,
}

#[derive(Debug, PartialEq)]
enum Client {
    Mac(String),
    Address(String),
}

impl Served {
    /// Reads `TIME LEVEL …: http: first byte served mac="…" file="…"`, or
    /// `TIME LEVEL …: tftp: first byte served client=ADDRESS:PORT file=PATH …`.
    fn read(line: &str) -> Option<Self> {
        let (_, facts) = line.split_once("first byte served")?;
        let value = |key: &str| {
            let (_, rest) = facts.split_once(&format!(" {key}="))?;
            Some(rest.split(' ').next().unwrap_or(rest).trim_matches('"').to_owned())
        };
        let client = match value("mac") {
            Some(mac) => Client::Mac(mac),
            None => Client::Address(value("client")?.rsplit_once(':')?.0.to_owned()),
        };
        let time = OffsetDateTime::parse(line.split_whitespace().next()?, &Rfc3339).ok()?;
        let file = value("file")?;
        let name = file.rsplit('/').next().unwrap_or(&file).to_owned();
        Some(Self { time: time.into(), client, file: name })
    }
}

/// The largest `peak_memory_kib=N` that an agent printed on its console, in bytes.
pub fn agent_memory(serial_log: &Path) -> Option<u64> {
    let text = String::from_utf8_lossy(&std::fs::read(serial_log).ok()?).into_owned();
    text.split("peak_memory_kib=")
        .skip(1)
        .filter_map(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().ok()
        })
        .max()
        .map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_boot_services() {
        let http = "2026-01-02T03:04:05.500000Z  INFO boot::http: http: first byte served \
                    mac=\"52:54:00:00:00:01\" file=\"ipxe\"";
        let served = Served::read(http).unwrap();
        assert_eq!(served.client, Client::Mac("52:54:00:00:00:01".into()));
        assert_eq!(served.file, "ipxe");
        let epoch = served.time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert!((epoch.as_secs_f64() - 1_767_323_045.5).abs() < 0.001);
        let tftp = "2026-01-02T03:04:05Z  INFO boot::tftp: tftp: first byte served \
                    client=172.22.0.187:1550 file=/usr/lib/ipxe/snponly.efi bytes=173792";
        let served = Served::read(tftp).unwrap();
        assert_eq!(served.client, Client::Address("172.22.0.187".into()));
        assert_eq!(served.file, "snponly.efi");
        assert_eq!(Served::read("2026-01-02T03:04:05Z INFO something else"), None);
    }

    #[test]
    fn the_largest_reported_peak_counts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a peak_memory_kib=3000\nb peak_memory_kib=4000 x\n").unwrap();
        assert_eq!(agent_memory(file.path()), Some(4_096_000));
        std::fs::write(file.path(), "nothing").unwrap();
        assert_eq!(agent_memory(file.path()), None);
    }
}
