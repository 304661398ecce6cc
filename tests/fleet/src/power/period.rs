//! A fleet of Redfish nodes at rest, whose power state a controller reads once in a period.

use super::{GOAL_NODES, Shape, controller};
use crate::behaviour::Behaviour;
use crate::bmc::SYSTEM;
use crate::fleet::{Fleet, Setup};
use crate::journal::{Entry, Journal, What, now};
use crate::operator;
use anyhow::{Result, ensure};
use bench::cpu;
use hostile::memory::resident;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// By how much of the period a reading may be late: the controller counts it from the end of a reading, and passes wait for each other.
const LATE: f64 = 0.05;
/// A node that was not read within two periods, and this, is not awaited.
const GRACE: Duration = Duration::from_secs(60);
/// Between two looks at what was read.
const LOOK: Duration = Duration::from_millis(200);

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Nodes.
    pub nodes: u32,
    /// The period, in seconds.
    pub period_s: u32,
    /// What lay between two readings of a node.
    pub gaps: Gaps,
    /// For how long the nodes were watched.
    pub seconds: f64,
    /// Processor time of the controller in this time, by readings.
    pub processor_ms: f64,
    /// The same of this program, which plays the BMCs.
    pub simulator_ms: f64,
    /// Resident bytes of the controller at the end.
    pub resident: u64,
}

/// What the journal of the BMCs says of readings.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Gaps {
    /// Nodes that were read after the begin.
    pub read: u32,
    /// Nodes that were not.
    pub unread: u32,
    /// All readings after the begin.
    pub readings: u64,
    /// Seconds beyond the period from the last reading before the begin to the first one after it: half of the nodes had at most this …
    pub late_median_s: f64,
    /// … 99 of 100 this …
    pub late_p99_s: f64,
    /// … and all this.
    pub late_most_s: f64,
}

/// Takes the nodes to where they rest, and watches them for a period, or until each was read.
///
/// # Errors
/// When a node fails, or time is up.
pub async fn run(shape: &Shape, dir: &Path) -> Result<Report> {
    let controller = controller(shape, dir, shape.period_s).await?;
    let setup = Setup {
        bmc_tls: true,
        ..Setup::on_loopback(shape.nodes, Behaviour::default(), controller.ports.boot)
    };
    let fleet = Fleet::start(setup, Journal::memory(), shape.seed).await?;
    operator::enrol(&controller.operator, &fleet).await?;
    operator::ask(&controller.operator, (0..shape.nodes).collect(), "manage").await?;
    operator::reach(&controller.operator, "manageable", shape.limit).await?;
    let (begun, since) = (Instant::now(), now());
    let (pid, this) = (controller.pid(), std::process::id());
    let before = [cpu::of_process(pid)?, cpu::of_process(this)?];
    let period = Duration::from_secs(shape.period_s.into());
    tokio::time::sleep(period.mul_f64(1.0 + LATE)).await;
    let mut entries = fleet.shared.journal.take();
    let mut found = gaps(&entries, shape.nodes, period, since);
    // By how much a goal is missed.
    while found.unread > 0 && begun.elapsed() < period * 2 + GRACE {
        tokio::time::sleep(LOOK).await;
        entries.extend(fleet.shared.journal.take());
        found = gaps(&entries, shape.nodes, period, since);
    }
    let gaps = found;
    let used = [cpu::of_process(pid)?, cpu::of_process(this)?];
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(gaps.readings > 0, "no power state was read within {seconds:.0} s");
    let each = |at: usize| used[at].saturating_sub(before[at]).as_secs_f64() * 1000.0 / gaps.readings as f64;
    let (processor_ms, simulator_ms) = (each(0), each(1));
    let (nodes, period_s, resident) = (shape.nodes, shape.period_s, resident(pid)?);
    Ok(Report { nodes, period_s, gaps, seconds, processor_ms, simulator_ms, resident })
}

/// What this journal says, in which readings before `since` (microseconds since 1970) are those by which nodes were verified.
fn gaps(entries: &[Entry], nodes: u32, period: Duration, since: i64) -> Gaps {
    let reading = format!("GET {SYSTEM}");
    // Of each node the last reading before, and the first one after.
    let mut around: Vec<(Option<i64>, Option<i64>)> = Vec::new();
    around.resize(usize::try_from(nodes).unwrap_or_default(), (None, None));
    let mut readings = 0;
    for entry in entries {
        let is_reading = matches!(&entry.what, What::Bmc { call, status: 200, .. } if *call == reading);
        let node = usize::try_from(entry.node).ok().and_then(|node| around.get_mut(node));
        let Some((last, first)) = node.filter(|_| is_reading) else { continue };
        if entry.at < since {
            *last = (*last).max(Some(entry.at));
        } else {
            readings += 1;
            *first = Some(first.map_or(entry.at, |first| first.min(entry.at)));
        }
    }
    let both = around.iter().filter_map(|(last, first)| last.zip(*first));
    let mut late: Vec<f64> =
        both.map(|(last, first)| (first - last) as f64 / 1e6 - period.as_secs_f64()).collect();
    late.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let rank = (late.len() * percent).div_ceil(100).max(1);
        late.get(rank - 1).copied().unwrap_or_default()
    };
    let read = u32::try_from(late.len()).unwrap_or(u32::MAX);
    Gaps {
        read,
        unread: nodes.saturating_sub(read),
        readings,
        late_median_s: at(50),
        late_p99_s: at(99),
        late_most_s: at(100),
    }
}

impl Report {
    /// The goal of issue 18, where there are as many nodes, and it is missed.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.nodes < GOAL_NODES {
            return missed;
        }
        if self.gaps.unread > 0 {
            missed.push(format!("{} nodes were not read", self.gaps.unread));
        }
        let most = f64::from(self.period_s) * LATE;
        if self.gaps.late_most_s > most {
            let late = self.gaps.late_most_s;
            missed.push(format!("a node was read {late:.1} s after its period; goal: at most {most:.0}"));
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(second: i64, node: u32, call: &str, status: u16) -> Entry {
        let what = What::Bmc { from: [127, 0, 0, 1].into(), user_agent: None, call: call.to_owned(), status };
        Entry { at: second * 1_000_000, node, what }
    }

    #[test]
    fn what_lies_between_two_readings_is_counted_for_each_node() {
        let reading = format!("GET {SYSTEM}");
        let entries = [
            call(10, 0, &reading, 200),
            call(20, 0, &reading, 200),
            call(15, 1, &reading, 200),
            call(15, 2, &reading, 200),
            call(40, 0, "GET /redfish/v1/", 200),
            call(41, 0, &reading, 503),
            call(51, 0, &reading, 200),
            call(45, 1, &reading, 200),
            call(75, 1, &reading, 200),
            // A node that is not one of them.
            call(45, 9, &reading, 200),
        ];
        let found = gaps(&entries, 3, Duration::from_secs(30), 30_000_000);
        let expected =
            Gaps { read: 2, unread: 1, readings: 3, late_median_s: 0.0, late_p99_s: 1.0, late_most_s: 1.0 };
        assert_eq!(found, expected);
        assert_eq!(gaps(&[], 1, Duration::ZERO, 0).unread, 1);
    }

    #[test]
    fn the_goal_is_that_each_node_is_read_and_none_much_later_than_its_period() {
        let report = |unread, late_most_s| Report {
            nodes: GOAL_NODES,
            period_s: 300,
            gaps: Gaps { unread, late_most_s, ..Gaps::default() },
            seconds: 315.0,
            processor_ms: 1.0,
            simulator_ms: 1.0,
            resident: 1,
        };
        assert_eq!(report(0, 14.9).missed(), Vec::<String>::new());
        assert_eq!(report(1, 0.0).missed(), ["1 nodes were not read"]);
        assert_eq!(report(0, 15.1).missed().len(), 1);
    }
}
