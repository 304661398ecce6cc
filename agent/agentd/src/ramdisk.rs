//! The agent as PID 1: what [`ramdisk_init`] starts, and the agent's own configuration and log in between.

use crate::config::{self, Config, Environment};
use crate::inventory::interfaces;
use crate::logging::LogRing;
use crate::random;
use agent_protocol::boot_medium::{NETWORK, StaticNetwork};
use ramdisk_init::{Exit, Storage};
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// The agent's life as [`init`] is given it; with the search for the disks of the machine, where this process is its init.
pub type AgentMain = fn(&Config, &LogRing, Option<Arc<Storage>>) -> Result<Option<Exit>, String>;

/// Be PID 1. Returns only when this is no ramdisk (a container's PID 1, for example).
pub fn init(logs: &LogRing, life: AgentMain) -> ExitCode {
    if !Environment::of_this_process().root_is_initramfs {
        return ordinary(logs, life);
    }
    // Different on each machine, so that a rack does not restart at once.
    ramdisk_init::run(random::seconds(60.0..90.0), || boot(logs, life))
}

/// PID 1 of a system that is not the ramdisk: an agent like any other.
fn ordinary(logs: &LogRing, life: AgentMain) -> ExitCode {
    let result = config::parse(&Environment::of_this_process()).map_err(|error| error.to_string());
    match result.and_then(|config| {
        logs.install(config.debug);
        life(&config, logs, None)
    }) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("anneal-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn boot(logs: &LogRing, life: AgentMain) -> Result<Exit, String> {
    let problems = ramdisk_init::mount_all();
    if let Some(console) = ramdisk_init::console() {
        logs.show_on(console);
    }
    // The kernel command line can be read only now that /proc is mounted.
    let mut environment = Environment::of_this_process();
    let mut parsed = config::parse(&environment);
    logs.install(parsed.as_ref().is_ok_and(|config| config.debug));
    tracing::info!(uptime_s = uptime_s(), "anneal-agent {} starts", crate::VERSION);
    for problem in problems {
        tracing::error!("{problem}");
    }
    let devices = ramdisk_init::Devices::start()?;
    if let Some(wanted) = environment.virtual_media_wanted() {
        devices.storage().wait_until_settled();
        environment.virtual_media = Some(wanted.read()?);
        parsed = config::parse(&environment);
    }
    let config = parsed.map_err(|error| error.to_string())?;
    let network = match config.network.clone() {
        Some(network) => Some(network),
        None => static_network(&Path::new("/").join(NETWORK))?,
    };
    devices.network(config.boot_mac, &config.servers, network.as_ref(), interfaces);
    life(&config, logs, Some(devices.storage().clone()))?
        .ok_or_else(|| "the agent ended without a command to end".into())
}

/// Seconds since the kernel started; 0 where it does not say.
fn uptime_s() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split_whitespace().next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
}

/// The network of the boot medium; `None` where it brings none.
fn static_network(file: &Path) -> Result<Option<StaticNetwork>, String> {
    let bad = |why: String| format!("{}: {why}", file.display());
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(bad(error.to_string())),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_cannot_be_read_is_an_error_and_no_dhcp() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("network.json");
        assert_eq!(static_network(&file), Ok(None));
        std::fs::write(&file, br#"{"interfaces":[]}"#).unwrap();
        assert!(static_network(&file).unwrap().unwrap().interfaces.is_empty());
        std::fs::write(&file, b"{").unwrap();
        assert!(static_network(&file).unwrap_err().contains("network.json"));
    }
}
