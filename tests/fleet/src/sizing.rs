//! One controller from empty to all nodes available: how long it takes, and what it costs the controller.

use crate::behaviour::Behaviour;
use crate::fleet::{Fleet, Setup};
use crate::journal::Journal;
use crate::operator;
use anyhow::{Result, ensure};
use bench::cpu;
use bench::operator::Api;
use hostile::controller::Controller;
use hostile::memory::{MIB, resident};
use hostile::threads::apart;
use reqwest::Method;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Between two pages.
const PAUSE: Duration = Duration::from_millis(50);
/// Goals of issue 18, of 10,000 nodes: all of it …
const IN_ALL: Duration = Duration::from_secs(8 * 60);
/// … a node …
const PROCESSOR_MS: f64 = 20.0;
/// … and a page meanwhile.
const PAGE: Duration = Duration::from_millis(50);

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The `anneal-controller`.
    pub program: PathBuf,
    /// Nodes.
    pub nodes: u32,
    /// How they behave.
    pub behaviour: Behaviour,
    /// What happens by chance.
    pub seed: u64,
    /// How long everything may take.
    pub limit: Duration,
}

/// A part of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    /// What the nodes were asked for, and where they were at the end.
    pub name: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// Processor time of the controller, per node.
    pub processor_ms: f64,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Nodes.
    pub nodes: u32,
    /// Processors of this machine.
    pub processors: usize,
    /// Its load in the minute before, from `/proc/loadavg`.
    pub load_before: String,
    /// One after the other.
    pub phases: Vec<Phase>,
    /// Pages of 100 nodes that were read meanwhile.
    pub pages: usize,
    /// 99 of 100 of these were answered within this time.
    pub page_p99_ms: f64,
    /// Most resident bytes of the controller.
    pub most_resident: u64,
    /// Resident bytes at the end.
    pub resident: u64,
    /// Processor time of this program, which plays the nodes, per node.
    pub simulator_ms: f64,
}

/// What the phases are: the verb, and where it ends.
const PHASES: [(&str, &str, &str); 3] = [
    ("verify", "manage", "manageable"),
    ("inspect", "inspect", "manageable"),
    ("clean", "provide", "available"),
];

/// Runs a controller in `dir` and takes the nodes through all phases.
///
/// # Errors
/// When a node fails, or time is up.
pub async fn run(shape: &Shape, dir: &Path) -> Result<Report> {
    let load_before = std::fs::read_to_string("/proc/loadavg")?.trim().to_owned();
    let controller = Arc::new(Controller::start(&shape.program, dir, false).await?);
    let setup = Setup::on_loopback(shape.nodes, shape.behaviour.clone(), controller.ports.boot);
    let fleet = Fleet::start(setup, Journal::Nowhere, shape.seed).await?;
    let waits = Arc::<Mutex<Vec<Duration>>>::default();
    let most = Arc::<Mutex<u64>>::default();
    let mut alongside = JoinSet::new();
    alongside.spawn(apart(look_on(controller.clone(), waits.clone(), most.clone())));
    let (pid, nodes) = (controller.pid(), f64::from(shape.nodes.max(1)));
    let mut phases = Vec::new();
    let clock = || -> Result<(Instant, Duration)> { Ok((Instant::now(), cpu::of_process(pid)?)) };
    let phase = |name, begun: (Instant, Duration)| -> Result<Phase> {
        let processor = cpu::of_process(pid)?.saturating_sub(begun.1);
        Ok(Phase {
            name,
            seconds: begun.0.elapsed().as_secs_f64(),
            processor_ms: processor.as_secs_f64() * 1000.0 / nodes,
        })
    };
    let begun = clock()?;
    operator::enrol(&controller.operator, &fleet).await?;
    phases.push(phase("enrol", begun)?);
    for (name, verb, state) in PHASES {
        let begun = clock()?;
        operator::ask(&controller.operator, (0..shape.nodes).collect(), verb).await?;
        operator::reach(&controller.operator, state, shape.limit).await?;
        phases.push(phase(name, begun)?);
    }
    if let Some(ended) = alongside.try_join_next() {
        ended??;
    }
    drop(alongside);
    let mut waits = std::mem::take(&mut *room::held(&waits));
    waits.sort_unstable();
    let p99 = waits.get((waits.len() * 99).div_ceil(100).max(1) - 1).copied().unwrap_or_default();
    let most_resident = *room::held(&most);
    Ok(Report {
        nodes: shape.nodes,
        processors: std::thread::available_parallelism()?.get(),
        load_before,
        phases,
        pages: waits.len(),
        page_p99_ms: p99.as_secs_f64() * 1000.0,
        most_resident,
        resident: resident(pid)?,
        simulator_ms: cpu::of_process(std::process::id())?.as_secs_f64() * 1000.0 / nodes,
    })
}

/// An operator who looks at a page of 100 nodes again and again, and at the memory of the controller.
async fn look_on(
    controller: Arc<Controller>,
    waits: Arc<Mutex<Vec<Duration>>>,
    most: Arc<Mutex<u64>>,
) -> Result<()> {
    let api: &Api = &controller.api;
    loop {
        let begun = Instant::now();
        let (status, body) = api.send(&Method::GET, "/v1/nodes?limit=100", None).await?;
        ensure!(status.is_success(), "a page: {status} {body}");
        room::held(&waits).push(begun.elapsed());
        let now = resident(controller.pid())?;
        {
            let mut most = room::held(&most);
            *most = (*most).max(now);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Report {
    /// From the first enrolment until the last node is available.
    pub fn in_all(&self) -> Duration {
        Duration::from_secs_f64(self.phases.iter().map(|phase| phase.seconds).sum())
    }

    /// Processor time of the controller per node, in all.
    pub fn processor_ms(&self) -> f64 {
        self.phases.iter().map(|phase| phase.processor_ms).sum()
    }

    /// The goals that are missed.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.in_all() >= IN_ALL {
            missed.push(format!(
                "{:.0} s in all; goal: below {}",
                self.in_all().as_secs_f64(),
                IN_ALL.as_secs()
            ));
        }
        if self.processor_ms() > PROCESSOR_MS {
            missed.push(format!(
                "{:.1} ms of processor a node; goal: at most {PROCESSOR_MS}",
                self.processor_ms()
            ));
        }
        if self.page_p99_ms >= PAGE.as_secs_f64() * 1000.0 {
            missed.push(format!(
                "a page in {:.1} ms (p99); goal: below {}",
                self.page_p99_ms,
                PAGE.as_millis()
            ));
        }
        missed
    }

    /// Writes all numbers as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(std::fs::write(path, serde_json::to_vec_pretty(self)?)?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / MIB as f64;
        writeln!(
            f,
            "{} nodes, {} processors, load before: {}",
            self.nodes, self.processors, self.load_before
        )?;
        writeln!(f, "| | time | processor of the controller, per node |")?;
        writeln!(f, "|---|---|---|")?;
        for Phase { name, seconds, processor_ms } in &self.phases {
            writeln!(f, "| {name} | {seconds:.1} s | {processor_ms:.2} ms |")?;
        }
        let in_all = self.in_all().as_secs_f64();
        writeln!(f, "| in all | {in_all:.1} s | {:.2} ms |", self.processor_ms())?;
        writeln!(
            f,
            "page of 100 nodes meanwhile: p99 {:.1} ms of {}; resident: at most {:.0} MiB, {:.0} MiB at the end; the simulator: \
             {:.1} ms of processor a node",
            self.page_p99_ms,
            self.pages,
            mib(self.most_resident),
            mib(self.resident),
            self.simulator_ms
        )
    }
}
