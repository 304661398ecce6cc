//! What must hold in a run, and what did not: pure, over what nodes and PostgreSQL noted.

use crate::agent::Agent;
use crate::journal::{Entry, What};
use model::StepKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// Goals of issue 18: the others begin within this time …
const TAKEOVER: Duration = Duration::from_secs(15);
/// … and no node is later than the undisturbed run's 99th percentile by more.
pub const LATE: Duration = Duration::from_secs(20);
/// Lines of one kind that a verdict shows.
const SHOWN: usize = 5;

/// A change of a node's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseChange {
    /// Microseconds since 1970.
    pub at: i64,
    /// The node's number.
    pub node: u32,
    /// The holder from here on; `None`: it was released.
    pub holder: Option<String>,
    /// Its epoch.
    pub epoch: u64,
    /// When it expires, in microseconds since 1970.
    pub until: i64,
}

/// A write of a node's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWrite {
    /// Microseconds since 1970.
    pub at: i64,
    /// The node's number.
    pub node: u32,
    /// The writer.
    pub by: String,
    /// The holder of the lease, if there was one, expired or not.
    pub holder: Option<String>,
    /// The state that was written.
    pub state: String,
}

/// All that was noted in a run.
#[derive(Debug, Default)]
pub struct Record {
    /// By the nodes.
    pub journal: Vec<Entry>,
    /// By PostgreSQL, in its order.
    pub leases: Vec<LeaseChange>,
    /// By PostgreSQL.
    pub writes: Vec<NodeWrite>,
    /// Names of controllers by their addresses.
    pub names: BTreeMap<IpAddr, String>,
    /// How often an operator asked for something, by node.
    pub asked: BTreeMap<u32, usize>,
    /// Nodes that were deployed; the others were cleaned.
    pub deployed: BTreeSet<u32>,
    /// When each node had arrived.
    pub arrived: BTreeMap<u32, Duration>,
    /// When the mishap happened, in microseconds since 1970.
    pub disturbed_at: Option<i64>,
}

impl Record {
    /// When half of the nodes had arrived.
    pub fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// When 99 of 100 had.
    pub fn p99(&self) -> Duration {
        self.percentile(99)
    }

    fn percentile(&self, percent: usize) -> Duration {
        let mut times: Vec<_> = self.arrived.values().copied().collect();
        times.sort_unstable();
        times.get(((times.len() * percent).div_ceil(100)).max(1) - 1).copied().unwrap_or_default()
    }
}

/// What happened to which controller.
#[derive(Debug, Clone)]
pub struct Disturbance {
    /// When, in microseconds since 1970.
    pub at: i64,
    /// The controller.
    pub victim: String,
    /// From when on another process has its name, which may take its nodes over as the others may.
    pub replaced_at: Option<i64>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Nodes that the victim was working on or had last.
    pub bereft: usize,
    /// From the mishap until another controller had the first of these.
    pub takeover: Option<Duration>,
    /// The last node's arrival.
    pub last: Duration,
    /// By how much it is later than the undisturbed run's p99.
    pub late: Duration,
    /// Calls of BMCs, and commands that agents did.
    pub calls: usize,
    /// See above.
    pub commands: usize,
    /// Commands that agents refused because of their epoch.
    pub refused: usize,
    /// Steps that may be run again and were.
    pub repeated: usize,
    /// What does not hold.
    pub violations: Vec<String>,
}

/// Leases over time.
struct Leases<'a>(BTreeMap<u32, Vec<&'a LeaseChange>>);

impl<'a> Leases<'a> {
    fn of(changes: &'a [LeaseChange]) -> Self {
        let mut by_node: BTreeMap<u32, Vec<&LeaseChange>> = BTreeMap::new();
        changes.iter().for_each(|change| by_node.entry(change.node).or_default().push(change));
        by_node.values_mut().for_each(|changes| changes.sort_by_key(|change| change.at));
        Self(by_node)
    }

    /// The last change at this moment or before.
    fn at(&self, node: u32, at: i64) -> Option<&'a LeaseChange> {
        let changes = self.0.get(&node)?;
        let after = changes.partition_point(|change| change.at <= at);
        changes.get(after.checked_sub(1)?).copied()
    }
}

/// Judges a run; `p99` is that of the undisturbed run of its seed.
pub fn judge(record: &Record, disturbance: Option<&Disturbance>, p99: Option<Duration>) -> Verdict {
    let leases = Leases::of(&record.leases);
    let mut verdict = Verdict::default();
    let mut steps: BTreeMap<u32, Vec<(&str, bool)>> = BTreeMap::new();
    for entry in &record.journal {
        let node = entry.node;
        match &entry.what {
            What::Bmc { from, call, .. } => {
                verdict.calls += 1;
                if let Err(why) = may_call(record, &leases, entry, *from) {
                    verdict.violations.push(format!("node {node}: BMC call {call}: {why}"));
                }
            }
            What::Command { status: 412, .. } => verdict.refused += 1,
            What::Command { from, name, epoch, .. } => {
                verdict.commands += 1;
                if let Err(why) = may_command(record, &leases, entry, (*from, *epoch)) {
                    verdict.violations.push(format!("node {node}: command {name}: {why}"));
                }
            }
            What::Step { step, idempotent, .. } => steps.entry(node).or_default().push((step, *idempotent)),
            _ => {}
        }
    }
    judge_writes(record, &mut verdict);
    judge_steps(&steps, record, &mut verdict);
    verdict.last = record.arrived.values().max().copied().unwrap_or_default();
    if let Some(p99) = p99 {
        judge_arrivals(record, p99, &mut verdict);
    }
    if let Some(disturbance) = disturbance {
        judge_takeover(record, &leases, disturbance, &mut verdict);
    }
    verdict
}

/// What came of the nodes of one controller among several that were disturbed one after another.
pub fn judge_one(record: &Record, disturbance: &Disturbance) -> Verdict {
    let mut verdict = Verdict::default();
    judge_takeover(record, &Leases::of(&record.leases), disturbance, &mut verdict);
    verdict
}

/// The nodes that booted from the network more than once: a run of theirs began again.
pub fn booted_again(record: &Record) -> Vec<String> {
    let mut boots: BTreeMap<u32, usize> = BTreeMap::new();
    for entry in record.journal.iter().filter(|entry| entry.what == What::On { network: true }) {
        *boots.entry(entry.node).or_default() += 1;
    }
    let again = boots.into_iter().filter(|(_, boots)| *boots > 1);
    again.map(|(node, boots)| format!("node {node}: it boots {boots} times")).collect()
}

/// A BMC refuses nothing: its caller must have a lease that has not expired.
fn may_call(record: &Record, leases: &Leases<'_>, entry: &Entry, from: IpAddr) -> Result<(), String> {
    let name = record.names.get(&from).ok_or_else(|| format!("from {from}, no controller"))?;
    match leases.at(entry.node, entry.at) {
        Some(lease) if lease.holder.as_ref() != Some(name) => {
            Err(format!("{name} begins it, and the lease is that of {:?}", lease.holder))
        }
        Some(lease) if lease.until < entry.at => {
            Err(format!("{name} begins it {} ms after its lease expired", (entry.at - lease.until) / 1000))
        }
        Some(_) => Ok(()),
        None => Err(format!("{name} begins it without ever having had the lease")),
    }
}

/// A command that was not refused must be of the newest epoch.
fn may_command(
    record: &Record,
    leases: &Leases<'_>,
    entry: &Entry,
    (from, epoch): (IpAddr, Option<u64>),
) -> Result<(), String> {
    let name = record.names.get(&from).ok_or_else(|| format!("from {from}, no controller"))?;
    let lease = leases.at(entry.node, entry.at).filter(|lease| lease.holder.as_ref() == Some(name));
    match lease {
        Some(lease) if Some(lease.epoch) == epoch => Ok(()),
        Some(lease) => Err(format!("{name} sends epoch {epoch:?}, and its lease has {}", lease.epoch)),
        None => Err(format!("{name} sends it and does not have the lease")),
    }
}

/// A row is written by the holder of its lease, or once for each request of an operator: the API looks at the lease before it
/// writes, and another controller may have taken it since, whose write is then refused by the version of the row.
fn judge_writes(record: &Record, verdict: &mut Verdict) {
    let mut for_requests: BTreeMap<u32, usize> = BTreeMap::new();
    for NodeWrite { node, by, holder, state, .. } in &record.writes {
        if holder.as_ref() == Some(by) {
            continue;
        }
        let asked = record.asked.get(node).copied().unwrap_or_default();
        let writes = for_requests.entry(*node).or_default();
        *writes += 1;
        if *writes > asked {
            verdict.violations.push(match holder {
                Some(holder) => {
                    format!("node {node}: {by} writes {state}, and the lease is that of {holder}")
                }
                None => format!("node {node}: {writes} writes without a lease for {asked} requests"),
            });
        }
    }
}

fn judge_steps(steps: &BTreeMap<u32, Vec<(&str, bool)>>, record: &Record, verdict: &mut Verdict) {
    let [cleaned, deployed] = [StepKind::Clean, StepKind::Deploy].map(Agent::expected);
    for node in record.arrived.keys() {
        let expected = if record.deployed.contains(node) { &deployed } else { &cleaned };
        let ran = steps.get(node).map(Vec::as_slice).unwrap_or_default();
        let mut once = Vec::new();
        for (step, idempotent) in ran {
            if !once.contains(step) {
                once.push(*step);
            } else if *idempotent {
                verdict.repeated += 1;
            } else {
                verdict.violations.push(format!("node {node}: {step} is run again, and may not"));
            }
        }
        if once != *expected {
            verdict.violations.push(format!("node {node}: it ran {once:?}"));
        }
    }
}

fn judge_arrivals(record: &Record, p99: Duration, verdict: &mut Verdict) {
    verdict.late = verdict.last.saturating_sub(p99);
    for (node, arrived) in &record.arrived {
        let late = arrived.saturating_sub(p99);
        if late > LATE {
            verdict
                .violations
                .push(format!("node {node}: late: it arrives after {arrived:?}, {late:?} after the p99"));
        }
    }
}

fn judge_takeover(record: &Record, leases: &Leases<'_>, disturbance: &Disturbance, verdict: &mut Verdict) {
    let Disturbance { at, victim, replaced_at } = disturbance;
    let is_victims = |node: &u32| {
        // The last that had it, also where it has been released since: the node is its own to drive.
        let changes = leases.0.get(node).map(Vec::as_slice).unwrap_or_default();
        let before = changes.iter().take_while(|change| change.at <= *at);
        before.filter_map(|change| change.holder.as_ref()).last() == Some(victim)
    };
    let bereft: BTreeSet<u32> = leases.0.keys().copied().filter(is_victims).collect();
    let others = record.leases.iter().filter(|change| change.at > *at && bereft.contains(&change.node));
    let is_another = |change: &LeaseChange| {
        let has_name = change.holder.as_ref() == Some(victim);
        change.holder.is_some() && (!has_name || replaced_at.is_some_and(|from| change.at >= from))
    };
    let others = others.filter(|change| is_another(change));
    let first = others.map(|change| change.at - at).min();
    verdict.bereft = bereft.len();
    verdict.takeover = first.map(|micros| Duration::from_micros(micros.unsigned_abs()));
    match verdict.takeover {
        Some(after) if after > TAKEOVER => {
            verdict.violations.push(format!("takeover begins after {after:?}"));
        }
        None => verdict
            .violations
            .push(format!("no controller took over any of the {} nodes of {victim}", bereft.len())),
        Some(_) => {}
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bereft, last, late, calls, commands, refused, repeated, .. } = self;
        if let Some(takeover) = self.takeover {
            write!(f, "{bereft} nodes are taken over from {:.1} s on; ", takeover.as_secs_f64())?;
        }
        write!(
            f,
            "the last arrives after {:.1} s ({:.1} s after the undisturbed p99); {calls} BMC calls, {commands} commands, \
             {refused} refused by their epoch, {repeated} repeated steps that may be; {} violations",
            last.as_secs_f64(),
            late.as_secs_f64(),
            self.violations.len()
        )?;
        self.violations.iter().take(SHOWN).try_for_each(|violation| write!(f, "\n  {violation}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C1: [u8; 4] = [10, 99, 1, 2];
    const C2: [u8; 4] = [10, 99, 2, 2];
    const SECOND: i64 = 1_000_000;

    fn lease(at: i64, holder: Option<&str>, epoch: u64) -> LeaseChange {
        let until = (at + 12) * SECOND;
        LeaseChange { at: at * SECOND, node: 7, holder: holder.map(str::to_owned), epoch, until }
    }

    fn entry(at: i64, what: What) -> Entry {
        Entry { at: at * SECOND, node: 7, what }
    }

    fn call(at: i64, from: [u8; 4]) -> Entry {
        entry(at, What::Bmc { from: from.into(), user_agent: None, call: "POST On".into(), status: 204 })
    }

    fn command(at: i64, from: [u8; 4], epoch: u64, status: u16) -> Entry {
        let (name, epoch) = ("clean.execute_clean_step".to_owned(), Some(epoch));
        entry(at, What::Command { from: from.into(), name, id: None, epoch, status })
    }

    fn steps(at: i64) -> Vec<Entry> {
        let step = |step: String| {
            entry(at, What::Step { idempotent: step.contains("erase"), id: String::new(), step })
        };
        Agent::expected(StepKind::Clean).into_iter().map(step).collect()
    }

    /// Node 7: c1 works on it from 10 s on and dies at 15 s, c2 takes it over at 23 s.
    fn good() -> Record {
        let leases = vec![lease(10, Some("c1"), 1), lease(23, Some("c2"), 2), lease(30, None, 2)];
        let mut journal = vec![call(11, C1), command(12, C1, 1, 200), call(24, C2), command(25, C2, 2, 200)];
        journal.push(command(26, C1, 1, 412));
        journal.extend(steps(25));
        Record {
            journal,
            leases,
            names: BTreeMap::from([(C1.into(), "c1".to_owned()), (C2.into(), "c2".to_owned())]),
            asked: BTreeMap::from([(7, 1)]),
            deployed: BTreeSet::new(),
            arrived: BTreeMap::from([(7, Duration::from_secs(20))]),
            writes: vec![write(9, "c2", None), write(12, "c1", Some("c1")), write(25, "c2", Some("c2"))],
            disturbed_at: Some(15 * SECOND),
        }
    }

    fn write(at: i64, by: &str, holder: Option<&str>) -> NodeWrite {
        let (by, holder, state) = (by.to_owned(), holder.map(str::to_owned), "clean wait".to_owned());
        NodeWrite { at: at * SECOND, node: 7, by, holder, state }
    }

    fn verdict(change: impl FnOnce(&mut Record)) -> Verdict {
        let mut record = good();
        change(&mut record);
        let disturbance = Disturbance { at: 15 * SECOND, victim: "c1".to_owned(), replaced_at: None };
        judge(&record, Some(&disturbance), Some(Duration::from_secs(5)))
    }

    fn found(change: impl FnOnce(&mut Record), text: &str) {
        let verdict = verdict(change);
        assert!(verdict.violations.iter().any(|violation| violation.contains(text)), "{text}: {verdict}");
    }

    #[test]
    fn a_good_takeover_is_found_good() {
        let verdict = verdict(|_| {});
        assert!(verdict.violations.is_empty(), "{verdict}");
        assert_eq!((verdict.bereft, verdict.takeover), (1, Some(Duration::from_secs(8))));
        assert_eq!((verdict.calls, verdict.commands, verdict.refused, verdict.repeated), (2, 2, 1, 0));
    }

    #[test]
    fn calls_under_a_lost_lease_are_found() {
        found(|record| record.journal.push(call(24, C1)), "the lease is that of Some(\"c2\")");
        found(|record| record.leases[0].until = 10 * SECOND, "after its lease expired");
        found(|record| record.journal.push(call(31, C2)), "the lease is that of None");
        found(|record| record.journal.push(call(9, C1)), "without ever");
        found(|record| record.journal.push(call(11, [10, 99, 9, 9])), "no controller");
    }

    #[test]
    fn commands_under_a_lost_lease_are_found_unless_they_were_refused() {
        found(|record| record.journal.push(command(24, C1, 1, 200)), "does not have the lease");
        found(|record| record.journal.push(command(25, C2, 1, 200)), "its lease has 2");
    }

    #[test]
    fn writes_under_a_lost_lease_are_found() {
        found(|record| record.writes.push(write(26, "c1", Some("c2"))), "the lease is that of c2");
        found(|record| record.writes.push(write(31, "c1", None)), "2 writes without a lease for 1 requests");
        let request = verdict(|record| record.writes[0].holder = Some("c1".to_owned()));
        assert!(request.violations.is_empty(), "another controller took the lease meanwhile: {request}");
    }

    #[test]
    fn steps_that_run_again_or_not_at_all_are_found() {
        found(|record| record.journal.extend(steps(26)), "deploy.burnin_cpu is run again");
        found(
            |record| {
                record.journal.retain(
                    |entry| !matches!(&entry.what, What::Step { step, .. } if step.contains("verify")),
                )
            },
            "it ran",
        );
        let again = verdict(|record| record.journal.push(steps(26).swap_remove(1)));
        assert!(again.violations.is_empty() && again.repeated == 1, "{again}");
    }

    #[test]
    fn what_comes_too_late_is_found() {
        found(|record| record.arrived = BTreeMap::from([(7, Duration::from_secs(26))]), "late");
        found(|record| record.leases[1].at = 31 * SECOND, "takeover begins after 16s");
        found(|record| record.leases.truncate(1), "no controller took over");
    }

    #[test]
    fn a_process_of_the_same_name_takes_over_from_when_on_it_runs() {
        let mut record = good();
        record.leases = vec![lease(10, Some("c1"), 1), lease(16, Some("c1"), 1), lease(18, Some("c1"), 2)];
        let replaced = |from: i64| {
            let replaced_at = Some(from * SECOND);
            judge_one(&record, &Disturbance { at: 15 * SECOND, victim: "c1".to_owned(), replaced_at })
        };
        assert_eq!(replaced(17).takeover, Some(Duration::from_secs(3)), "not what the one before renewed");
        let late = replaced(19);
        assert!(late.takeover.is_none() && late.violations[0].contains("no controller took over"), "{late}");
    }

    #[test]
    fn a_deployment_has_other_steps_and_one_boot() {
        let mut record = good();
        record.deployed.insert(7);
        assert!(judge(&record, None, None).violations[0].contains("it ran"), "those of a cleaning");
        record.journal.push(entry(12, What::On { network: true }));
        record.journal.push(entry(28, What::On { network: false }));
        assert!(booted_again(&record).is_empty());
        record.journal.push(entry(13, What::On { network: true }));
        assert_eq!(booted_again(&record), ["node 7: it boots 2 times"]);
    }
}
