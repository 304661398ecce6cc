//! Where the process dies for `tests/kill`: at the commits of the writer that `store::fault_plan` counts.

use rusqlite::Connection;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::fault_plan::{FaultPlan, SLOW_DISK, die};

thread_local! {
    /// Of the thread that writes.
    static POINT: RefCell<FaultPoint> = RefCell::default();
}

/// The connection of this thread, which has from now on the fault point that the environment asks for.
pub fn armed(mut connection: Connection) -> Connection {
    if let Some(plan) = FaultPlan::of_environment() {
        POINT.set(FaultPoint::with(plan, &mut connection).unwrap_or_default());
    }
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
    plan: Option<FaultPlan>,
    /// Whether the transaction under way counts.
    counts: Arc<AtomicBool>,
    seen: u64,
}

impl FaultPoint {
    fn with(plan: FaultPlan, connection: &mut Connection) -> rusqlite::Result<Self> {
        let counts = Arc::new(AtomicBool::new(false));
        let (heard, named) = (counts.clone(), plan.clone());
        connection.update_hook(Some(move |_, _: &str, table: &str, _| {
            if named.counts(table) {
                heard.store(true, Ordering::Relaxed);
            }
        }))?;
        Ok(Self { plan: Some(plan), counts, seen: 0 })
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
        if self.plan.as_ref().is_some_and(|plan| plan.is_at(self.seen, before)) {
            if before {
                std::thread::sleep(SLOW_DISK);
            }
            die();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits that count are those that changed a row of more than contact and leases.
    #[test]
    fn a_commit_counts_by_the_tables_that_it_changes() {
        for (any, counted) in [(false, 1), (true, 3)] {
            let mut connection = Connection::open_in_memory().unwrap();
            connection
                .execute_batch("CREATE TABLE node (x); CREATE TABLE lease (x); CREATE TABLE contact (x);")
                .unwrap();
            let plan = FaultPlan { before: true, any, number: 1000 };
            let mut point = FaultPoint::with(plan, &mut connection).unwrap();
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
