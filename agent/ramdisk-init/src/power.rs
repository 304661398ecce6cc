//! Ends the machine, for the agent, the power button or Ctrl-Alt-Del.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::reboot::{RebootMode, reboot, set_cad_enabled};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

/// `struct input_event` on 64-bit machines (linux/input.h): two longs of time, type, code, value.
const EVENT_BYTES: usize = 24;
/// EV_KEY and KEY_POWER of linux/input-event-codes.h.
const EV_KEY: u16 = 1;
const KEY_POWER: u16 = 116;
/// New input devices are looked for this often, in milliseconds.
const RESCAN_MS: u16 = 5000;

/// How the machine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Power it off.
    PowerOff,
    /// Reboot it, into what was deployed.
    Reboot,
    /// Leave it on, with nothing that runs.
    Halt,
}

/// End the machine. Does not return.
pub fn end(exit: Exit) -> ExitCode {
    nix::unistd::sync();
    let mode = match exit {
        Exit::PowerOff => RebootMode::RB_POWER_OFF,
        Exit::Reboot => RebootMode::RB_AUTOBOOT,
        Exit::Halt => RebootMode::RB_HALT_SYSTEM,
    };
    tracing::info!(?exit, "the machine ends");
    let Err(error) = reboot(mode);
    tracing::error!(%error, "reboot(2) failed; the machine stays as it is");
    // A PID 1 that returns is a kernel panic.
    loop {
        std::thread::park();
    }
}

/// Reap orphans; Ctrl-Alt-Del (SIGINT to PID 1) reboots, SIGTERM and SIGPWR power off.
/// Must be called before any other thread exists, so that all of them have the signals blocked.
pub fn watch_signals() -> Result<(), String> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGINT, Signal::SIGTERM, Signal::SIGPWR] {
        signals.add(signal);
    }
    signals.thread_block().map_err(|error| format!("signals: {error}"))?;
    if let Err(error) = set_cad_enabled(false) {
        tracing::warn!(%error, "Ctrl-Alt-Del reboots at once");
    }
    std::thread::spawn(move || {
        loop {
            match signals.wait() {
                Ok(Signal::SIGCHLD) => reap(),
                Ok(Signal::SIGINT) => {
                    end(Exit::Reboot);
                }
                Ok(_) => {
                    end(Exit::PowerOff);
                }
                Err(error) => tracing::error!(%error, "waiting for signals"),
            }
        }
    });
    Ok(())
}

/// Reap orphans, and the login program of a rescued node when it ends: the agent needs no exit code of it.
fn reap() {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            return;
        }
        tracing::debug!(?status, "reaped");
    }
}

/// Power off when the power button is pressed (the BMC's soft power off arrives as this, too).
pub fn watch_button() {
    std::thread::spawn(|| {
        let mut devices = BTreeMap::new();
        loop {
            add_new(&mut devices);
            if pressed(&mut devices) {
                tracing::info!("power button");
                end(Exit::PowerOff);
            }
        }
    });
}

fn add_new(devices: &mut BTreeMap<PathBuf, File>) {
    let Ok(entries) = std::fs::read_dir("/dev/input") else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_event = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("event"));
        if is_event
            && !devices.contains_key(&path)
            && let Ok(file) = File::open(&path)
        {
            devices.insert(path, file);
        }
    }
}

/// Wait for events for at most [`RESCAN_MS`].
fn pressed(devices: &mut BTreeMap<PathBuf, File>) -> bool {
    let ready: Vec<PathBuf> = {
        let mut waiting: Vec<PollFd> =
            devices.values().map(|file| PollFd::new(file.as_fd(), PollFlags::POLLIN)).collect();
        if let Err(error) = poll(&mut waiting, PollTimeout::from(RESCAN_MS)) {
            tracing::debug!(%error, "poll");
        }
        let any = |fd: &PollFd| fd.any().unwrap_or(false);
        devices.keys().zip(&waiting).filter(|(_, fd)| any(fd)).map(|(path, _)| path.clone()).collect()
    };
    let mut pressed = false;
    for path in ready {
        let mut events = [0; EVENT_BYTES * 64];
        match devices.get_mut(&path).map(|file| file.read(&mut events)) {
            Some(Ok(length)) if length > 0 => pressed |= is_power_key(&events[..length]),
            // Unplugged.
            _ => drop(devices.remove(&path)),
        }
    }
    pressed
}

fn is_power_key(events: &[u8]) -> bool {
    events.chunks_exact(EVENT_BYTES).any(|event| {
        let half = |at: usize| u16::from_ne_bytes([event[at], event[at + 1]]);
        // The value: 1 is pressed, 0 released, 2 repeated.
        half(16) == EV_KEY && half(18) == KEY_POWER && event[20..] == 1_i32.to_ne_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_press_of_the_power_key_counts() {
        let event = |kind: u16, code: u16, value: i32| {
            let mut event = vec![0; 16];
            event.extend(kind.to_ne_bytes());
            event.extend(code.to_ne_bytes());
            event.extend(value.to_ne_bytes());
            event
        };
        assert!(is_power_key(&[event(0, 0, 0), event(EV_KEY, KEY_POWER, 1)].concat()));
        assert!(!is_power_key(&[event(EV_KEY, KEY_POWER, 0), event(EV_KEY, 30, 1)].concat()));
        assert!(!is_power_key(&[0; 7]));
    }
}
