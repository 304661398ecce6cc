//! The lease that a pass holds, and those that an earlier process of this controller left behind.
//!
//! A lease is short, so that another controller soon goes on where this one died, and it is renewed while an action goes on.
//! Store and agents refuse what comes under a lease that was taken over. A BMC and ironic-python-agent cannot. A call to them
//! begins only while the lease lasts, and so has ended as long after the lease as a call may take. A controller that takes over a lease that
//! was not released waits that long before it changes anything by such a call, unless the node's row says that the controller before
//! made none; everything else it does at once.

use super::conductor::Conductor;
use crate::decision::Action;
use crate::stages::may_be_unfenced;
use model::{Contact, Timestamp};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;
use store::{Clock, Lease, StoreError};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// How long a lease is taken for.
const LEASE: Duration = Duration::from_secs(12);
/// As much of that is left when an action begins, or the lease is renewed first. Not renewed each time, because that is a
/// write, and a step is two actions.
const ENOUGH: Duration = Duration::from_secs(6);
/// By how much the clocks of two controllers may differ: each goes by that of the store, but for the way there and back.
const CLOCKS: Duration = Duration::from_secs(1);
/// In microseconds: longer than any call takes that changes something.
const LONGEST_CALL: i64 = 300_000_000;
/// How often it is renewed while an action goes on.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// How often the store is asked again that does not answer, and how often a lease is tried to take that another controller holds.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A lease that was taken, and until when it lasts.
#[derive(Debug)]
pub struct HeldLease {
    /// The lease.
    pub lease: Lease,
    until: Timestamp,
    /// The controller from which it was taken over, which had not released it: it may have died in a call that no epoch fences.
    taken_over: Option<TakenOver>,
    /// The longest call that it may have died in.
    longest: Duration,
}

/// From whom a lease was taken over, and when.
#[derive(Debug)]
struct TakenOver {
    from: String,
    at: Timestamp,
    /// The longest request of that one to a BMC; the longest of all until its report was read.
    longest_request: Duration,
}

impl HeldLease {
    /// When a call that the controller before may have begun, and that takes as long as `call` at most where this one makes it, has
    /// ended; `None` if it has.
    pub(super) fn settles_at(&self, call: Duration, now: Timestamp) -> Option<Timestamp> {
        if call.is_zero() {
            return None;
        }
        let settled = |before: &TakenOver| before.at.after(call.max(before.longest_request) + CLOCKS);
        self.taken_over.as_ref().map(settled).filter(|at| *at > now)
    }

    /// When any call that the controller before may have begun has ended; `None` if all have. Until then the lease is not released:
    /// the controller that takes it next would not know of the call.
    pub(super) fn unsettled_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.settles_at(self.longest, now)
    }
}

impl Conductor {
    /// Release leases that an earlier process of this name held when it was killed. A node at rest that nothing wakes
    /// would stay locked for users until its lease runs out. Where others share the store it does: they would not know that this
    /// controller may have died in a call.
    pub(super) async fn release_stale_leases(&self) {
        if self.store.is_shared() {
            return;
        }
        let nodes = match self.store.leased_by(self.members.own()).await {
            Ok(nodes) => nodes,
            Err(error) => {
                return tracing::error!(error = %error.chain(), "cannot read which leases are stale");
            }
        };
        for uuid in nodes {
            if let Err(error) = self.release_stale_lease(uuid).await {
                tracing::warn!(node_uuid = %uuid, error = %error.chain(), "cannot release a stale lease; it will expire");
            }
        }
    }

    async fn release_stale_lease(&self, node: Uuid) -> Result<(), StoreError> {
        let now = self.clock.now();
        if self.store.lease_holder(node, now).await?.as_deref() != Some(self.members.own()) {
            return Ok(());
        }
        match self.store.take_lease(node, self.members.own(), now, now.after(LEASE)).await? {
            Some(lease) => self.store.release_lease(lease).await,
            None => Ok(()),
        }
    }

    /// Take the lease of a node; `None` if another controller holds it.
    pub(super) async fn take_lease(&self, node: Uuid) -> Result<Option<HeldLease>, StoreError> {
        let now = self.clock.now();
        let (own, until) = (self.members.own(), now.after(LEASE));
        // The controller that has it, or had it when a call that it made may still be under way. A lease that yet another controller takes after this
        // has not expired now, and is not taken.
        let before = match self.store.is_shared() {
            true => self.store.lease_holder(node, now.shifted(-LONGEST_CALL)).await?,
            false => None,
        };
        let taken = self.store.take_lease(node, own, now, until).await?;
        let taken_over = before.filter(|before| before != own).map(|from| TakenOver {
            from,
            at: now,
            longest_request: bmc::LONGEST_REQUEST,
        });
        let longest = self.longest_call(&Contact::default());
        Ok(taken.map(|lease| HeldLease { lease, until, taken_over, longest }))
    }

    /// The longest call of a controller that changes something at the BMC of a node, or at an agent that knows of no epochs.
    fn longest_call(&self, contact: &Contact) -> Duration {
        let at_agent = Action::CancelCommand { command_id: String::new() };
        self.longest_call_of_bmc(contact).max(self.executor.unfenced_call(contact, &at_agent))
    }

    pub(super) fn longest_call_of_bmc(&self, contact: &Contact) -> Duration {
        self.executor.unfenced_call(contact, &Action::EjectMedium)
    }

    /// Read what the controller before may have died in, as the first thing under a lease.
    pub(super) async fn look_back(&self, held: &mut HeldLease) -> Result<(), StoreError> {
        if let Some(before) = &mut held.taken_over {
            let found = self.load(held.lease.node, None).await?;
            if !may_be_unfenced(&found.node, &found.contact) {
                held.taken_over = None;
                return Ok(());
            }
            let reports = self.store.conductors().await?;
            let report = reports.iter().find(|report| report.hostname == before.from);
            if let Some(seconds) = report.and_then(|report| report.bmc_request_timeout_s) {
                before.longest_request = Duration::from_secs(seconds);
            }
            // An agent is called from its first heartbeat on.
            held.longest = match found.contact.callback_url {
                Some(_) => self.longest_call(&found.contact),
                None => self.longest_call_of_bmc(&found.contact),
            };
        }
        Ok(())
    }

    /// Keep a lease until then, until its node is `woken`, or until it is lost.
    pub(super) async fn keep_lease(
        &self,
        held: &mut HeldLease,
        until: Timestamp,
        woken: impl Future<Output = ()>,
    ) -> Result<(), StoreError> {
        let time = until.since(self.clock.now());
        // Woken or not: the next pass decides.
        self.while_held(held, async { drop(timeout(time, woken).await) }).await
    }

    /// Make a lease last its full time again.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when this controller holds it no longer.
    pub(super) async fn renew_lease(&self, held: &mut HeldLease) -> Result<(), StoreError> {
        held.until = self.renewed(held.lease).await?;
        Ok(())
    }

    /// Do `action` while the lease lasts. It is renewed meanwhile. Once nothing is left of it, whatever happened to this process
    /// meanwhile, nothing of the action is done until the store has renewed it: then no other controller has had the lease.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when this controller does not hold the lease.
    pub(super) async fn while_held<T>(
        &self,
        held: &mut HeldLease,
        action: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let lease = held.lease;
        if held.until.since(self.clock.now()) < CLOCKS + ENOUGH {
            held.until = self.renewed(lease).await?;
        }
        while_lasting(&*self.clock, &mut held.until, || self.next_renewal(lease), action).await
    }

    /// Renew a lease when the time for it has come, and until the store answers.
    async fn next_renewal(&self, lease: Lease) -> Result<Timestamp, StoreError> {
        sleep(RENEW_EVERY).await;
        loop {
            match self.renewed(lease).await {
                Err(error) if !matches!(error, StoreError::Stale(_)) => {
                    tracing::warn!(node_uuid = %lease.node, error = %error.chain(), "cannot renew the lease; trying again");
                    sleep(LOOK_EVERY).await;
                }
                answered => return answered,
            }
        }
    }

    /// Renew a lease; until when it lasts now.
    async fn renewed(&self, lease: Lease) -> Result<Timestamp, StoreError> {
        // The time before the store was asked: the lease lasts no shorter than is believed here.
        let until = self.clock.now().after(LEASE);
        let is_held = self.store.renew_lease(lease, until).await?;
        is_held.then_some(until).ok_or(StoreError::Stale(lease.node))
    }

    /// Give a lease back.
    pub(super) async fn release_lease(&self, held: HeldLease) {
        let Lease { node, .. } = held.lease;
        if let Err(error) = self.store.release_lease(held.lease).await {
            tracing::warn!(node_uuid = %node, error = %error.chain(), "cannot release the lease; it will expire");
        }
    }
}

/// Do `action` while a lease lasts, which is until `until` unless a `renewal` moves that. While it does not last, the action is not polled; a
/// renewal always is. So an action must hold nothing that a renewal waits for.
///
/// # Errors
/// That of a renewal.
async fn while_lasting<T, R>(
    clock: &dyn Clock,
    until: &mut Timestamp,
    renewal: impl Fn() -> R,
    action: impl Future<Output = T>,
) -> Result<T, StoreError>
where
    R: Future<Output = Result<Timestamp, StoreError>>,
{
    let end = AtomicI64::new(until.0);
    let mut action = pin!(action);
    // Before each poll, not in a second task: after a stop of the process either could be the first to go on.
    let mut guarded = pin!(poll_fn(|context| {
        match Timestamp(end.load(Ordering::Relaxed)).since(clock.now()) > CLOCKS {
            true => action.as_mut().poll(context),
            false => Poll::Pending,
        }
    }));
    let mut renewing = pin!(renewal());
    let ended = loop {
        // Nothing is awaited in a branch: a renewal that has a connection of the store's pool, or is the next to get one, would keep it
        // from all others as long as it is not polled.
        tokio::select! {
            biased;
            outcome = &mut guarded => break Ok(outcome),
            renewed = &mut renewing => match renewed {
                Ok(next) => {
                    end.store(next.0, Ordering::Relaxed);
                    renewing.set(renewal());
                }
                Err(lost) => break Err(lost),
            },
        }
    };
    *until = Timestamp(end.load(Ordering::Relaxed));
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use tokio::sync::Semaphore;
    use tokio::time::Instant;

    /// That of the test, which stands still while all wait.
    struct TestClock(Instant);

    impl Clock for TestClock {
        fn now(&self) -> Timestamp {
            Timestamp(0).after(self.0.elapsed())
        }
    }

    const LOST_AFTER: Duration = Duration::from_secs(20);
    const ACTION: Duration = Duration::from_secs(40);

    /// Found by `soak --part fleet`: a controller that had been cut off from PostgreSQL for 50 s never got a connection again. Each renewal
    /// whose lease was over was left alone, with the connection that it had, by another renewal that waited for one.
    #[tokio::test(start_paused = true)]
    async fn an_action_goes_on_after_a_renewal_lost_the_only_connection() {
        let clock = TestClock(Instant::now());
        let (pool, asked) = (Semaphore::new(1), AtomicU32::new(0));
        let renewal = || async {
            sleep(RENEW_EVERY).await;
            loop {
                let connection = pool.acquire().await.expect("it stays open");
                if asked.fetch_add(1, Ordering::Relaxed) > 0 {
                    return Ok(clock.now().after(LEASE));
                }
                sleep(LOST_AFTER).await;
                drop(connection);
            }
        };
        let mut until = clock.now().after(LEASE);
        let held = while_lasting(&clock, &mut until, renewal, sleep(ACTION));
        timeout(2 * ACTION, held).await.expect("it goes on").expect("the lease is renewed");
        assert!(clock.0.elapsed() >= ACTION && until > clock.now());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_of_an_action_is_done_while_its_lease_does_not_last() {
        let clock = TestClock(Instant::now());
        let begun = clock.now();
        let renewed_at = Duration::from_secs(60);
        let renewal = || async {
            sleep(renewed_at).await;
            Ok(clock.now().after(LEASE))
        };
        let mut done = Vec::new();
        let action = async {
            for _ in 0..4 {
                sleep(Duration::from_secs(5)).await;
                done.push(clock.now().since(begun));
            }
        };
        let mut until = begun.after(LEASE);
        while_lasting(&clock, &mut until, renewal, action).await.expect("the lease is renewed");
        let seconds: Vec<u64> = done.iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [5, 10, 60, 65], "the third is due after 15 s, and the lease lasts for 11");
    }

    #[tokio::test(start_paused = true)]
    async fn an_action_is_given_up_when_the_lease_is_lost() {
        let clock = TestClock(Instant::now());
        let lease = Uuid::from_u128(7);
        let renewal = || async {
            sleep(RENEW_EVERY).await;
            Err(StoreError::Stale(lease))
        };
        let mut until = clock.now().after(LEASE);
        let ended = while_lasting(&clock, &mut until, renewal, sleep(ACTION)).await;
        assert!(matches!(ended, Err(StoreError::Stale(of)) if of == lease), "{ended:?}");
        assert_eq!(clock.0.elapsed(), RENEW_EVERY);
    }
}
