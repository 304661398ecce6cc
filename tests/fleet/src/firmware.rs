//! What the firmware does: it asks for a boot script and does as that says, or boots the medium in the virtual drive.

use crate::contact::Endpoint;
use crate::journal::What;
use crate::machine::{BootSource, Machine};
use crate::medium;
use agent_protocol::NONCE_HEADER;
use anyhow::{Context, Result, ensure};
use bench::client::{Route, send};
use contract::network::{BootScript, parameter};
use hyper::Method;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// For how long a boot server may be silent: as long as firmware waits for the offer of a DHCP server.
const ANSWER: Duration = Duration::from_secs(4);
/// Before the servers are asked anew when none has answered.
const AGAIN: Duration = Duration::from_secs(1);
/// Before a script that was withheld is asked for again: what the script itself says.
const WAIT: Duration = Duration::from_secs(5);

/// What the kernel command line passes to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The controller that the node booted from, and those that it names in addition to itself.
    pub controllers: Vec<Endpoint>,
    /// Of the boot.
    pub nonce: String,
    /// The agent is to report its hardware.
    pub inspects: bool,
}

impl CommandLine {
    /// Reads a kernel command line.
    ///
    /// # Errors
    /// When it names no controller, or no nonce.
    pub fn read(line: &str) -> Result<Self> {
        let url = parameter(line, "ipa-api-url").context("ipa-api-url")?;
        let pins = parameter(line, "anneal.pin");
        let nonce = parameter(line, "anneal.boot-nonce").with_context(|| NONCE_HEADER)?.to_owned();
        let inspects = parameter(line, "ipa-inspection-callback-url").is_some();
        Ok(Self { controllers: Endpoint::list(url, pins)?, nonce, inspects })
    }
}

/// From power-on until the ramdisk starts; `None`: the machine boots from its disk, where nothing speaks to a controller.
pub async fn boot(machine: &Machine, source: &BootSource) -> Option<CommandLine> {
    let (times, chance) = (&machine.behaviour().agent, machine.chance());
    sleep(chance.time(times.firmware_ms, "firmware", machine.turn())).await;
    let read = match source {
        BootSource::Medium(url) => medium::boot(machine, url).await,
        BootSource::Network => CommandLine::read(&from_network(machine).await?),
    };
    sleep(chance.time(times.ramdisk_ms, "ramdisk", machine.turn())).await;
    read.inspect_err(|error| eprintln!("anneal-fleet: node {}: {error:#}", machine.number)).ok()
}

/// The kernel command line of a boot from the network; `None`: the machine is to boot from its disk.
async fn from_network(machine: &Machine) -> Option<String> {
    let (server, mut script) = first_answer(machine).await;
    let line = loop {
        match script {
            BootScript::Disk => return None,
            BootScript::Ramdisk(line) => break line,
            // Such a script asks the server that it is from, without limit.
            BootScript::Wait => sleep(WAIT).await,
        }
        script = fetch(machine, server).await.unwrap_or(BootScript::Wait);
    };
    machine.note(What::Script { server: server.to_string() });
    Some(line)
}

/// The first server that answers, as with DHCP servers of which one is dead. Each machine begins with another one.
async fn first_answer(machine: &Machine) -> (SocketAddr, BootScript) {
    let mut servers = machine.shared.setup.boot.clone();
    let first = machine.number as usize % servers.len().max(1);
    servers.rotate_left(first);
    loop {
        for server in &servers {
            if let Ok(script) = fetch(machine, *server).await {
                return (*server, script);
            }
        }
        sleep(AGAIN).await;
    }
}

async fn fetch(machine: &Machine, server: SocketAddr) -> Result<BootScript> {
    let route = Route { from: machine.address, ..Route::plain(server) };
    let path = format!("/boot/ipxe?mac={}", machine.mac);
    let (status, body) = timeout(ANSWER, send(&route, Method::GET, &path, Vec::new())).await??;
    ensure!(status == 200, "{server} answers {status}");
    BootScript::read(&String::from_utf8_lossy(&body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_command_line_is_read() {
        let pin = format!("sha256:{}", "0a".repeat(32));
        let line = format!(
            "initrd=initramfs ipa-api-url=https://127.0.0.1:6385 anneal.pin={pin} anneal.boot-nonce=n quiet"
        );
        let read = CommandLine::read(&line).unwrap();
        assert_eq!((&read.nonce[..], read.inspects), ("n", false));
        assert_eq!(read.controllers, [Endpoint::read("https://127.0.0.1:6385", Some(&pin)).unwrap()]);
        let inspects = format!("{line} ipa-inspection-callback-url=https://127.0.0.1:6385/v1/x");
        assert!(CommandLine::read(&inspects).unwrap().inspects);
        assert!(CommandLine::read("quiet").is_err());
    }
}
