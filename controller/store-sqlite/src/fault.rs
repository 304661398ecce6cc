//! Fault points, only with the feature `fault-points`, which no release has: the process dies by SIGKILL at the
//! commit that the environment names, so that a test sees what the next process makes of it (`tests/kill`).
//!
//! ```text
//! ANNEAL_FAULT=before:12       the 12th write is about to be committed: what it records has happened, the write is lost
//! ANNEAL_FAULT=after:12        the 12th write is on the disk, and its caller has no answer yet
//! ANNEAL_FAULT=before-any:12   as before, and leases and contact with agents are counted too
//! ANNEAL_FAULT=after-any:12
//! ```

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rusqlite::Connection;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Names the commit to die at.
const VARIABLE: &str = "ANNEAL_FAULT";
/// Tables that change without the controller having decided anything.
const CHATTER: [&str; 2] = ["contact", "lease"];
/// The table of what a controller says of itself: at its start, perhaps before it serves, and then by the clock. Never counted.
const REPORTS: &str = "conductor";

/// How long the commit takes that is never made.
const SLOW_DISK: Duration = Duration::from_millis(20);

thread_local! {
    /// Of the thread that writes.
    static POINT: RefCell<FaultPoint> = RefCell::default();
}

/// The connection of this thread, which has from now on the fault point that the environment asks for.
pub fn armed(mut connection: Connection) -> Connection {
    POINT.set(FaultPoint::arm(&mut connection));
    connection
}

/// The transaction under way is about to be committed.
pub fn before_commit() {
    POINT.with_borrow_mut(FaultPoint::before_commit);
}

/// It is on the disk.
pub fn after_commit() {
    POINT.with_borrow_mut(FaultPoint::after_commit);
}

/// Counts the commits of one writer.
#[derive(Default)]
struct FaultPoint {
    plan: Option<Plan>,
    /// Whether the transaction under way counts.
    counts: Arc<AtomicBool>,
    seen: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Plan {
    before: bool,
    any: bool,
    number: u64,
}

impl FaultPoint {
    /// The fault point that the environment asks for; an unreadable value is logged and ignored.
    fn arm(connection: &mut Connection) -> Self {
        let Ok(text) = std::env::var(VARIABLE) else { return Self::default() };
        let plan = parse(&text);
        tracing::warn!(?plan, "{VARIABLE}={text}: this process is going to kill itself");
        Self::with(plan, connection).unwrap_or_default()
    }

    fn with(plan: Option<Plan>, connection: &mut Connection) -> rusqlite::Result<Self> {
        let counts = Arc::new(AtomicBool::new(false));
        let (heard, any) = (counts.clone(), plan.as_ref().is_some_and(|plan| plan.any));
        connection.update_hook(Some(move |_, _: &str, table: &str, _| {
            if table != REPORTS && (any || !CHATTER.contains(&table)) {
                heard.store(true, Ordering::Relaxed);
            }
        }))?;
        Ok(Self { plan, counts, seen: 0 })
    }

    fn before_commit(&mut self) {
        if self.counts.load(Ordering::Relaxed) {
            self.seen += 1;
            self.die_if(true);
        }
    }

    fn after_commit(&mut self) {
        if self.counts.swap(false, Ordering::Relaxed) {
            self.die_if(false);
        }
    }

    fn die_if(&self, before: bool) {
        if self.plan.as_ref().is_some_and(|plan| plan.number == self.seen && plan.before == before) {
            if before {
                // A disk takes time, too: a caller that was answered before the commit could act on it now.
                std::thread::sleep(SLOW_DISK);
            }
            // Nothing comes after it, whatever it says.
            let _ = kill(Pid::this(), Signal::SIGKILL);
        }
    }
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

    #[test]
    fn a_fault_is_read() {
        assert_eq!(parse("before:3"), Some(Plan { before: true, any: false, number: 3 }));
        assert_eq!(parse("after-any:12"), Some(Plan { before: false, any: true, number: 12 }));
        for bad in ["", "3", "after", "after:x", "during:1"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    /// Commits that count are those that changed a row of more than contact and leases.
    #[test]
    fn chatter_is_not_counted_unless_asked_for() {
        for (any, counted) in [(false, 1), (true, 3)] {
            let mut connection = Connection::open_in_memory().unwrap();
            connection
                .execute_batch("CREATE TABLE node (x); CREATE TABLE lease (x); CREATE TABLE contact (x);")
                .unwrap();
            let plan = Plan { before: true, any, number: 1000 };
            let mut point = FaultPoint::with(Some(plan), &mut connection).unwrap();
            for sql in [
                "INSERT INTO lease VALUES (1)",
                "INSERT INTO node VALUES (1)",
                "INSERT INTO contact VALUES (1)",
                "DELETE FROM node WHERE x = 7",
            ] {
                connection.execute(sql, []).unwrap();
                point.before_commit();
                point.after_commit();
            }
            assert_eq!(point.seen, counted);
        }
    }
}
