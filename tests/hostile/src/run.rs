//! One run: everything is started, works for a while, and is counted.

use crate::controller::Controller;
use crate::desk::{self, Waits};
use crate::held::{self, Open};
use crate::machines::{self, Machine, States};
use crate::memory::{resident, settled};
use crate::report::{GROWTH, Report};
use crate::strangers::{self, ADDRESSES, Sent};
use crate::targets::Targets;
use crate::threads::apart;
use crate::{liars, silent};
use anyhow::{Context, Result, bail};
use bench::cpu;
use bench::operator::NodeView;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// For enrolling.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The `anneal-controller`.
    pub program: PathBuf,
    /// Keep the controller on the first processor.
    pub pinned: bool,
    /// How long the nodes are cleaned before the hostile clients come, at least.
    pub peace: Duration,
    /// How long hostile clients work at least. They go on until every node has arrived.
    pub lasts: Duration,
    /// How long the memory may take to be given back.
    pub patience: Duration,
    /// Honest nodes.
    pub nodes: u16,
    /// Nodes with lying agents.
    pub liars: u16,
    /// Nodes with silent BMCs.
    pub silent: u16,
    /// Requests of strangers per second, all together.
    pub requests_per_s: f64,
    /// Connections that strangers try to hold.
    pub held: usize,
    /// Seed of what strangers send.
    pub seed: u64,
}

/// Runs a controller in `dir` and everything against it.
///
/// # Errors
/// When a node does not arrive, a lying agent's node does, or the controller ends.
pub async fn run(shape: &Shape, dir: &Path) -> Result<Report> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let controller = Arc::new(Controller::start(&shape.program, dir, shape.pinned).await?);
    let pid = controller.pid();
    let mut machines = Vec::new();
    for number in 0..shape.nodes + shape.liars {
        machines.push(Machine::enrol(number, &controller).await?);
    }
    let known = machines.iter().map(|machine| (machine.uuid.clone(), machine.mac.clone())).collect();
    let targets = Arc::new(Targets::new(known));
    let manageable = |node: &NodeView| node.state == "manageable";
    controller.operator.until("manageable", PATIENCE, Duration::from_millis(200), manageable).await?;
    let (sent, open, waits) = (Arc::<Sent>::default(), Arc::<Open>::default(), Arc::<Waits>::default());
    let (states, looking) = desk::watch(controller.clone(), waits.clone());
    let mut others = JoinSet::new();
    others.spawn(apart(looking));
    let (bad, good) = (machines.split_off(shape.nodes.into()), machines);
    in_peace(&good, Instant::now() + shape.peace, &controller, &states).await?;
    waits.forget();
    let before = (resident(pid)?, cpu::of_process(pid)?);

    let mut hostile = JoinSet::new();
    for number in 0..ADDRESSES {
        let number = u8::try_from(number)?;
        // Half of them stay below the allowance of an address (10/s), half exceed it.
        let share = if number % 2 == 0 { 0.7 } else { 1.3 };
        let per_s = shape.requests_per_s / f64::from(ADDRESSES) * share;
        let (ports, targets) = (controller.ports.clone(), targets.clone());
        hostile.spawn(strangers::run(number, per_s, shape.seed, ports, targets, sent.clone(), open.clone()));
    }
    for number in 0..shape.held {
        hostile.spawn(held::run(number, controller.ports.clone(), open.clone()));
    }

    let begun = Instant::now();
    let first = good.first().context("no node")?.uuid.clone();
    others.spawn(apart(desk::work(controller.clone(), first, waits.clone())));
    for number in 0..shape.silent {
        others.spawn(silent::run(number, controller.clone(), states.clone()));
    }
    let found = Arc::<liars::Found>::default();
    let mut honest = JoinSet::new();
    let until = begun + shape.lasts;
    for machine in good {
        honest.spawn(machines::clean(machine, controller.clone(), states.clone(), until));
    }
    for (lie, machine) in bad.into_iter().enumerate() {
        others.spawn(liars::run(machine, lie, controller.clone(), states.clone(), found.clone()));
    }
    let mut report = watch(&mut honest, &mut others, &open, pid).await?;
    report.lasted = begun.elapsed();
    report.answered = sent.answered.load(Ordering::Relaxed);
    report.closed = sent.closed.load(Ordering::Relaxed);
    report.processor = cpu::of_process(pid)?.saturating_sub(before.1);
    report.by = sent.table();
    report.waits = waits.all();
    report.waits.sort_unstable();
    report.lies = room::held(&found).clone();
    (report.liars, report.silent) = (shape.liars.into(), shape.silent.into());
    drop((hostile, others));
    let [_, most, _] = report.resident;
    report.resident = [before.0, most, settled(pid, before.0 + GROWTH, shape.patience).await?];
    Ok(report)
}

/// Cleans the machines until `until`, so that what is resident before the hostile clients come is what the work needs.
async fn in_peace(
    machines: &[Machine],
    until: Instant,
    controller: &Arc<Controller>,
    states: &States,
) -> Result<()> {
    let mut once = JoinSet::new();
    for machine in machines {
        once.spawn(machines::clean(machine.clone(), controller.clone(), states.clone(), until));
    }
    while let Some(cleaned) = once.join_next().await {
        cleaned??;
    }
    Ok(())
}

/// Looks on, each second, until every honest node has arrived.
async fn watch(
    honest: &mut JoinSet<Result<(usize, Duration)>>,
    others: &mut JoinSet<Result<()>>,
    open: &Open,
    pid: u32,
) -> Result<Report> {
    let mut report = Report::default();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = second.tick() => {
                report.held.push(open.now());
                report.resident[1] = report.resident[1].max(resident(pid).context("the controller ended")?);
            }
            arrived = honest.join_next() => match arrived {
                None => break,
                Some(arrived) => {
                    let (rounds, longest) = arrived??;
                    report.rounds.push(rounds);
                    report.longest = report.longest.max(longest);
                }
            },
            Some(ended) = others.join_next() => {
                ended??;
                bail!("what was to work until the end has ended");
            }
        }
    }
    // In the first seconds connections are still being made.
    report.held.drain(..report.held.len().min(5));
    Ok(report)
}
