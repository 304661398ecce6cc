//! Agents that report an erase that nothing shows. Their nodes never become available.

use crate::controller::Controller;
use crate::machines::{Machine, States, beat};
use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

/// What the agents report of their erases.
pub const LIES: [&str; 6] =
    ["nothing", "no disk", "a disk that was not read", "half a disk", "an unknown method", "30 MB"];

/// How often each lie was found out.
pub type Found = Mutex<BTreeMap<&'static str, u64>>;

/// The report that a lie is.
fn report(machine: &Machine, lie: usize) -> Value {
    let mut report = machine.report();
    let disk = &mut report["disks"][0];
    match lie % LIES.len() {
        0 => return Value::Null,
        1 => return json!({ "disks": [] }),
        2 => disk["verification"]["bytes_read"] = json!(0),
        3 => disk["verification"]["bytes_read"] = json!(1 << 29),
        4 => disk["method"] = json!("wished-away"),
        _ => disk["model"] = json!("x".repeat(30 << 20)),
    }
    report
}

/// Cleans the machine with a lying agent, again and again, until it is dropped.
///
/// # Errors
/// When its node becomes available, or the controller refuses a request.
pub async fn run(
    machine: Machine,
    lie: usize,
    controller: Arc<Controller>,
    mut states: States,
    found: Arc<Found>,
) -> Result<()> {
    let name = LIES[lie % LIES.len()];
    loop {
        let what = || format!("lying agent of node {} ({name})", machine.uuid);
        reached(&mut states, &machine.uuid, &["manageable"]).await.with_context(what)?;
        controller.operator.provision(&machine.uuid, "provide").await.with_context(what)?;
        reached(&mut states, &machine.uuid, &["clean wait"]).await.with_context(what)?;
        let mut tasks = JoinSet::new();
        let heart = machine.boot(&controller, report(&machine, lie), &mut tasks).await.with_context(what)?;
        tasks.spawn(beat(heart));
        let state = reached(&mut states, &machine.uuid, &["clean failed", "available"]).await;
        let state = state.with_context(what)?;
        ensure!(state == "clean failed", "{}: it is {state}", what());
        *room::held(&found).entry(name).or_default() += 1;
        let path = format!("/v1/nodes/{}/maintenance", machine.uuid);
        let (status, answer) = controller.api.send(&Method::DELETE, &path, None).await?;
        ensure!(status == 202, "{}: {status} {answer}", what());
        controller.operator.provision(&machine.uuid, "manage").await.with_context(what)?;
    }
}

/// Waits for one of these states; there is no limit, since what a lying agent holds up is its own node.
async fn reached(states: &mut States, uuid: &str, wanted: &[&str]) -> Result<String> {
    let states = states
        .wait_for(|states| states.get(uuid).is_some_and(|node| wanted.contains(&node.state.as_str())))
        .await?;
    Ok(states.get(uuid).map(|node| node.state.clone()).unwrap_or_default())
}
