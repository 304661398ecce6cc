//! Deletes events that are older, or more, than is kept.

use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, KeptEvents, Store};
use tokio::time::MissedTickBehavior;

/// How often.
const PERIOD: Duration = Duration::from_secs(60);

/// Delete from time to time. Never ends.
pub async fn keep(store: Arc<dyn Store>, clock: Arc<dyn Clock>, kept: KeptEvents) -> Result<()> {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        loop {
            match store.prune_events(kept, clock.now()).await {
                Ok(deleted) if deleted >= KeptEvents::AT_ONCE => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(error = %error.chain(), "old events cannot be deleted; trying again");
                    break;
                }
            }
        }
    }
}
