//! Ironic loses steps: its conductor killed while a step of its own runs in `cleaning`, started again, `manage`,
//! `provide`, and the node is available with `steps=[]`, nothing erased (measured, 05-experiments 2 and 3). The
//! same experiment with ours: every step runs, and only then the node is available.

use crate::controller::{Controller, Fault, Setup};
use crate::machine::{MAC, Machine};
use crate::operator::Operator;
use crate::play::REASON;
use anyhow::{Context, Result, bail, ensure};
use bench::agent::step;
use serde_json::{Value, json};
use std::path::Path;
use uuid::Uuid;

/// Its name.
pub const NAME: &str = "lost_step";
/// One line.
pub const ABOUT: &str =
    "Ironic's lost steps: killed in a step of the controller, then manage, provide: every step runs";

/// A step of the controller that is killed while it runs.
struct Killed {
    step: fn() -> Value,
    /// It may be repeated: the new controller goes on with it. Else the cleaning fails.
    goes_on: bool,
}

const ALL: [Killed; 2] = [
    Killed {
        step: || json!({ "interface": "management", "step": "fake_slow", "args": { "seconds": 2 } }),
        goes_on: true,
    },
    Killed {
        step: || {
            let raid = json!({ "logical_disks": [{ "size_gb": 1, "raid_level": "0" }] });
            json!({ "interface": "raid", "step": "create_configuration", "args": { "raid_config": raid } })
        },
        goes_on: false,
    },
];

/// The experiment with a step that may be repeated, and with one that may not.
///
/// # Errors
/// When a step is lost, or anything else does not go as it should.
pub fn all(setup: Setup<'_>, dir: &Path) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for killed in &ALL {
        let dir = dir.join(NAME).join(lines.len().to_string());
        std::fs::create_dir_all(&dir)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        lines.push(runtime.block_on(one(killed, setup, &dir)).with_context(|| dir.display().to_string())?);
    }
    Ok(lines)
}

async fn one(killed: &Killed, setup: Setup<'_>, dir: &Path) -> Result<String> {
    let (mut controller, operator) = if killed.goes_on {
        killed_while_it_is_seen_running(killed, setup, dir).await?
    } else {
        killed_between_its_begin_and_its_end(killed, setup, dir).await?
    };
    ensure!(controller.deaths == 1, "the controller was killed {} times", controller.deaths);
    // Ironic's documentation asks operators to do just this.
    operator.end_maintenance(&mut controller).await?;
    if !killed.goes_on {
        operator.say(&mut controller, "manage", &Value::Null).await?;
        operator.rest(&mut controller, "manageable").await?;
    }
    operator.say(&mut controller, "provide", &Value::Null).await?;
    let boots = |node: &Value| node["provision_state"] == "clean wait" && node["power_state"] == "power on";
    operator.until(&mut controller, "a node that boots", boots).await?;
    let steps = vec![step("first", 30), step("second", 20), step("last", 5)];
    let machine = Machine::new(controller.address, steps).await?;
    machine.boot();
    let node = operator.rest(&mut controller, "available").await?;
    let journal = machine.journal();
    ensure!(
        node["provision_state"] == "available",
        "the node is {}: {}",
        node["provision_state"],
        node["last_error"]
    );
    let expected = ["on, from the network", "ran deploy.first", "ran deploy.second", "ran deploy.last"];
    ensure!(journal == expected, "available, and the machine did {journal:?}");
    let labels = ["deploy.first", "deploy.second", "management.fake_reset", "deploy.last"];
    let texts = texts_from(&operator, &mut controller, "manageable -> cleaning: verb \"provide\"").await?;
    let place = |text: String| {
        texts.iter().position(|event| *event == text).with_context(|| format!("{text:?} is not in {texts:?}"))
    };
    let mut at = 0;
    for label in labels {
        let ended = place(format!("step {label} succeeded"))?;
        ensure!(ended > at, "{label} out of its turn: {texts:?}");
        at = ended;
    }
    let available =
        texts.iter().position(|event| event.contains("-> available")).context("no event of it")?;
    ensure!(available > at, "available before the last step had ended: {texts:?}");
    let step = (killed.step)();
    let label =
        format!("{}.{}", step["interface"].as_str().unwrap_or("?"), step["step"].as_str().unwrap_or("?"));
    let after =
        if killed.goes_on { "it went on by itself" } else { "clean failed with the true reason, manage" };
    Ok(format!(
        "killed in {label}: {after}; provide ran all {} steps, then the node was available",
        labels.len()
    ))
}

/// A step that goes on outside for a while.
async fn killed_while_it_is_seen_running(
    killed: &Killed,
    setup: Setup<'_>,
    dir: &Path,
) -> Result<(Controller, Operator)> {
    let (mut controller, operator) = cleaning(killed, setup, dir, None).await?;
    let runs = |node: &Value| node["clean_step"]["step"] == "fake_slow";
    operator.until(&mut controller, "the step to run", runs).await?;
    controller.kill().await?;
    let node = operator.node(&mut controller).await?;
    let is_cleaned = ["cleaning", "clean wait"].iter().any(|state| node["provision_state"] == *state);
    ensure!(is_cleaned, "after the kill the node is {}", node["provision_state"]);
    let node = operator.rest(&mut controller, "manageable").await?;
    ensure!(node["provision_state"] == "manageable", "{}", node["last_error"]);
    let texts = texts_from(&operator, &mut controller, "manageable -> cleaning").await?;
    ensure!(texts.iter().any(|event| event == "step management.fake_slow succeeded"), "{texts:?}");
    Ok((controller, operator))
}

/// A step that takes a moment: the controller dies after the write that stores its begin, or before the one that
/// stores its end. Either is looked for: the numbers of both may differ by one between runs, as writes of two
/// tasks may change places, and so a number alone can miss the step in every run.
async fn killed_between_its_begin_and_its_end(
    killed: &Killed,
    setup: Setup<'_>,
    dir: &Path,
) -> Result<(Controller, Operator)> {
    let faults = (1..).flat_map(|number| [true, false].map(|before| Fault { before, any: false, number }));
    for fault in faults {
        let dir = dir.join(fault.to_string().replace(':', "-"));
        std::fs::create_dir_all(&dir)?;
        let (mut controller, operator) = cleaning(killed, setup, &dir, Some(fault)).await?;
        let node = operator.rest(&mut controller, "manageable").await?;
        if node["last_error"].as_str().is_some_and(|why| why.ends_with(REASON)) {
            ensure!(node["provision_state"] == "clean failed", "{}", node["provision_state"]);
            return Ok((controller, operator));
        }
        ensure!(controller.deaths > 0, "no kill was seen to have interrupted the step");
    }
    bail!("no such write")
}

/// A node in the midst of a cleaning with this one step.
async fn cleaning(
    killed: &Killed,
    setup: Setup<'_>,
    dir: &Path,
    fault: Option<Fault>,
) -> Result<(Controller, Operator)> {
    let mut controller = Controller::start(setup, dir, fault).await?;
    let operator = Operator { uuid: Uuid::new_v4().to_string() };
    let node = json!({ "driver": "fake-hardware", "deploy_interface": "direct" });
    operator.enrol(&mut controller, node, MAC).await?;
    operator.say(&mut controller, "manage", &Value::Null).await?;
    operator.rest(&mut controller, "manageable").await?;
    operator.say(&mut controller, "clean", &json!({ "clean_steps": [(killed.step)()] })).await?;
    Ok((controller, operator))
}

/// The texts of the history from the event that begins with `from`.
async fn texts_from(operator: &Operator, controller: &mut Controller, from: &str) -> Result<Vec<String>> {
    let history = operator.history(controller).await?;
    let texts: Vec<_> =
        history.iter().filter_map(|event| event["event"].as_str()).map(str::to_owned).collect();
    let begun = texts.iter().position(|text| text.starts_with(from));
    let begun = begun.with_context(|| format!("{from:?} is not in {texts:?}"))?;
    Ok(texts[begun..].to_vec())
}
