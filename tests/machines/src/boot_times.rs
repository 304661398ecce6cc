//! `cargo xtask bench boot`: how long a node takes from power-on to its first heartbeat, by each way to boot, next to a reference.
//!
//! The reference is booted in the same way, by the same firmware, with the same kernel and an initramfs of the same size, and does
//! nothing but bring its link up by DHCP and open a connection to the controller's machine. Each boot has a node and a controller of its
//! own, and nothing runs next to it. Reference and ramdisk take turns.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::redfish::media::MediaQuirks;
use lab::site::{ADDRESS, Site, SiteNode, in_namespace};
use lab::uefi_variables::SecureBoot;
use lab::wait;
use serde::Serialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::disk::OldDisk;
use crate::layers;
use crate::node::Node;
use crate::options::Options;
use crate::run::{in_directory, put_away, show_logs};
use crate::secure_boot::{SignedSite, console, until_said};
use crate::stage::{LONG, NODE, SETTINGS, Stage, enrol_redfish};

/// Goal of issue 19: the ramdisk takes at most so many times as long as the reference.
const GOAL: f64 = 1.25;
/// Where the reference connects to.
const PORT: u16 = 4444;

/// A way to boot.
struct Way {
    name: &'static str,
    firmware: Firmware,
    interface: &'static str,
    signature: Signature,
    /// MiB.
    memory: u32,
}

/// Whose keys a firmware with Secure Boot has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signature {
    /// No Secure Boot.
    None,
    /// The owner's.
    Own,
    /// Microsoft's.
    Microsoft,
}

/// Memory of nodes, in MiB.
const MEMORY: u32 = 256;
/// Where the firmware keeps the whole medium next to its parts: with what the reference needs the archive is larger than the ramdisk's,
/// which boots in [`MEMORY`].
const MORE_MEMORY: u32 = 288;

const WAYS: [Way; 9] = [
    Way::new("iPXE by PXE, BIOS", Firmware::Bios, "ipxe", Signature::None),
    Way::new("iPXE by PXE, UEFI", Firmware::Uefi, "ipxe", Signature::None),
    Way::new("iPXE by HTTP, UEFI", Firmware::Uefi, "http-ipxe", Signature::None),
    Way::new("virtual media, BIOS", Firmware::Bios, MEDIA, Signature::None),
    Way::new("virtual media, UEFI", Firmware::Uefi, MEDIA, Signature::None),
    Way::new("HTTP boot from a URL, UEFI", Firmware::Uefi, HTTP, Signature::None),
    Way::new("virtual media, Secure Boot with own keys", Firmware::Uefi, MEDIA, Signature::Own),
    Way {
        memory: MORE_MEMORY,
        ..Way::new("HTTP boot from a URL, Secure Boot with own keys", Firmware::Uefi, HTTP, Signature::Own)
    },
    Way::new("virtual media, Secure Boot through a shim", Firmware::Uefi, MEDIA, Signature::Microsoft),
];
const MEDIA: &str = "redfish-virtual-media";
const HTTP: &str = "redfish-https";

impl Way {
    const fn new(
        name: &'static str,
        firmware: Firmware,
        interface: &'static str,
        signature: Signature,
    ) -> Self {
        Self { name, firmware, interface, signature, memory: MEMORY }
    }
}

/// What the reference does: the link, one packet.
const REFERENCE: &str = r#"
for module in virtio_pci virtio_net; do modprobe $module; done
busybox chmod 755 /lease
busybox ip link set lo up
busybox udhcpc -q -n -t 20 -T 1 -i eth0 -s /lease
busybox nc ADDRESS PORT </dev/null
while true; do sleep 60; done
"#;
/// What udhcpc runs when it has a lease.
const LEASE: &str = r#"#!/bin/busybox sh
case $1 in
deconfig) /bin/busybox ip link set $interface up ;;
bound) /bin/busybox ifconfig $interface $ip netmask $subnet ;;
esac
"#;

/// What was measured by one way, in seconds.
#[derive(Debug, Serialize)]
struct Times {
    way: &'static str,
    reference: Vec<f64>,
    ramdisk: Vec<f64>,
    /// Of each boot of the ramdisk: how long each of [`STAGES`] took.
    stages: Vec<[f64; STAGES.len()]>,
}

/// From power-on to the first heartbeat.
const STAGES: [&str; 5] = [
    "firmware and loader",
    "kernel and unpacking",
    "drivers and network",
    "controller found",
    "lookup and heartbeat",
];
/// What the agent says where a stage ends, from the third on; the second ends with [`UPTIME`].
const ENDS: [&str; 3] = ["network is up", "controller found", "the first heartbeat is accepted"];
/// What the agent says first: how long the kernel has run.
const UPTIME: &str = "uptime_s=";

/// How long each stage took, by what the ramdisk has written to the serial port and the time until the first heartbeat.
fn stages(said: &str, total: f64) -> Result<[f64; STAGES.len()]> {
    let line =
        |words: &str| said.lines().find(|line| line.contains(words)).with_context(|| format!("no {words:?}"));
    let at = |words: &str| time_of_day(line(words)?).with_context(|| format!("no time of {words:?}"));
    let uptime = line(UPTIME)?.split(UPTIME).nth(1).and_then(|rest| rest.split_whitespace().next());
    let uptime: f64 = uptime.context("no uptime")?.parse()?;
    let started = time_of_day(line(UPTIME)?).context("no time of the agent's start")?;
    let [network, found, beaten] = [at(ENDS[0])?, at(ENDS[1])?, at(ENDS[2])?];
    let before = total - uptime - (beaten - started);
    Ok([before, uptime, network - started, found - network, beaten - found])
}

/// Seconds since midnight in a line of the agent's log, which begins with a date and a time.
fn time_of_day(line: &str) -> Option<f64> {
    let time = line.split('T').find(|part| part.as_bytes().get(2) == Some(&b':'))?.split('Z').next()?;
    let mut parts = time.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some(hours * 3600.0 + minutes * 60.0 + seconds)
}

impl Times {
    fn ratio(&self) -> f64 {
        median(&self.ramdisk) / median(&self.reference)
    }
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reference, ramdisk) = (median(&self.reference), median(&self.ramdisk));
        let span = |times: &[f64]| {
            let (least, most) =
                (times.iter().fold(f64::MAX, |a, b| a.min(*b)), times.iter().fold(0.0_f64, |a, b| a.max(*b)));
            format!("{least:.1} to {most:.1}")
        };
        write!(
            f,
            "| {} | {reference:.2} s ({}) | {ramdisk:.2} s ({}) | {:.2} |",
            self.way,
            span(&self.reference),
            span(&self.ramdisk),
            self.ratio()
        )
    }
}

/// Measures the ways whose names contain the filter; whether all reach the goal.
///
/// # Errors
/// When a node does not boot.
pub fn all(options: &Options) -> Result<bool> {
    let filter = options.filter.as_deref().unwrap_or_default();
    let ways: Vec<&Way> = WAYS.iter().filter(|way| way.name.contains(filter)).collect();
    ensure!(!ways.is_empty(), "no way to boot has {filter:?} in its name");
    crate::run::prepare(options)?;
    println!(
        "| way, with {MEMORY} MiB | reference (least to most) | ramdisk | ratio; goal: at most {GOAL} |"
    );
    println!("|---|---|---|---|");
    let mut all = Vec::new();
    for way in ways {
        let mut times =
            Times { way: way.name, reference: Vec::new(), ramdisk: Vec::new(), stages: Vec::new() };
        for _ in 0..options.times {
            times.reference.push(boot(way, true, options)?.0);
            let (seconds, said) = boot(way, false, options)?;
            times.ramdisk.push(seconds);
            times.stages.push(stages(&said, seconds).context(way.name)?);
        }
        println!("{times}");
        all.push(times);
    }
    println!("\n| way | {} |\n|---{}|", STAGES.join(" | "), "|---".repeat(STAGES.len()));
    for times in &all {
        let medians: Vec<String> = (0..STAGES.len())
            .map(|stage| median(&times.stages.iter().map(|one| one[stage]).collect::<Vec<_>>()))
            .map(|seconds| format!("{seconds:.2} s"))
            .collect();
        println!("| {} | {} |", times.way, medians.join(" | "));
    }
    let report = lab::binaries::image_dir()?.join("../../target/bench-boot.json");
    fs::write(&report, serde_json::to_vec_pretty(&all)?).with_context(|| report.display().to_string())?;
    let missed: Vec<_> = all.iter().filter(|times| times.ratio() > GOAL).collect();
    for times in &missed {
        println!("MISSED: {}: {:.2}; goal: at most {GOAL}", times.way, times.ratio());
    }
    Ok(missed.is_empty())
}

/// Seconds from power-on to the connection of the reference, or to the first heartbeat, and what the serial port says by then.
fn boot(way: &'static Way, is_reference: bool, options: &Options) -> Result<(f64, String)> {
    let (dir, outcome) = in_directory(|dir| {
        let stage = Stage { dir, times: 1, seed: 0, long: false };
        let namespace = format!("an-boot-{}", std::process::id());
        in_namespace(&namespace, || async move {
            timeout(LONG, story(way, is_reference, &stage)).await.context("it does not boot")?
        })
    });
    match outcome {
        Ok(measured) => {
            put_away(dir, options.keep);
            Ok(measured)
        }
        Err(error) => {
            show_logs(dir);
            Err(error.context(way.name))
        }
    }
}

async fn story(way: &Way, is_reference: bool, stage: &Stage) -> Result<(f64, String)> {
    let image = image(&stage.dir, is_reference)?;
    let disk = stage.disk("ANY", Bus::Sata, 16)?;
    let (site, node) = booting(way, stage, image, &disk).await?;
    site.controller.set(NODE, json!({"/boot_interface": way.interface})).await?;
    let listener = TcpListener::bind((ADDRESS, PORT)).await?;
    site.controller.provision(NODE, "provide").await?;
    if is_reference {
        listener.accept().await?;
    } else {
        wait::until("the first heartbeat", LONG, || async {
            let now = Node::now(&site.controller, NODE).await?;
            ensure!(now.state().starts_with("clean"), "it is {}: {}", now.state(), now.last_error());
            Ok(now.0["driver_internal_info"]["agent_url"].is_string().then_some(()))
        })
        .await?;
    }
    let end = site.timeline.now();
    let events = site.timeline.events();
    let on = events
        .iter()
        .rfind(|event| event.subject == NODE && event.what == "power on")
        .context("it was not on")?;
    let until = end - on.at;
    if !is_reference {
        until_said(&node, ENDS[2]).await?;
    }
    Ok((until, console(&node)?))
}

/// A site, and its node that is to boot this image. Both are kept until the node has booted.
async fn booting(way: &Way, stage: &Stage, image: PathBuf, disk: &OldDisk) -> Result<(Site, SiteNode)> {
    if way.signature == Signature::Own {
        let mut signed = SignedSite::start(stage, &image, "", "").await?;
        let node = signed.node(&[disk], way.memory).await?;
        return Ok((signed.site, node));
    }
    let mut site = Site::start_with(&stage.dir, Some(image), SETTINGS).await?;
    let change = |spec: &mut lab::node::NodeSpec| {
        spec.memory_mib = way.memory;
        spec.secure_boot = (way.signature == Signature::Microsoft).then_some(SecureBoot::Microsoft);
    };
    let disks = vec![disk.spec.clone()];
    let node = site.node_like(NODE, way.firmware, disks, change, MediaQuirks::default()).await?;
    enrol_redfish(&site, &node).await?;
    if way.signature == Signature::Microsoft {
        let capabilities = "boot_mode:uefi,secure_boot:true";
        site.controller.set(NODE, json!({"/properties/capabilities": capabilities})).await?;
    }
    Ok((site, node))
}

/// The image with what the reference needs, whose init is that of the reference or the agent. Both have the same files.
fn image(dir: &Path, is_reference: bool) -> Result<PathBuf> {
    let script = REFERENCE.replace("ADDRESS", &ADDRESS.to_string()).replace("PORT", &PORT.to_string());
    let image = layers::image_with(dir, &[], &[("lease", LEASE.as_bytes())], &script, is_reference)?;
    let loaders = image.join("medium");
    if !loaders.exists() {
        std::os::unix::fs::symlink(lab::binaries::image_dir()?.join("medium"), &loaders)?;
    }
    let rescue = image.join("rescue");
    if !rescue.exists() {
        std::os::unix::fs::symlink(lab::binaries::image_dir()?.join("rescue"), &rescue)?;
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_medians() {
        let times = Times {
            way: "x",
            reference: vec![9.0, 8.0, 100.0],
            ramdisk: vec![18.0, 1.0, 27.0],
            stages: Vec::new(),
        };
        assert!((times.ratio() - 2.0).abs() < 1e-9);
        assert_eq!(times.to_string(), "| x | 9.00 s (8.0 to 100.0) | 18.00 s (1.0 to 27.0) | 2.00 |");
    }

    #[test]
    fn the_stages_are_those_that_the_agent_names() {
        let said = "\u{1b}[2J2026-11-29T13:28:50.500000Z  INFO agentd::ramdisk: anneal-agent 0.1.0 starts uptime_s=3.25\r\n\
                    2026-11-29T13:28:52.000000Z  INFO ramdisk_init::network: network is up interface=\"eth0\"\r\n\
                    2026-11-29T13:28:52.250000Z  INFO agentd::run: controller found url=https://192.0.2.1:6385\r\n\
                    2026-11-29T13:28:53.000000Z  INFO agentd::heartbeat: the first heartbeat is accepted\r\n";
        let stages = stages(said, 10.0).unwrap();
        for (stage, expected) in stages.iter().zip([4.25, 3.25, 1.5, 0.25, 0.75]) {
            assert!((stage - expected).abs() < 1e-9, "{stages:?}");
        }
        let error = super::stages(&said.replace("first heartbeat", "heartbeat"), 10.0).unwrap_err();
        assert!(error.to_string().contains("first heartbeat"), "{error}");
    }
}
