//! The controllers that share the store: this one reports itself and reads the others.

use super::conductor::Conductor;
use model::{ConductorReport, Contact, ProvisionState, Timestamp};
use std::time::Duration;
use store::StoreError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A smaller difference, in microseconds, is that of the way to the store and back.
const FOLLOWED: u64 = 50_000;

/// By how much a clock that showed `shown` some time between two readings of ours is ahead.
fn difference(asked: Timestamp, shown: Timestamp, answered: Timestamp) -> i64 {
    // In the middle; nothing is known where between the two it was read.
    if (asked..=answered).contains(&shown) { 0 } else { shown.0 - (asked.0 + (answered.0 - asked.0) / 2) }
}

/// How often a controller reports itself, and how long it counts as alive after that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub every: Duration,
    pub alive: Duration,
}

/// Where others take over the nodes of one that is silent. Two reports may be late or lost.
const SHARED: Pace = Pace { every: Duration::from_secs(2), alive: Duration::from_secs(8) };
/// How often a controller that starts tries to reach a shared store.
const JOIN_EVERY: Duration = Duration::from_secs(1);
/// Where no other controller does; each report is a write to the disk.
const ALONE: Pace = Pace { every: Duration::from_secs(60), alive: Duration::from_secs(180) };

impl Conductor {
    /// How often to [`Conductor::meet`].
    pub(super) fn pace(&self) -> Pace {
        if self.store.is_shared() { SHARED } else { ALONE }
    }

    /// Report this controller and read which others are alive. True if other nodes may be its own now. While the store fails,
    /// everything stays as it was read last.
    pub(super) async fn meet(&self) -> bool {
        match self.try_to_meet().await {
            Ok(changed) => changed,
            Err(error) => {
                tracing::warn!(error = %error.chain(), "cannot report this controller or read the others; trying again");
                false
            }
        }
    }

    /// Meet the others before anything is driven. While a shared store cannot be read, this controller knows neither their time, by
    /// which leases expire, nor who else drives nodes. False when it is stopped before it could.
    pub(super) async fn join(&self, stop: &CancellationToken) -> bool {
        loop {
            self.meet().await;
            if !self.store.is_shared() || !self.members.alive().is_empty() {
                return true;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(JOIN_EVERY) => {}
            }
        }
    }

    async fn try_to_meet(&self) -> Result<bool, StoreError> {
        self.follow_store().await?;
        let now = self.clock.now();
        let own = ConductorReport {
            hostname: self.members.own().to_owned(),
            group: Some(self.settings.conductor_group.to_lowercase()).filter(|group| !group.is_empty()),
            drivers: self.members.drivers().to_vec(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agent_api: self.members.agent_api().cloned(),
            bmc_request_timeout_s: Some(self.longest_call_of_bmc(&Contact::default()).as_secs()),
            started_at: self.started_at,
            reported_at: now,
            alive_until: now.after(self.pace().alive),
        };
        self.store.report_conductor(own).await?;
        let mut alive = self.store.conductors().await?;
        if self.store.is_shared() {
            alive.retain(|one| one.is_alive(now));
            return Ok(self.members.replace(alive));
        }
        // No other controller has the store open: another name is one that this controller had before.
        for gone in alive.iter().filter(|one| one.hostname != self.members.own()) {
            self.store.remove_conductor(&gone.hostname).await?;
        }
        alive.retain(|one| one.hostname == self.members.own());
        Ok(self.members.replace(alive))
    }

    /// Go by the clock of a shared store: by each other's clocks, controllers would take over leases that have not expired.
    async fn follow_store(&self) -> Result<(), StoreError> {
        let asked = self.clock.now();
        let Some(shown) = self.store.clock().await? else { return Ok(()) };
        let by = difference(asked, shown, self.clock.now());
        if by.unsigned_abs() > FOLLOWED {
            self.clock.follow(by);
            self.listen_from(by);
            tracing::info!(micros = by, "this controller goes by the clock of the database");
        }
        Ok(())
    }

    /// Leave the nodes of this controller to the others.
    pub(super) async fn leave(&self) {
        if !self.store.is_shared() {
            return;
        }
        if let Err(error) = self.store.remove_conductor(self.members.own()).await {
            tracing::warn!(error = %error.chain(), "cannot remove the report of this controller; the others take its nodes over in some seconds");
        }
    }

    /// The nodes that are in the middle of something: after a controller has come or gone, a ring of the bell of one of them may have
    /// been heard by a controller that has died since.
    pub(super) async fn unsettled(&self) -> Vec<Uuid> {
        let states = ProvisionState::ALL.into_iter().filter(|state| !state.is_stable());
        let states: Vec<ProvisionState> = states.collect();
        match self.store.nodes_in(&states).await {
            Ok(nodes) => {
                nodes.into_iter().filter(|node| self.members.drives(node)).map(|node| node.uuid).collect()
            }
            Err(error) => {
                tracing::warn!(error = %error.chain(), "cannot read the nodes to take over; they are driven when they are due");
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_may_be_right_is_not_followed() {
        let at = |asked, shown, answered| difference(Timestamp(asked), Timestamp(shown), Timestamp(answered));
        assert_eq!([at(10, 10, 20), at(10, 20, 20)], [0, 0]);
        assert_eq!(at(10, 115, 20), 100);
        assert_eq!(at(10, -85, 20), -100);
    }
}
