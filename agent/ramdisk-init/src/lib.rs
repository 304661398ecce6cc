//! PID 1 of the ramdisk: everything a machine needs before the agent can run on it.
//!
//! ```text
//!   run ─▶ mount_all ─▶ console ─▶ (the caller reads its configuration)
//!      ─▶ Devices::start ─▶ signals, power button
//!                           modules by modalias ◀── uevents, as long as the machine runs
//!                           Storage: wait until all disks are there                      ┐
//!      ─▶ (the caller reads virtual media, if it was booted from an Ironic's)            │ at the same time
//!      ─▶ Devices::network: of the boot medium, or by DHCP; then the time                │
//!      ─▶ (the agent's life, which waits for Storage before it looks at disks)            ┘
//!      ─▶ end: power off, reboot or halt
//! ```
//!
//! PID 1 never returns and never hangs silently: every failure is on the console, and the machine reboots after a
//! pause, into whatever its firmware boots next.

mod clock;
mod dhcp;
mod ipv6;
mod modules;
mod mounts;
pub mod netlink;
mod network;
mod power;
mod resolver;
mod servers;
mod static_network;
mod storage;
mod uevents;
pub mod virtual_media;

pub use mounts::{FETCHED, console, mount_all, with_writable_efi_variables};
pub use power::{Exit, end};
pub use servers::Servers;
pub use storage::{Progress, Storage};

use agent_protocol::boot_medium::StaticNetwork;
use agent_protocol::inventory::Interface;
use mac::Mac;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Modules that no device asks for, by the names under which the kernel would ask modprobe for them.
const ALWAYS: [&str; 4] = [
    // Mounting a bundle.
    "devname:loop-control",
    "fs-squashfs",
    // The firmware's variables.
    "fs-efivarfs",
    // Temperatures of all SATA drives, also of those that appear later.
    "platform:drivetemp",
];

/// Run `boot` as PID 1 and end the machine as it says. If it fails or panics, the machine reboots after `pause`, which
/// is long enough to read the console.
pub fn run(pause: Duration, boot: impl FnOnce() -> Result<Exit, String>) -> ExitCode {
    let exit = match catch_unwind(AssertUnwindSafe(boot)) {
        Ok(Ok(exit)) => exit,
        Ok(Err(problem)) => restart_after(pause, &problem),
        Err(_) => restart_after(pause, "panic"),
    };
    end(exit)
}

fn restart_after(pause: Duration, problem: &str) -> Exit {
    tracing::error!(problem, "fatal; the machine reboots in {} s", pause.as_secs());
    std::thread::sleep(pause);
    Exit::Reboot
}

/// What lives as long as the machine, and the search for its disks.
#[must_use = "the network is still to be made"]
pub struct Devices {
    loader: Arc<modules::Loader>,
    storage: Arc<Storage>,
}

impl Devices {
    /// Start it: signals, modules, power button. Must be called before any other thread exists.
    ///
    /// # Errors
    /// Signals cannot be blocked.
    pub fn start() -> Result<Self, String> {
        power::watch_signals()?;
        let loader = Arc::new(modules::Loader::new());
        uevents::watch(loader.clone());
        loader.load_all();
        for modalias in ALWAYS {
            loader.load(modalias);
        }
        mounts::mount_efi_variables();
        power::watch_button();
        Ok(Self { loader, storage: Storage::search() })
    }

    /// The search for its disks.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// Wait for the network. `interfaces` lists the network interfaces of this machine that are hardware; the one
    /// with `boot_mac` is tried alone first. `servers`: of the boot parameters. `network`: that of the boot medium, which is made alone.
    pub fn network(
        &self,
        boot_mac: Option<Mac>,
        servers: &Servers,
        network: Option<&StaticNetwork>,
        interfaces: fn() -> Vec<Interface>,
    ) {
        network::loopback_up();
        match network {
            Some(network) => {
                for modalias in static_network::modaliases(network) {
                    self.loader.load(modalias);
                }
                static_network::bring_up(network, resolver::Resolver::new(&servers.dns), interfaces);
            }
            None => network::bring_up(boot_mac, servers, interfaces),
        }
        let of_medium = network.iter().flat_map(|network| &network.ntp).map(IpAddr::to_string);
        clock::set(of_medium.chain(servers.ntp.iter().cloned()).collect());
    }
}
