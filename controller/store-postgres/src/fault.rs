//! Fault points, only with the feature `fault-points`, which no release has: the process dies by SIGKILL at the commit that the
//! environment names, so that a test sees what the next process makes of it (`tests/kill`). The variable and what is counted
//! are those of store-sqlite's `fault.rs`.
//!
//! ```text
//! ANNEAL_FAULT=before:12       the 12th write is about to be committed: what it records has happened, the write is lost
//! ANNEAL_FAULT=after:12        it is committed, and its caller has no answer yet
//! ANNEAL_FAULT=before-any:12   as before, and leases and contact with agents are counted too
//! ANNEAL_FAULT=after-any:12
//! ```

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Names the commit to die at.
const VARIABLE: &str = "ANNEAL_FAULT";
/// Tables that change without the controller having decided anything.
const CHATTER: [&str; 2] = ["contact", "lease"];
/// What a start writes, or a controller says of itself by the clock. Never counted.
const UNCOUNTED: [&str; 3] = ["conductor", "secret_key", "anneal_schema"];
/// What a statement that writes begins with.
const VERBS: [&str; 3] = ["INSERT INTO ", "UPDATE ", "DELETE FROM "];
/// How long the commit takes that is never made: a caller that was answered before it could act meanwhile.
const SLOW_DISK: Duration = Duration::from_millis(20);

static PLAN: LazyLock<Option<Plan>> = LazyLock::new(|| {
    let text = std::env::var(VARIABLE).ok()?;
    let plan = parse(&text);
    tracing::warn!(?plan, "{VARIABLE}={text}: this process is going to kill itself");
    plan
});
/// Commits that count, of all connections.
static SEEN: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, PartialEq, Eq)]
struct Plan {
    before: bool,
    any: bool,
    number: u64,
}

/// Whether a statement that changed rows makes its transaction count.
pub fn counts(sql: &str) -> bool {
    PLAN.as_ref().is_some_and(|plan| is_counted(sql, plan.any))
}

fn is_counted(sql: &str, any: bool) -> bool {
    let Some(rest) = VERBS.iter().find_map(|verb| sql.strip_prefix(verb)) else { return false };
    let table = rest.split([' ', '\n', '(']).next().unwrap_or_default();
    !UNCOUNTED.contains(&table) && (any || !CHATTER.contains(&table))
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
    PLAN.as_ref().is_some_and(|plan| plan.number == number && plan.before == before)
}

fn die() {
    // Nothing comes after it, whatever it says.
    let _ = kill(Pid::this(), Signal::SIGKILL);
}

fn parse(text: &str) -> Option<Plan> {
    let (moment, number) = text.split_once(':')?;
    let (before, any) = match moment {
        "before" => (true, false),
        "after" => (false, false),
        "before-any" => (true, true),
        "after-any" => (false, true),
        _ => return None,
    };
    Some(Plan { before, any, number: number.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NODE;

    #[test]
    fn a_fault_is_read() {
        assert_eq!(parse("before:3"), Some(Plan { before: true, any: false, number: 3 }));
        assert_eq!(parse("after-any:12"), Some(Plan { before: false, any: true, number: 12 }));
        for bad in ["", "3", "after", "after:x", "during:1"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn chatter_is_not_counted_unless_asked_for() {
        for sql in
            [&NODE.insert, &NODE.update, "DELETE FROM certificate WHERE id = $1", "INSERT INTO event(node)"]
        {
            assert!(is_counted(sql, false) && is_counted(sql, true), "{sql}");
        }
        for sql in ["INSERT INTO lease (node) VALUES ($1)", "DELETE FROM contact WHERE node = $1"] {
            assert!(!is_counted(sql, false) && is_counted(sql, true), "{sql}");
        }
        for sql in [
            "SELECT 1",
            "INSERT INTO conductor (hostname) VALUES ($1)",
            "UPDATE anneal_schema SET version = 1",
        ] {
            assert!(!is_counted(sql, false) && !is_counted(sql, true), "{sql}");
        }
    }
}
