//! Transactions on a pool of connections, and the one place where they are tried again.
//!
//! ```text
//!  write ─▶ BEGIN · work · NOTIFY · COMMIT ─▶ the bell of this process, the answer
//!    ▲           │                    │
//!    └── undone by others, or lost ───┴─ no answer: ask PostgreSQL whether it was committed
//! ```
//!
//! Work is done again only if the transaction is known to be undone. Isolation is READ COMMITTED: what a write compares it has
//! locked before (`SELECT … FOR NO KEY UPDATE`), so that what it read is still so when it commits.

use crate::change::{Change, Commit, TIMELINE_AND_LIFE, TransactionId};
use crate::failure::{Failure, failed};
use crate::ring::StoreId;
use deadpool_postgres::Pool;
use std::pin::Pin;
use std::time::{Duration, Instant};
use store::{Bell, Result, StoreError};

/// The future of work within a transaction.
pub type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'c>>;
/// Says that work may borrow for `'a`, which outlives the transaction `'c`.
pub type Borrows<'c, 'a> = [&'c &'a (); 0];

/// How often work is done again that PostgreSQL undid because of other transactions.
const CONFLICTS: u32 = 20;
/// Longest pause before that.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// What all clones share.
#[derive(Clone)]
pub struct Database {
    pub pool: Pool,
    pub store: StoreId,
    pub bell: Bell,
    /// How long a call waits for a database that cannot be reached.
    pub patience: Duration,
}

/// How one attempt ended.
enum Attempt<T> {
    Done(T),
    /// The work refused, or failed for good.
    Refused(StoreError),
    /// Nothing was written.
    Undone(Failure),
    /// It is not known whether it was written.
    Unknown(Failure),
}

/// How a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Committed,
    Aborted,
    InProgress,
}

/// What `status` says of a transaction, on a server with this timeline and life. The number of one that was committed is in the
/// server's log with it, and is never given again, on this timeline; so one that was undone is known by its number, whatever the
/// server went through. One whose records were lost in a crash has left its number to another.
fn judged(id: &TransactionId, timeline: &str, life: &str, status: Option<&str>) -> Option<Status> {
    if timeline != id.timeline {
        return None;
    }
    match status? {
        "aborted" => Some(Status::Aborted),
        _ if life != id.life => None,
        "committed" => Some(Status::Committed),
        _ => Some(Status::InProgress),
    }
}

/// The pause before work is done again that failed for the `attempt`th time (from 0), `waited` after the first began; none: it
/// is not done again.
fn pause(failure: &Failure, attempt: u32, waited: Duration, patience: Duration) -> Option<Duration> {
    let grown = Duration::from_millis(2).saturating_mul(1 << attempt.min(8)).min(LONGEST_PAUSE);
    let again = (failure.is_conflict() && attempt < CONFLICTS) || (failure.is_lost() && waited < patience);
    again.then_some(grown)
}

/// A pause of half to all of this, so that two do not meet again.
async fn sleep(pause: Duration) {
    let part = uuid::Uuid::new_v4().as_bytes()[0];
    tokio::time::sleep(pause / 2 + pause.mul_f64(f64::from(part) / 512.0)).await;
}

impl Database {
    /// Do `work` in a transaction and commit it; then ring the bell. Done again from its beginning when PostgreSQL undid it
    /// because of others, or the connection was lost before the commit; so it must have no effect but its statements.
    ///
    /// # Errors
    /// Those of `work`; `Failed`, if the database cannot be reached, or did not say whether the work was committed.
    pub async fn write<'a, T: Send>(
        &self,
        work: impl for<'c> Fn(&'c mut Change, Borrows<'c, 'a>) -> Work<'c, T> + Send + Sync + 'a,
    ) -> Result<T> {
        let began = Instant::now();
        let mut attempt = 0;
        loop {
            let failure = match self.attempt(&work).await {
                Attempt::Done(value) => return Ok(value),
                Attempt::Refused(error) => return Err(error),
                Attempt::Undone(failure) => failure,
                Attempt::Unknown(failure) => {
                    let what = "writing: the database did not say whether it was written; read again before another try";
                    return Err(failure.while_doing(what));
                }
            };
            let Some(pause) = pause(&failure, attempt, began.elapsed(), self.patience) else {
                return Err(failure.while_doing("writing"));
            };
            tracing::debug!(%failure, attempt, "a transaction is done again");
            sleep(pause).await;
            attempt += 1;
        }
    }

    async fn attempt<'a, T: Send>(
        &self,
        work: &(impl for<'c> Fn(&'c mut Change, Borrows<'c, 'a>) -> Work<'c, T> + Send + Sync + 'a),
    ) -> Attempt<T> {
        let mut change = match self.begin(WRITE).await {
            Ok(change) => change,
            Err(failure) => return Attempt::Undone(failure),
        };
        let value = match work(&mut change, []).await {
            Ok(value) => value,
            Err(error) => {
                let again = Failure::of(&error).filter(|failure| failure.is_conflict() || failure.is_lost());
                let ended = again.cloned().map_or(Attempt::Refused(error), Attempt::Undone);
                change.roll_back().await;
                return ended;
            }
        };
        let id = match change.notify(self.store).await {
            Ok(id) => id,
            Err(failure) => {
                change.roll_back().await;
                return Attempt::Undone(failure);
            }
        };
        // A caller that gives up meanwhile must not keep this process from hearing of what is committed.
        let commit = tokio::spawn(self.clone().commit(change, id));
        match commit.await {
            Ok(Commit::Done) => Attempt::Done(value),
            Ok(Commit::Undone(failure)) => Attempt::Undone(failure),
            Ok(Commit::NoAnswer(failure)) => Attempt::Unknown(failure),
            Err(error) => Attempt::Refused(StoreError::caused("committing", error)),
        }
    }

    /// Commit and ring. Without an answer, ask whether it was committed; [`Commit::NoAnswer`]: there is no answer to that either.
    async fn commit(self, change: Change, id: TransactionId) -> Commit {
        let rings = change.rings().to_vec();
        let mut ended = change.commit().await;
        if let Commit::NoAnswer(failure) = ended {
            ended = self.find_out(&id, failure).await;
        }
        // Perhaps committed: a listener reads what is true.
        if !matches!(ended, Commit::Undone(_)) {
            rings.into_iter().for_each(|ring| ring.sound(&self.bell));
        }
        ended
    }

    /// Ask, on another connection, how a transaction ended whose COMMIT had no answer.
    async fn find_out(&self, id: &TransactionId, failure: Failure) -> Commit {
        let began = Instant::now();
        let mut tries = 0;
        while began.elapsed() < self.patience.saturating_mul(2) {
            match self.status_of(id).await {
                Ok(Some(Status::Committed)) => return Commit::Done,
                Ok(Some(Status::Aborted)) => return Commit::Undone(failure),
                // Its process still works on it.
                Ok(Some(Status::InProgress)) => {}
                Ok(None) => break,
                Err(error) if error.is_lost() => {}
                Err(_) => break,
            }
            sleep(Duration::from_millis(10 << tries.min(4))).await;
            tries += 1;
        }
        tracing::error!(%failure, "the database did not say whether a write was committed");
        Commit::NoAnswer(failure)
    }

    /// What PostgreSQL says of a transaction; nothing, if that may be said of another one.
    async fn status_of(&self, id: &TransactionId) -> std::result::Result<Option<Status>, Failure> {
        let status = format!("SELECT {TIMELINE_AND_LIFE}, pg_xact_status($1::text::xid8)");
        let row = self.pool.get().await?.query_one(&status, &[&id.xid]).await?;
        let (timeline, life, status): (String, String, Option<String>) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(judged(id, &timeline, &life, status.as_deref()))
    }

    /// Begin a transaction with this statement.
    async fn begin(&self, mode: &str) -> std::result::Result<Change, Failure> {
        Change::begin(self.pool.get().await?, mode).await
    }

    /// Do `query`, which only reads, and do it again when the connection is lost.
    pub async fn read<'a, T: Send>(
        &self,
        query: impl for<'c> Fn(&'c Client, Borrows<'c, 'a>) -> Work<'c, T> + Send + Sync + 'a,
    ) -> Result<T> {
        let began = Instant::now();
        let mut attempt = 0;
        loop {
            let error = match self.pool.get().await.map_err(failed("connecting to the database")) {
                Ok(client) => match query(&client, []).await {
                    Ok(value) => return Ok(value),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            let again = Failure::of(&error)
                .and_then(|failure| pause(failure, attempt, began.elapsed(), self.patience));
            let Some(pause) = again else { return Err(error) };
            sleep(pause).await;
            attempt += 1;
        }
    }

    /// Read at one moment, for at most `limit`; `TooSlow` after that.
    pub async fn read_within<'a, T: Send>(
        &self,
        limit: Duration,
        query: impl for<'c> Fn(&'c Change, Borrows<'c, 'a>) -> Work<'c, T> + Send + Sync + 'a,
    ) -> Result<T> {
        let mode = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {}",
            // 0 is no limit.
            limit.as_millis().max(1)
        );
        let began = Instant::now();
        let mut attempt = 0;
        loop {
            let error = match self.begin(&mode).await.map_err(failed("connecting to the database")) {
                Ok(change) => {
                    let result = query(&change, []).await;
                    change.roll_back().await;
                    match result {
                        Ok(value) => return Ok(value),
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if Failure::of(&error).is_some_and(Failure::is_timeout) {
                return Err(StoreError::TooSlow(limit));
            }
            let again = Failure::of(&error)
                .and_then(|failure| pause(failure, attempt, began.elapsed(), self.patience));
            let Some(pause) = again else { return Err(error) };
            sleep(pause).await;
            attempt += 1;
        }
    }
}

pub use deadpool_postgres::Client;

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::error::SqlState;

    /// Seen: a server that was killed gave the number of a lost transaction to another one, which it committed.
    #[test]
    fn a_number_that_may_be_of_another_transaction_says_nothing() {
        let text = |text: &str| text.to_owned();
        let id = TransactionId { xid: text("7"), timeline: text("1"), life: text("a") };
        for (timeline, life, status, expected) in [
            ("1", "a", Some("committed"), Some(Status::Committed)),
            ("1", "a", Some("aborted"), Some(Status::Aborted)),
            ("1", "a", Some("in progress"), Some(Status::InProgress)),
            ("1", "a", None, None),
            ("1", "b", Some("committed"), None),
            ("1", "b", Some("in progress"), None),
            ("1", "b", Some("aborted"), Some(Status::Aborted)),
            ("2", "a", Some("committed"), None),
            ("2", "b", Some("aborted"), None),
        ] {
            assert_eq!(judged(&id, timeline, life, status), expected, "{timeline} {life} {status:?}");
        }
    }

    #[test]
    fn what_others_undid_is_done_again_a_bounded_number_of_times() {
        let patience = Duration::from_secs(5);
        let again = |failure: &Failure, attempt, waited| pause(failure, attempt, waited, patience).is_some();
        for code in [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED] {
            let conflict = Failure::answer(code);
            assert!(again(&conflict, 0, Duration::ZERO) && again(&conflict, CONFLICTS - 1, patience));
            assert!(!again(&conflict, CONFLICTS, Duration::ZERO));
        }
        for gone in [Failure::lost(), Failure::answer(SqlState::ADMIN_SHUTDOWN)] {
            assert!(again(&gone, 1000, patience / 2), "until it is waited for too long");
            assert!(!again(&gone, 0, patience));
        }
        for code in [SqlState::UNIQUE_VIOLATION, SqlState::QUERY_CANCELED, SqlState::DISK_FULL] {
            assert!(!again(&Failure::answer(code), 0, Duration::ZERO));
        }
        let last = pause(&Failure::lost(), u32::MAX, Duration::ZERO, patience);
        assert_eq!(last, Some(LONGEST_PAUSE));
    }
}
