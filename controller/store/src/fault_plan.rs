//! Fault points, only with debug assertions, which no release has: the process dies by SIGKILL at the commit that the
//! environment names, so that a test sees what the next process makes of it (`tests/kill`). What it names is read here; each
//! store counts its commits itself.
//!
//! ```text
//! ANNEAL_FAULT=before:12       the 12th write is about to be committed: what it records has happened, the write is lost
//! ANNEAL_FAULT=after:12        it is committed, and its caller has no answer yet
//! ANNEAL_FAULT=before-any:12   as before, and leases and contact with agents are counted too
//! ANNEAL_FAULT=after-any:12
//! ```

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;

/// Names the commit to die at.
const VARIABLE: &str = "ANNEAL_FAULT";
/// Tables that change without the controller having decided anything.
const CHATTER: [&str; 2] = ["contact", "lease"];
/// What a start writes, or a controller says of itself by the clock. Never counted.
const UNCOUNTED: [&str; 3] = ["conductor", "secret_key", "anneal_schema"];

/// How long the commit takes that is never made: a caller that was answered before the commit could act on it meanwhile.
pub const SLOW_DISK: Duration = Duration::from_millis(20);

/// The commit to die at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultPlan {
    /// Before it is made, else after.
    pub before: bool,
    /// Leases and contact with agents count, too.
    pub any: bool,
    /// Which of those that count, from 1.
    pub number: u64,
}

impl FaultPlan {
    /// What the environment asks for; an unreadable value is logged and ignored.
    pub fn of_environment() -> Option<Self> {
        let text = std::env::var(VARIABLE).ok()?;
        let plan = Self::read(&text);
        tracing::warn!(?plan, "{VARIABLE}={text}: this process is going to kill itself");
        plan
    }

    fn read(text: &str) -> Option<Self> {
        let (moment, number) = text.split_once(':')?;
        let (before, any) = match moment {
            "before" => (true, false),
            "after" => (false, false),
            "before-any" => (true, true),
            "after-any" => (false, true),
            _ => return None,
        };
        Some(Self { before, any, number: number.parse().ok()? })
    }

    /// Whether a commit counts that changes a row of this table.
    pub fn counts(&self, table: &str) -> bool {
        !UNCOUNTED.contains(&table) && (self.any || !CHATTER.contains(&table))
    }

    /// Whether it names this commit, and this side of it.
    pub fn is_at(&self, number: u64, before: bool) -> bool {
        self.number == number && self.before == before
    }
}

/// End this process as a power cut would.
pub fn die() {
    // Nothing comes after it, whatever it says.
    let _ = kill(Pid::this(), Signal::SIGKILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read() {
        let read = FaultPlan::read;
        assert_eq!(read("before:3"), Some(FaultPlan { before: true, any: false, number: 3 }));
        assert_eq!(read("after-any:12"), Some(FaultPlan { before: false, any: true, number: 12 }));
        for bad in ["", "3", "after", "after:x", "during:1"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn chatter_is_not_counted_unless_asked_for() {
        let counts = |any, table| FaultPlan { before: true, any, number: 1 }.counts(table);
        for (table, counted) in
            [("node", [true, true]), ("lease", [false, true]), ("conductor", [false, false])]
        {
            assert_eq!([counts(false, table), counts(true, table)], counted, "{table}");
        }
    }
}
