//! Plays the BMC of a `fake-hardware` node: follows the power that the controller believes in, and boots the
//! agent or cuts it off accordingly.

use crate::agents::{Booted, Machine};
use crate::process::Daemon;
use crate::tool::Tool;
use anyhow::{Result, anyhow};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(200);
/// Before a boot script that was withheld is asked for again.
const AGAIN: Duration = Duration::from_secs(2);

/// A BMC at work.
pub struct Bmc {
    end: Arc<AtomicBool>,
    mishaps: Sender<Mishap>,
    thread: Option<JoinHandle<Result<Boots>>>,
}

/// What happens to a machine behind the controller's back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// Its agent dies.
    AgentDies,
    /// The reset button is pressed.
    Reset,
}

/// How often a machine was switched on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Boots {
    /// Into the ramdisk.
    pub ramdisk: usize,
    /// From its disk.
    pub disk: usize,
}

/// Power as the controller shows it. In Ironic only the time of the last change distinguishes a reboot.
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
        let (mishaps, happens) = channel();
        let thread = std::thread::spawn(move || follow(&until, &happens, &tool, &node, &machine));
        Self { end, mishaps, thread: Some(thread) }
    }

    /// It happens within a moment.
    pub fn suffer(&self, mishap: Mishap) -> Result<()> {
        self.mishaps.send(mishap).map_err(|_| anyhow!("the BMC has ended"))
    }

    /// Stops; gives how often the machine was booted.
    pub fn stop(mut self) -> Result<Boots> {
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

fn follow(
    until: &AtomicBool,
    happens: &Receiver<Mishap>,
    tool: &Tool,
    node: &str,
    machine: &Machine,
) -> Result<Boots> {
    let mut before = Power { on: false, changed_at: Value::Null };
    let mut running: Option<Daemon> = None;
    let mut waits: Option<Instant> = None;
    let mut boots = Boots::default();
    loop {
        // What the controller did before the end was asked for is still seen.
        let is_last = until.load(Ordering::Relaxed);
        if let Some(status) = running.as_mut().map(Daemon::ended).transpose()?.flatten() {
            // ironic-python-agent ends after a rescue.
            if !status.success() {
                eprintln!("the agent of boot {}: {status}", boots.ramdisk);
            }
            running = None;
        }
        if let Ok(mishap) = happens.try_recv() {
            running = None;
            if mishap == Mishap::Reset {
                boots.ramdisk += 1;
                waits = Some(Instant::now());
            }
        }
        if waits.is_some_and(|since| since <= Instant::now()) {
            waits = None;
            match machine.boot(boots.ramdisk, &Value::Null)? {
                Booted::Agent(agent) => running = Some(agent),
                Booted::Disk => {}
                Booted::Waits => waits = Some(Instant::now() + AGAIN),
            }
        }
        // While the controller is away the power stays as it is.
        if let Ok(body) =
            tool.json(&["node", "show", node, "--fields", "power_state,provision_state,driver_internal_info"])
        {
            let power = Power {
                on: body["power_state"] == "power on",
                changed_at: body["driver_internal_info"]["last_power_state_change"].clone(),
            };
            if power != before {
                (running, waits) = (None, None);
                if power.on {
                    let booted = machine.boot(boots.ramdisk + 1, &body["provision_state"])?;
                    let count = match booted {
                        Booted::Disk => &mut boots.disk,
                        Booted::Agent(_) | Booted::Waits => &mut boots.ramdisk,
                    };
                    *count += 1;
                    match booted {
                        Booted::Agent(agent) => running = Some(agent),
                        Booted::Waits => waits = Some(Instant::now() + AGAIN),
                        Booted::Disk => {}
                    }
                }
                before = power;
            }
        }
        if is_last {
            return Ok(boots);
        }
        std::thread::sleep(PAUSE);
    }
}
