//! Leases that a controller which was killed left behind.

use crate::world::World;
use conductor::Settings;
use model::ProvisionState;
use std::time::Duration;
use store::{Clock, prelude::*};

/// Found by killing the real controller after each of its writes (`tests/kill`): a node at rest that nothing wakes
/// stayed locked for users for as long as a lease is taken for.
#[tokio::test(start_paused = true)]
async fn a_killed_controller_leaves_no_node_locked() {
    for (holder, is_given_back) in [("sim", true), ("another", false)] {
        let world = World::new().await;
        world.put(ProvisionState::CleanFail, |node| node.next_wake_at = None).await;
        let now = world.clock.now();
        let until = now.after(Duration::from_secs(300));
        world.store.take_lease(world.node, holder, now, until).await.unwrap().unwrap();

        let settings = Settings { power_sync_s: 0, ..Settings::default() };
        let (stop, task) = world.conductor(settings);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let left = world.store.lease_holder(world.node, world.clock.now()).await.unwrap();
        assert_eq!(left.is_none(), is_given_back, "held by {holder}: {left:?}");
        stop.cancel();
        task.await.unwrap();
    }
}
