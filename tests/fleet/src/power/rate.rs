//! How many power states a controller reads in a second when nodes are always due, next to a client that does nothing else.

use super::ipmi::Sims;
use super::redfish::Reader;
use super::{Shape, controller};
use crate::behaviour::Behaviour;
use crate::fleet::{Fleet, Setup};
use crate::journal::Journal;
use crate::operator;
use anyhow::{Context, Result, ensure};
use bench::cpu;
use hostile::controller::Controller;
use serde::Serialize;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use tokio::task::JoinSet;

/// The shortest period that there is, in seconds.
const ALWAYS: u32 = 1;
/// Readings of the bare client at a time, for each processor.
const AT_ONCE: usize = 8;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Of the nodes.
    pub driver: &'static str,
    /// Nodes.
    pub nodes: u32,
    /// Readings of the controller, which were counted by itself.
    pub per_second: f64,
    /// Processor time of the controller, and of the programs that it runs, by readings.
    pub processor_ms: f64,
    /// Readings of a client that does nothing else.
    pub limit: f64,
}

/// Of Redfish nodes, each with an address of its own, over HTTPS.
///
/// # Errors
/// When a node or a reading fails, or time is up.
pub async fn of_redfish(shape: &Shape, dir: &Path) -> Result<Report> {
    let controller = controller(shape, dir, ALWAYS).await?;
    let setup = Setup {
        bmc_tls: true,
        ..Setup::on_loopback(shape.redfish, Behaviour::default(), controller.ports.boot)
    };
    let fleet = Fleet::start(setup, Journal::Nowhere, shape.seed).await?;
    operator::enrol(&controller.operator, &fleet).await?;
    let rate = reached("redfish", shape.redfish, controller, shape).await?;
    let reader = Arc::new(Reader::new(&fleet)?);
    let limit = bare(shape, shape.redfish, move |number| {
        let reader = reader.clone();
        async move { reader.read(number).await }
    });
    Ok(Report::of("redfish", shape.redfish, rate, limit.await?))
}

/// Of IPMI nodes that share some simulators.
///
/// # Errors
/// When a node or a reading fails, or time is up.
pub async fn of_ipmi(shape: &Shape, dir: &Path) -> Result<Report> {
    let sims = Arc::new(Sims::start(dir).await?);
    let controller = controller(shape, dir, ALWAYS).await?;
    let bodies: Result<Vec<Value>> = (0..shape.ipmi).map(|number| sims.enrolment(number)).collect();
    operator::enrol_as(&controller.operator, bodies?).await?;
    let rate = reached("ipmi", shape.ipmi, controller, shape).await?;
    let limit = bare(shape, shape.ipmi, move |number| {
        let sims = sims.clone();
        async move { sims.read(number).await }
    });
    Ok(Report::of("ipmi", shape.ipmi, rate, limit.await?))
}

impl Report {
    fn of(driver: &'static str, nodes: u32, rate: Rate, limit: f64) -> Self {
        Self { driver, nodes, per_second: rate.per_second, processor_ms: rate.processor_ms, limit }
    }
}

/// What a controller reached.
struct Rate {
    per_second: f64,
    processor_ms: f64,
}

/// What the controller reaches with nodes that are enrolled; it is stopped then.
async fn reached(driver: &str, nodes: u32, controller: Controller, shape: &Shape) -> Result<Rate> {
    operator::ask(&controller.operator, (0..nodes).collect(), "manage").await?;
    operator::reach(&controller.operator, "manageable", shape.limit).await?;
    let (pid, metrics) = (controller.pid(), controller.ports.operators);
    let before = (Calls::of(driver, metrics).await?, cpu::of_family(pid)?, Instant::now());
    tokio::time::sleep(shape.span).await;
    let seconds = before.2.elapsed().as_secs_f64();
    let (calls, used) = (Calls::of(driver, metrics).await?, cpu::of_family(pid)?);
    ensure!(calls.failed == before.0.failed, "{driver}: {} readings failed", calls.failed - before.0.failed);
    let readings = (calls.done - before.0.done) as f64;
    ensure!(readings > 0.0, "{driver}: no power state was read within {seconds:.0} s");
    let processor_ms = used.saturating_sub(before.1).as_secs_f64() * 1000.0 / readings;
    Ok(Rate { per_second: readings / seconds, processor_ms })
}

/// Calls of BMCs, as the controller has counted them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Calls {
    done: u64,
    failed: u64,
}

impl Calls {
    async fn of(driver: &str, at: SocketAddr) -> Result<Self> {
        let answer = reqwest::get(format!("http://{at}/metrics")).await?.error_for_status()?;
        Self::parse(&answer.text().await?, driver).with_context(|| format!("calls of {driver} in /metrics"))
    }

    /// Of the text format of Prometheus. `None`: it has no such series.
    fn parse(text: &str, driver: &str) -> Option<Self> {
        let series = format!("anneal_bmc_calls_total{{driver=\"{driver}\",outcome=\"");
        let mut calls = None;
        for line in text.lines() {
            let Some((outcome, value)) = line.strip_prefix(&series).and_then(|rest| rest.split_once("\"} "))
            else {
                continue;
            };
            let calls = calls.get_or_insert_with(Self::default);
            let value: u64 = value.parse().ok()?;
            match outcome {
                "ok" => calls.done += value,
                _ => calls.failed += value,
            }
        }
        calls
    }
}

/// Readings in a second of a client that reads one node after the other.
async fn bare<F>(shape: &Shape, nodes: u32, read: impl Fn(u32) -> F + Clone + Send + 'static) -> Result<f64>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let next = Arc::new(AtomicU32::new(0));
    let (begun, span) = (Instant::now(), shape.span);
    let mut readers = JoinSet::<Result<u64>>::new();
    for _ in 0..AT_ONCE * std::thread::available_parallelism()?.get() {
        let (next, read) = (next.clone(), read.clone());
        readers.spawn(async move {
            let mut readings = 0;
            while begun.elapsed() < span {
                read(next.fetch_add(1, Ordering::Relaxed) % nodes).await?;
                readings += 1;
            }
            Ok(readings)
        });
    }
    let mut readings = 0;
    while let Some(ended) = readers.join_next().await {
        readings += ended??;
    }
    Ok(readings as f64 / begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_driver_are_counted_by_their_outcome() {
        let text = "# TYPE anneal_bmc_calls_total counter\n\
                    anneal_bmc_calls_total{driver=\"ipmi\",outcome=\"failed\"} 1\n\
                    anneal_bmc_calls_total{driver=\"ipmi\",outcome=\"ok\"} 40\n\
                    anneal_bmc_calls_total{driver=\"ipmi\",outcome=\"unreachable\"} 2\n\
                    anneal_bmc_calls_total{driver=\"redfish\",outcome=\"ok\"} 500\n";
        assert_eq!(Calls::parse(text, "ipmi"), Some(Calls { done: 40, failed: 3 }));
        assert_eq!(Calls::parse(text, "redfish"), Some(Calls { done: 500, failed: 0 }));
        assert_eq!(Calls::parse(text, "fake-hardware"), None);
    }
}
