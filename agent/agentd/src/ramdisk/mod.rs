//! PID 1 of the ramdisk: everything a machine needs before the agent can live on it.
//!
//! ```text
//!   mounts ─▶ console ─▶ config ─▶ signals, power button
//!                                  modules by modalias ◀── uevents, for ever
//!                                  network: DHCP on the NIC that PXE used   ┐ at the same time
//!                                  storage: wait until all disks are there  ┘
//!                                  life ─▶ power off or reboot
//! ```
//!
//! PID 1 never returns and never hangs silently: whatever goes wrong is on the console, and the
//! machine reboots after a minute, into whatever its firmware boots next.

mod dhcp;
mod modules;
mod mounts;
pub(crate) mod netlink;
mod network;
mod power;
mod storage;
mod uevents;

pub use mounts::FETCHED;

use crate::config::{self, Config, Environment};
use crate::logging::LogRing;
use crate::run;
use crate::state::Exit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

/// What mounting a bundle needs, by the names under which the kernel would ask modprobe for it.
const FOR_BUNDLES: [&str; 2] = ["devname:loop-control", "fs-squashfs"];

/// The agent's life as [`init`] is given it.
pub type Life = fn(&Config, &LogRing) -> Result<Option<Exit>, String>;

/// Be PID 1. Returns only when this is no ramdisk (a container's PID 1, for example).
pub fn init(logs: &LogRing, life: Life) -> ExitCode {
    if !Environment::of_this_process().root_is_initramfs {
        return ordinary(logs, life);
    }
    let ending = catch_unwind(AssertUnwindSafe(|| boot(logs, life)));
    let exit = match ending {
        Ok(Ok(exit)) => exit,
        Ok(Err(problem)) => restart_after(&problem),
        Err(_) => restart_after("panic"),
    };
    power::end(exit)
}

/// PID 1 of something that is not ours: an agent like any other.
fn ordinary(logs: &LogRing, life: Life) -> ExitCode {
    let result = config::parse(&Environment::of_this_process()).map_err(|error| error.to_string());
    match result.and_then(|config| {
        logs.install(config.debug);
        life(&config, logs)
    }) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("anneal-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

/// End the machine, for an agent that runs in a ramdisk under another init. Does not come back.
pub fn end(exit: Exit) -> ExitCode {
    power::end(exit)
}

fn restart_after(problem: &str) -> Exit {
    let pause = run::pause_before_restart();
    tracing::error!(problem, "fatal; the machine reboots in {} s", pause.as_secs());
    std::thread::sleep(pause);
    Exit::Reboot
}

fn boot(logs: &LogRing, life: Life) -> Result<Exit, String> {
    let problems = mounts::mount_all();
    if let Some(console) = mounts::console() {
        logs.show_on(console);
    }
    let parsed = config::parse(&Environment::of_this_process());
    logs.install(parsed.as_ref().is_ok_and(|config| config.debug));
    tracing::info!("anneal-agent {} begins", crate::VERSION);
    for problem in problems {
        tracing::error!("{problem}");
    }
    let config = parsed.map_err(|error| error.to_string())?;

    power::watch_signals()?;
    let loader = Arc::new(modules::Loader::new());
    uevents::watch(loader.clone());
    loader.load_all();
    for modalias in FOR_BUNDLES {
        loader.load(modalias);
    }
    // The name by which a mount asks for a file system's module; the kernel has no modprobe to ask here.
    loader.load("fs-efivarfs");
    // No device asks for it: it looks at all SATA drives, those that come later too.
    loader.load("platform:drivetemp");
    mounts::mount_efi_variables();
    power::watch_button();

    let storage = std::thread::spawn(storage::settle);
    network::bring_up(config.boot_mac.as_deref());
    if storage.join().is_err() {
        return Err("waiting for storage ended by a panic".into());
    }
    life(&config, logs)?.ok_or_else(|| "the agent ended without being told to".into())
}
