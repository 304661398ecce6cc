//! The machine's clock is set while the conductor works: nothing ends early or late because of it.

use crate::world::World;
use conductor::Settings;
use model::run::Cursor;
use model::{Node, ProvisionState};
use store::Clock;

const HOUR: i64 = 3600;

fn awaits_agent(node: &Node) -> bool {
    node.run.as_ref().is_some_and(|run| run.cursor == Cursor::AwaitAgent)
}

fn runs_a_step(node: &Node) -> bool {
    matches!(node.run.as_ref().map(|run| &run.cursor), Some(Cursor::Issued { accepted: true, .. }))
}

#[tokio::test(start_paused = true)]
async fn a_boot_has_its_time_whatever_the_clock_says() {
    for minutes in [31, -31, 600] {
        let world = World::new().await;
        *world.unplugged.lock().unwrap() = true;
        let _conductor = world.provide(Settings::default()).await;
        world.until("the node boots", awaits_agent).await;
        let began = world.clock.seconds();
        let before = world.clock.now();
        world.clock.set_forward(60 * minutes);
        let node = world.ended().await;
        assert_eq!(node.provision_state, ProvisionState::CleanFail);
        let took = world.clock.seconds() - began;
        assert!((1790.0..1830.0).contains(&took), "{minutes} min: the boot was given {took} s");
        // What is stored and shown is the time of the machine.
        let ended = node.provision_updated_at.unwrap();
        let shown = (ended.0 - before.0) / 1_000_000 - 60 * minutes;
        assert!((1790..1830).contains(&shown), "{minutes} min: it ended {shown} s after the clock was set");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_and_its_agent_outlast_a_jump() {
    for hours in [80, -80] {
        let world = World::new().await;
        let _conductor = world.provide(Settings::default()).await;
        world.until("a step runs", runs_a_step).await;
        world.clock.set_forward(hours * HOUR);
        let node = world.ended().await;
        assert_eq!(node.provision_state, ProvisionState::Available, "{hours} h: {:?}", node.last_error);
        assert_eq!(world.ran(), ["erase_devices_metadata", "erase_devices"], "{hours} h: nothing ran twice");
        assert_eq!(world.clock.jump(), 0, "the clock is followed");
    }
}

/// An agent that is silent from the jump on is noticed as soon as without it.
#[tokio::test(start_paused = true)]
async fn a_silent_agent_is_noticed_in_its_time() {
    let world = World::new().await;
    let _conductor = world.provide(Settings { max_interruptions: 0, ..Settings::default() }).await;
    world.until("a step runs", runs_a_step).await;
    let began = world.clock.seconds();
    let agent = world.machine.lock().unwrap().runs.take();
    agent.iter().for_each(|agent| agent.died.cancel());
    world.clock.set_forward(-HOUR);
    let node = world.ended().await;
    assert_eq!(node.provision_state, ProvisionState::CleanFail);
    let took = world.clock.seconds() - began;
    assert!(took < 900.0, "the agent was missed after {took} s: {:?}", node.last_error);
}
