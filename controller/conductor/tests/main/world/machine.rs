//! The machine: its power, its boots, and what its agent holds in memory.

use super::setup::World;
use agent_protocol::command::CommandStatus;
use std::sync::Arc;

#[derive(Default)]
pub struct Machine {
    pub on: bool,
    pub boots: u32,
    pub process: u32,
    pub token: Option<String>,
    pub commands: Vec<(String, CommandStatus)>,
    pub unplugged: bool,
}

impl World {
    /// Whether the node has power.
    pub fn is_on(&self) -> bool {
        self.machine.lock().unwrap().on
    }

    /// The node can no longer boot its ramdisk.
    pub fn unplug_network(&self) {
        self.machine.lock().unwrap().unplugged = true;
    }

    /// Switch the power. Off ends the boot; on starts a boot of the ramdisk.
    pub fn switch(self: &Arc<Self>, on: bool) {
        let mut machine = self.machine.lock().unwrap();
        if machine.on == on {
            return;
        }
        machine.on = on;
        machine.boots += 1;
        machine.commands.clear();
        machine.token = None;
        if on && !machine.unplugged {
            let (world, boot) = (self.clone(), machine.boots);
            tokio::spawn(async move { world.ramdisk(boot).await });
        }
    }
}
