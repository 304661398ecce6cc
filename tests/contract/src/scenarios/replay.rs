//! Recorded conversations of the real Ironic, had again: every answer agrees or is on the list of deliberate differences.

use crate::World;
use crate::controller::Controller;
use crate::replay::{Left, List, Tally, Walk, all, left_out, writing};
use anyhow::{Result, ensure};

/// As the recorded Ironic was configured.
const SETTINGS: &str = "host = 'probe-conductor'\nagent = { require_tls = false, lookup_without_nonce = true, requests_per_s = 0, heartbeat_timeout_s = @HEARTBEAT@ }\n";
/// ... and as the agent's own steps were weighed there, with the one step of the controller's that Ironic's fake has.
const PRIORITIES: &str = "clean_step_priority_override = { 'deploy.erase_devices' = 0, \
    'deploy.erase_devices_metadata' = 10, 'management.fake_reset' = 0, 'vendor.log_passthrough' = 1 }\nagent_silence_s = 600\n";

pub fn run(world: &World) -> Result<()> {
    let list = List::read()?;
    let mut tally = Tally::default();
    for conversation in &all()? {
        let dir = world.dir.join(&conversation.name);
        std::fs::create_dir(&dir)?;
        let world = World { dir, ..world.clone() };
        let settings = SETTINGS.replace("@HEARTBEAT@", &conversation.heartbeat_timeout().to_string());
        let mut controller = Controller::with(&world, &settings, PRIORITIES)?;
        let walk = Walk::new(conversation, &mut controller, &list, &mut tally)?;
        if let Err(error) = walk.run() {
            tally.objections.push(format!("{error:#}"));
        }
        if writing() {
            list.write(&tally.found)?;
        }
    }
    let differ: usize = tally.found.values().map(Vec::len).sum();
    println!(
        "      {} exchanges compared: {} agree, {} are on the list with {differ} differences ({} of them ours need not \
         have); {} had no recorded answer",
        tally.compared,
        tally.agree,
        tally.compared - tally.agree,
        tally.unasked,
        tally.unanswered
    );
    for Left { name, exchanges, why } in left_out()? {
        println!("      not replayed: {name} ({exchanges} exchanges): {why}");
    }
    ensure!(tally.objections.is_empty(), "not as the list says:\n{}", tally.objections.join("\n"));
    Ok(())
}
