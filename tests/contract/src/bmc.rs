//! Plays the BMC of a `fake-hardware` node: follows the power that the controller believes in, and boots the
//! agent or cuts it off accordingly.

use crate::agents::Machine;
use crate::tool::Tool;
use anyhow::{Result, anyhow};
use contract::process::Daemon;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(200);

/// A BMC at work.
pub struct Bmc {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<usize>>>,
}

/// Power as the controller shows it. Ironic tells a reboot by the time of the last change alone.
#[derive(Debug, Clone, PartialEq)]
struct Power {
    on: bool,
    changed_at: Value,
}

impl Bmc {
    /// Follows `node` and boots `machine`.
    pub fn follow(tool: Tool, node: String, machine: Machine) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let until = end.clone();
        let thread = std::thread::spawn(move || follow(&until, &tool, &node, &machine));
        Self { end, thread: Some(thread) }
    }

    /// Stops; gives how often the machine was booted.
    pub fn stop(mut self) -> Result<usize> {
        self.end.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(anyhow!("the BMC panicked")),
        }
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && let Ok(Err(error)) = thread.join()
        {
            eprintln!("BMC: {error:#}");
        }
    }
}

fn follow(until: &AtomicBool, tool: &Tool, node: &str, machine: &Machine) -> Result<usize> {
    let mut before = Power { on: false, changed_at: Value::Null };
    let mut running: Option<Daemon> = None;
    let mut boots = 0;
    while !until.load(Ordering::Relaxed) {
        if let Some(Err(error)) = running.as_mut().map(Daemon::ensure_running) {
            eprintln!("the agent of boot {boots}: {error:#}");
            running = None;
        }
        // While the controller is away the power stays as it is.
        if let Ok(body) = tool.json(&["node", "show", node, "--fields", "power_state,driver_internal_info"]) {
            let power = Power {
                on: body["power_state"] == "power on",
                changed_at: body["driver_internal_info"]["last_power_state_change"].clone(),
            };
            if power != before {
                running = None;
                if power.on {
                    boots += 1;
                    running = Some(machine.boot(boots)?);
                }
                before = power;
            }
        }
        std::thread::sleep(PAUSE);
    }
    drop(running);
    Ok(boots)
}
