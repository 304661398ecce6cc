//! One round: nodes are enrolled and cleaned, and the clocks of their agents are read.

use crate::agent::Mark;
use crate::controller::Controller;
use crate::cpu;
use crate::fleet::Fleet;
use crate::operator::ensure_none_failed;
use crate::spread::Spread;
use anyhow::{Context, Result, ensure};
use room::Kind;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What a round is made of.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Which agents: an ironic-python-agent speaks nothing of Anneal's extension.
    pub kind: Kind,
    /// Nodes, each with an agent.
    pub agents: usize,
    /// Clean steps of each.
    pub steps: usize,
    /// The agents serve TLS.
    pub tls: bool,
    /// How long anything may take before the round is given up.
    pub limit: Duration,
}

/// What was measured. Times begin at the moment in which all agents, booted and looked up, sent their first
/// heartbeat.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Nodes.
    pub agents: usize,
    /// Steps of each.
    pub steps: usize,
    /// From the end of a step, as its agent saw it, to the arrival of the next one's command.
    pub gap: Spread,
    /// Until the last agent had ended its last step.
    pub last_step_s: f64,
    /// Until the last node was available: every result stored, the ramdisk stopped.
    pub available_s: f64,
    /// Processor time of the controller in that time.
    pub controller_cpu_s: f64,
    /// Processor time of this program, which plays the agents, in that time.
    pub agents_cpu_s: f64,
    /// Heartbeats that were sent.
    pub heartbeats: u64,
    /// Those that were not accepted.
    pub refused: u64,
    /// Heartbeats a second.
    pub heartbeats_per_s: f64,
}

/// While everything but the controller rests, its state is looked at this often.
const LOOK: Duration = Duration::from_millis(10);
/// Between two looks at nodes that boot, or fail.
const GLANCE: Duration = Duration::from_millis(500);

/// Runs a round against a controller that has no nodes, and leaves it without.
///
/// # Errors
/// When a node fails, or a step was not run exactly once and in its order.
pub async fn run(controller: &Controller, shape: Shape) -> Result<Round> {
    let operator = &controller.operator;
    let Shape { kind, agents, steps, tls, .. } = shape;
    let mut fleet = Fleet::new(controller.address, kind, agents, steps, tls).await?;
    let mut nodes = Vec::new();
    for agent in &fleet.agents {
        nodes.push(operator.enrol(&agent.mac).await?);
    }
    for (target, state) in [("manage", "manageable"), ("provide", "clean wait")] {
        for node in &nodes {
            operator.provision(node, target).await?;
        }
        let there = |node: &crate::operator::NodeView| {
            node.state == state && (node.waits_powered || target == "manage")
        };
        operator.until(state, shape.limit, GLANCE, there).await?;
    }
    fleet.look_up().await?;

    let used = || -> Result<[Duration; 2]> {
        Ok([cpu::of_group(controller.group())?, cpu::of_process(std::process::id())?])
    };
    let before = used()?;
    let begun = fleet.beat();
    tokio::select! {
        () = fleet.finished() => {}
        failed = watch(controller, shape.limit) => failed?,
    }
    operator.until("available", shape.limit, LOOK, |node| node.state == "available").await?;
    let available = begun.elapsed();
    let after = used()?;
    let sent = fleet.beats.sent.load(Ordering::Relaxed);

    let journals: Vec<Vec<Mark>> = fleet.agents.iter().map(|agent| agent.journal()).collect();
    for (agent, journal) in fleet.agents.iter().zip(&journals) {
        let ran: Vec<_> = journal.iter().map(|mark| mark.step.clone()).collect();
        ensure!(ran == agent.expected(), "agent {} ran {ran:?}", agent.mac);
    }
    for node in &nodes {
        operator.remove(node).await?;
    }
    let left: BTreeSet<_> = operator.nodes().await?.into_iter().map(|node| node.uuid).collect();
    ensure!(left.is_empty(), "nodes are left: {left:?}");

    let gaps = journals.iter().flat_map(|marks| marks.windows(2)).filter_map(|pair| match pair {
        [one, next] => Some(next.received.duration_since(one.ended)),
        _ => None,
    });
    let last = journals.iter().filter_map(|marks| marks.last()).map(|mark| mark.ended).max();
    let last = last.context("no step was run")?;
    let spent = |index: usize| after[index].saturating_sub(before[index]).as_secs_f64();
    Ok(Round {
        agents: shape.agents,
        steps: shape.steps,
        gap: Spread::of(gaps.collect()),
        last_step_s: last.duration_since(begun).as_secs_f64(),
        available_s: available.as_secs_f64(),
        controller_cpu_s: spent(0),
        agents_cpu_s: spent(1),
        heartbeats: sent,
        refused: fleet.beats.refused.load(Ordering::Relaxed),
        heartbeats_per_s: sent as f64 / available.as_secs_f64(),
    })
}

/// Ends when a node has failed, or time is up.
async fn watch(controller: &Controller, limit: Duration) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        tokio::time::sleep(4 * GLANCE).await;
        ensure_none_failed(&controller.operator.nodes().await?)?;
    }
    anyhow::bail!("the steps were not over within {} s", limit.as_secs())
}
