//! The machine: its power and its boots.

use super::setup::World;
use std::sync::Arc;

impl World {
    /// Whether the node has power.
    pub fn is_on(&self) -> bool {
        self.machine.lock().unwrap().on
    }

    /// Switch the power. Off ends the boot; on starts a boot of the ramdisk.
    pub fn switch(self: &Arc<Self>, on: bool) {
        let mut machine = self.machine.lock().unwrap();
        if !on {
            let ran = machine.switch_off().flatten();
            ran.iter().for_each(|agent| agent.died.cancel());
        } else if machine.switch_on() && !*self.unplugged.lock().unwrap() {
            tokio::spawn(self.clone().ramdisk(machine.boot));
        }
    }
}
