//! Plays a story once, with or without a kill.

use crate::controller::{Controller, Fault, Setup};
use crate::machine::Machine;
use crate::operator::Operator;
use crate::story::Story;
use agent_protocol::step::Step;
use anyhow::{Context, Result, ensure};
use bench::agent::step;
use serde_json::Value;
use std::path::Path;
use uuid::Uuid;

/// How a story went.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    /// The node at the end.
    pub node: Value,
    /// Its history.
    pub history: Vec<Value>,
    /// What the machine did.
    pub journal: Vec<String>,
    /// The controller died.
    pub died: bool,
    /// Why a run failed that was interrupted in a step that may not be repeated.
    pub interrupted: Option<String>,
}

/// What a run says that was interrupted in such a step.
pub const REASON: &str = "the controller was interrupted in the middle of the step, and the step does not say that it may be repeated";

/// Plays `story` in `dir`.
///
/// # Errors
/// When it does not end as it should.
pub async fn play(story: &Story, setup: Setup<'_>, dir: &Path, fault: Option<Fault>) -> Result<RunRecord> {
    let mut controller = Controller::start(setup, dir, fault).await?;
    let reboots = Step { reboot_requested: true, ..step("reboots", 20) };
    let steps = vec![step("first", 30), reboots, step("last", 10)];
    let machine = Machine::new(controller.address, steps).await?;
    let operator = Operator { uuid: Uuid::new_v4().to_string() };
    let mut node = (story.node)();
    if story.has_machine {
        node["driver_info"] = machine.driver_info();
    }
    operator.enrol(&mut controller, node, crate::machine::MAC).await.context("enrol")?;
    let acts = (story.acts)();
    let mut interrupted = None;
    let mut next = 0;
    while let Some(act) = acts.get(next) {
        operator.say(&mut controller, act.target, &act.more).await?;
        let node = operator
            .rest(&mut controller, act.rest)
            .await
            .with_context(|| format!("after {}", act.target))?;
        if node["provision_state"] == act.rest {
            next += 1;
            continue;
        }
        let why = node["last_error"].as_str().unwrap_or_default();
        let allowed = story.fragile.iter().any(|step| why.contains(&format!(" step {step} failed ")));
        ensure!(
            allowed && why.ends_with(REASON) && interrupted.is_none() && controller.deaths == 1,
            "after {}: {}: {why:?}",
            act.target,
            node["provision_state"]
        );
        interrupted = Some(why.to_owned());
        // As the documentation asks of operators: see what the step did, then begin the cleaning anew.
        operator.end_maintenance(&mut controller).await?;
        operator.say(&mut controller, "manage", &Value::Null).await?;
        operator.rest(&mut controller, "manageable").await?;
    }
    // Once more: the last write may be the one that it dies of.
    let node = operator.rest(&mut controller, acts.last().map_or("enroll", |act| act.rest)).await?;
    let history = operator.history(&mut controller).await?;
    let died = controller.deaths > 0;
    Ok(RunRecord { node, history, journal: machine.journal(), died, interrupted })
}
