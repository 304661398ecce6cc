//! What was achieved, and which goals were missed.

use crate::memory::MIB;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Goals of issue 16.
const REQUESTS_PER_S: f64 = 2_000.0;
/// See above.
const HELD: f64 = 2_000.0;
/// See above.
const WAIT: Duration = Duration::from_millis(250);
/// See above.
const RESIDENT: u64 = 256 * MIB;
/// See above.
pub const GROWTH: u64 = 32 * MIB;

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Report {
    /// How long the hostile clients were at work.
    pub lasted: Duration,
    /// Cleanings of each honest node.
    pub rounds: Vec<usize>,
    /// The longest cleaning.
    pub longest: Duration,
    /// Nodes with lying agents.
    pub liars: usize,
    /// How often each of their lies was found out.
    pub lies: BTreeMap<&'static str, u64>,
    /// Silent BMCs.
    pub silent: usize,
    /// Requests of strangers that were answered.
    pub answered: u64,
    /// Requests of strangers whose connection was closed instead.
    pub closed: u64,
    /// Strangers' requests by kind and answer.
    pub by: BTreeMap<(&'static str, u16), u64>,
    /// Hostile connections that were open, each second.
    pub held: Vec<usize>,
    /// How long an operator waited for each answer, sorted.
    pub waits: Vec<Duration>,
    /// Resident bytes: after nodes were cleaned in peace, the most, and after the hostile clients have left.
    pub resident: [u64; 3],
    /// Processor time of the controller.
    pub processor: Duration,
}

impl Report {
    fn per_s(&self) -> f64 {
        self.answered as f64 / self.lasted.as_secs_f64().max(0.001)
    }

    fn mean_held(&self) -> f64 {
        self.held.iter().sum::<usize>() as f64 / self.held.len().max(1) as f64
    }

    /// Nearest rank: the smallest wait that `permille` of 1000 do not exceed.
    fn wait(&self, permille: usize) -> Duration {
        let rank = (self.waits.len() * permille).div_ceil(1000).max(1);
        self.waits.get(rank - 1).copied().unwrap_or_default()
    }

    /// The goals that hold on every machine, however busy it is.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let [start, most, end] = self.resident;
        if most >= RESIDENT {
            missed.push(format!("{} MiB were resident, at least {}", most / MIB, RESIDENT / MIB));
        }
        if end > start + GROWTH {
            missed.push(format!("{} MiB stayed resident, of {} at the start", end / MIB, start / MIB));
        }
        if self.rounds.is_empty() || self.rounds.contains(&0) {
            missed.push("a node was never cleaned".to_owned());
        }
        if self.liars > 0 && self.lies.is_empty() {
            missed.push("no lie was found out".to_owned());
        }
        missed
    }

    /// The goals of the soak: rates and waits of an optimised controller on a machine that does nothing else.
    pub fn missed_in_soak(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.per_s() < REQUESTS_PER_S {
            missed.push(format!("fewer than {REQUESTS_PER_S} requests/s were answered"));
        }
        if self.mean_held() < HELD {
            missed.push(format!("fewer than {HELD} hostile connections were open"));
        }
        if self.wait(990) > WAIT {
            missed.push(format!("the 99th percentile of an operator's waits is above {WAIT:?}"));
        }
        missed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cleanings: usize = self.rounds.iter().sum();
        writeln!(
            f,
            "hostile: {:.0} s, {:.0} requests/s answered ({} in all, {} more closed unanswered)",
            self.lasted.as_secs_f64(),
            self.per_s(),
            self.answered,
            self.closed
        )?;
        let least = self.held.iter().min().copied().unwrap_or_default();
        writeln!(
            f,
            "hostile: {:.0} hostile connections open on average, {least} at least",
            self.mean_held()
        )?;
        for ((what, status), count) in &self.by {
            let answer = if *status == 0 { "closed".to_owned() } else { status.to_string() };
            writeln!(f, "  {what:<26} {answer:>6} {count:>9}")?;
        }
        writeln!(
            f,
            "hostile: {} nodes arrived, {cleanings} cleanings, the longest {:.1} s; {} silent BMCs; {} lying agents, found out:",
            self.rounds.len(),
            self.longest.as_secs_f64(),
            self.silent,
            self.liars,
        )?;
        for (lie, count) in &self.lies {
            writeln!(f, "  {lie:<26} {count:>16}")?;
        }
        let ms = |permille| self.wait(permille).as_secs_f64() * 1000.0;
        writeln!(
            f,
            "hostile: an operator waited {:.1} ms (median), {:.1} ms (p99), {:.1} ms (longest) in {} requests",
            ms(500),
            ms(990),
            ms(1000),
            self.waits.len()
        )?;
        let [start, most, end] = self.resident.map(|bytes| bytes / MIB);
        let busy = self.processor.as_secs_f64() / self.lasted.as_secs_f64().max(0.001) * 100.0;
        writeln!(
            f,
            "hostile: resident {start} MiB at the start, {most} at most, {end} at the end; {busy:.0} % of a processor"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Report {
        Report {
            lasted: Duration::from_secs(10),
            rounds: vec![1, 2],
            answered: 20_000,
            held: vec![1_900, 2_100],
            waits: (1..=100).map(Duration::from_millis).collect(),
            resident: [40 * MIB, 255 * MIB, 72 * MIB],
            ..Report::default()
        }
    }

    #[test]
    fn each_goal_is_judged() {
        assert!(good().missed().is_empty() && good().missed_in_soak().is_empty());
        let [start, most, end] = good().resident;
        assert_eq!(Report { resident: [start, 256 * MIB, end], ..good() }.missed().len(), 1);
        assert_eq!(Report { resident: [start, most, 72 * MIB + 1], ..good() }.missed().len(), 1);
        for rounds in [vec![], vec![3, 0]] {
            assert_eq!(Report { rounds, ..good() }.missed(), ["a node was never cleaned"]);
        }
        assert_eq!(Report { liars: 1, ..good() }.missed(), ["no lie was found out"]);
        let mut slow = good();
        slow.waits[98] = Duration::from_millis(251);
        slow.waits[99] = Duration::from_millis(251);
        slow.answered = 19_999;
        slow.held = vec![1_999];
        assert_eq!(slow.missed_in_soak().len(), 3);
        assert!(good().to_string().contains("2000 requests/s answered"), "{}", good());
    }
}
