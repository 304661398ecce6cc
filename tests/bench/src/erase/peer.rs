//! What others erase with.

use super::ours::Took;
use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// One tool, as its users run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// For the table.
    pub name: &'static str,
    command: &'static [&'static str],
}

/// All of them. The device comes last.
pub const PEERS: [Peer; 4] = [
    Peer { name: "blkdiscard -z", command: &["blkdiscard", "--zeroout"] },
    Peer {
        name: "dd bs=4M oflag=direct",
        command: &["dd", "if=/dev/zero", "bs=4M", "oflag=direct", "status=none"],
    },
    // ironic-python-agent 11, shred_device: agent_erase_devices_iterations=1, agent_erase_devices_zeroize=true.
    Peer { name: "shred -n1 -z", command: &["shred", "--force", "--zero", "--verbose", "--iterations", "1"] },
    Peer {
        name: "nwipe zero, verify",
        command: &[
            "nwipe",
            "--autonuke",
            "--nogui",
            "--nowait",
            "--method=zero",
            "--verify=last",
            "--rounds=1",
            "--noblank",
        ],
    },
];

impl Peer {
    /// Run it over a disk of `size` bytes; its start is in its time.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(self, disk: &Path, size: u64) -> Result<Took> {
        let (program, arguments) = self.command.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        command.args(arguments);
        match *program {
            "dd" => command
                .arg("iflag=count_bytes")
                .arg(format!("count={size}"))
                .arg(format!("of={}", disk.display())),
            _ => command.arg(disk),
        };
        let (begun, before) = (Instant::now(), children()?);
        let output = command.stdin(Stdio::null()).output().with_context(|| program.to_string())?;
        let took = Took { seconds: begun.elapsed().as_secs_f64(), cpu_s: children()? - before };
        if output.status.success() {
            return Ok(took);
        }
        bail!("{} {}: {}", self.name, output.status, String::from_utf8_lossy(&output.stderr).trim())
    }
}

/// Processor time of the children that have ended, in seconds.
fn children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    let sum = micros(usage.user_time()) + micros(usage.system_time());
    Ok(std::time::Duration::from_micros(u64::try_from(sum)?).as_secs_f64())
}
