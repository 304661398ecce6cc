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

use crate::change::{Change, Commit, TransactionId};
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
        const STATUS: &str = "SELECT CASE WHEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) = $2
            THEN pg_xact_status($1::text::xid8) END";
        let began = Instant::now();
        let mut tries = 0;
        while began.elapsed() < self.patience.saturating_mul(2) {
            let asked = async {
                let client = self.pool.get().await?;
                let row = client.query_one(STATUS, &[&id.xid, &id.timeline]).await?;
                Ok::<Option<String>, Failure>(row.try_get(0)?)
            };
            match asked.await.as_ref().map(|status| status.as_deref()) {
                // This one, or another that got its number after a crash in which this one was lost.
                Ok(Some("committed")) => break,
                Ok(Some("aborted")) => return Commit::Undone(failure),
                // Its process still works on it.
                Ok(Some(_)) => {}
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
