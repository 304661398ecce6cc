//! Where the process dies for `tests/kill`: at the commits of all connections that `store::fault_plan` counts.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use store::fault_plan::{FaultPlan, SLOW_DISK, die};

/// What a statement that writes begins with.
const VERBS: [&str; 3] = ["INSERT INTO ", "UPDATE ", "DELETE FROM "];

static PLAN: LazyLock<Option<FaultPlan>> = LazyLock::new(FaultPlan::of_environment);
/// Commits that count, of all connections.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Whether a statement that changed rows makes its transaction count.
pub fn counts(sql: &str) -> bool {
    PLAN.as_ref().is_some_and(|plan| written(sql).is_some_and(|table| plan.counts(table)))
}

/// The table that a statement writes; of one of several parts (`WITH`), a table that one of them writes.
fn written(sql: &str) -> Option<&str> {
    let of = |verb: &&str| match sql.starts_with("WITH ") {
        true => sql.split_once(*verb).map(|(_, rest)| rest),
        false => sql.strip_prefix(*verb),
    };
    let rest = VERBS.iter().find_map(of)?;
    rest.split([' ', '\n', '(', ')']).next()
}

/// A transaction that counts is about to be committed; its number.
pub async fn before_commit() -> u64 {
    let number = SEEN.fetch_add(1, Ordering::SeqCst) + 1;
    if is_at(number, true) {
        tokio::time::sleep(SLOW_DISK).await;
        die();
    }
    number
}

/// The transaction of this number is committed.
pub fn after_commit(number: u64) {
    if is_at(number, false) {
        die();
    }
}

fn is_at(number: u64, before: bool) -> bool {
    PLAN.as_ref().is_some_and(|plan| plan.is_at(number, before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NODE;

    #[test]
    fn the_table_that_a_statement_writes_is_known() {
        for sql in [&*NODE.insert, &*NODE.update] {
            assert_eq!(written(sql), Some("node"), "{sql}");
        }
        assert_eq!(written("DELETE FROM certificate WHERE id = $1"), Some("certificate"));
        assert_eq!(written("INSERT INTO event(node)"), Some("event"));
        assert_eq!(written("WITH gone AS (DELETE FROM event_pending) SELECT 1"), Some("event_pending"));
        assert_eq!(written("SELECT 1 FROM node FOR UPDATE OF node"), None);
    }
}
