//! What an operator does with a fleet: enrol it, ask for verbs, see where it is.

use crate::fleet::Fleet;
use crate::network::{mac, number_of};
use anyhow::{Context, Result, bail, ensure};
use bench::operator::Operator;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Requests at a time.
const AT_ONCE: usize = 16;
/// Between two looks at all nodes.
const LOOK: Duration = Duration::from_millis(500);
/// Nodes of one page.
const PAGE: usize = 1000;

/// Does `work` for these numbers, [`AT_ONCE`] at a time.
///
/// # Errors
/// The first.
pub async fn each<F>(numbers: Vec<u32>, work: impl Fn(u32) -> F + Clone + Send + 'static) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (next, numbers) = (Arc::new(AtomicU32::new(0)), Arc::new(numbers));
    let mut workers = JoinSet::<Result<()>>::new();
    for _ in 0..AT_ONCE {
        let (next, numbers, work) = (next.clone(), numbers.clone(), work.clone());
        workers.spawn(async move {
            loop {
                let index = usize::try_from(next.fetch_add(1, Ordering::Relaxed))?;
                let Some(number) = numbers.get(index) else { return Ok(()) };
                work(*number).await.with_context(|| format!("node {number}"))?;
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Enrols all nodes of a fleet.
///
/// # Errors
/// When the controller refuses one.
pub async fn enrol(operator: &Operator, fleet: &Fleet) -> Result<()> {
    let bodies = (0..fleet.shared.setup.nodes).map(|number| fleet.enrolment(number)).collect();
    enrol_as(operator, bodies).await
}

/// Enrols nodes by these bodies of `POST /v1/nodes`, the first as number 0.
///
/// # Errors
/// When the controller refuses one.
pub async fn enrol_as(operator: &Operator, bodies: Vec<Value>) -> Result<()> {
    let numbers = (0..u32::try_from(bodies.len())?).collect();
    let (operator, bodies) = (operator.clone(), Arc::new(bodies));
    each(numbers, move |number| {
        let (operator, bodies) = (operator.clone(), bodies.clone());
        async move {
            let body = bodies.get(usize::try_from(number)?).context("a body")?;
            operator.enrol_as(body, &mac(number)).await.map(drop)
        }
    })
    .await
}

/// Asks for a provision target of these nodes.
///
/// # Errors
/// When the controller refuses one.
pub async fn ask(operator: &Operator, numbers: Vec<u32>, target: &'static str) -> Result<()> {
    let operator = operator.clone();
    each(numbers, move |number| {
        let operator = operator.clone();
        async move { operator.provision(&crate::network::uuid(number).to_string(), target).await }
    })
    .await
}

/// Gives these nodes an image, and lets them become available without a cleaning.
///
/// # Errors
/// When the controller refuses one.
pub async fn give_image(operator: &Operator, numbers: Vec<u32>, url: &str, sha256: &str) -> Result<()> {
    let image = json!({ "image_source": url, "image_os_hash_algo": "sha256", "image_os_hash_value": sha256 });
    let patch = Arc::new(json!([
        { "op": "add", "path": "/instance_info", "value": image },
        { "op": "add", "path": "/automated_clean", "value": false },
    ]));
    let operator = operator.clone();
    each(numbers, move |number| {
        let (operator, patch) = (operator.clone(), patch.clone());
        async move {
            let path = format!("/v1/nodes/{}", crate::network::uuid(number));
            operator.call(Method::PATCH, &path, Some(&patch)).await.map(drop)
        }
    })
    .await
}

/// Waits until all nodes are in this state.
///
/// # Errors
/// When one fails, or time is up.
pub async fn reach(operator: &Operator, state: &str, limit: Duration) -> Result<()> {
    let begun = Instant::now();
    loop {
        // What nodes are in is counted from an index. To list all of them again and again would be most of what a controller does.
        let counts = counts(&operator.call(Method::GET, "/v1/anneal/fleet", None).await?)?;
        if counts.keys().any(|of| has_failed(of)) {
            // Names the node.
            states(operator).await?;
        }
        let missing: u64 = counts.iter().filter(|(of, _)| *of != state).map(|(_, nodes)| nodes).sum();
        if missing == 0 {
            return Ok(());
        }
        ensure!(begun.elapsed() < limit, "{missing} nodes are not {state} within {limit:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// How many nodes are in which provision state, of the answer of `GET /v1/anneal/fleet`.
fn counts(fleet: &Value) -> Result<BTreeMap<String, u64>> {
    let values = fleet["counts"]["provision_state"].as_array().context("counts by provision_state")?;
    let count = |one: &Value| Some((one["value"].as_str()?.to_owned(), one["count"].as_u64()?));
    let counts: Option<BTreeMap<_, _>> = values.iter().map(count).collect();
    let counts = counts.context("a state and how many nodes are in it")?;
    ensure!(Some(counts.values().sum()) == fleet["nodes"].as_u64(), "some nodes are not counted: {fleet}");
    Ok(counts)
}

fn has_failed(state: &str) -> bool {
    state.ends_with("failed") || state == "error"
}

/// The provision state of every node of the fleet.
///
/// # Errors
/// When they cannot be listed, or one has failed.
pub async fn states(operator: &Operator) -> Result<BTreeMap<u32, String>> {
    let (mut states, mut marker) = (BTreeMap::new(), String::new());
    loop {
        let path = format!("/v1/nodes?limit={PAGE}&fields=uuid,provision_state,last_error{marker}");
        let body = operator.call(Method::GET, &path, None).await?;
        let nodes = body["nodes"].as_array().context("a list of nodes")?;
        for node in nodes {
            let (uuid, state) = (node["uuid"].as_str(), node["provision_state"].as_str());
            let (uuid, state) = (uuid.context("a UUID")?, state.context("a state")?);
            if has_failed(state) {
                bail!("node {uuid} is {state}: {}", node["last_error"]);
            }
            if let Some(number) = number_of(uuid) {
                states.insert(number, state.to_owned());
            }
        }
        let Some(last) = nodes.last().filter(|_| nodes.len() == PAGE) else { return Ok(states) };
        let next = format!("&marker={}", last["uuid"].as_str().unwrap_or_default());
        ensure!(next != marker, "the list of nodes does not end");
        marker = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_nodes_are_counted_or_none() {
        let fleet = |nodes: u64| {
            let states =
                json!([{ "value": "available", "count": 3 }, { "value": "clean failed", "count": 1 }]);
            json!({ "nodes": nodes, "counts": { "provision_state": states } })
        };
        let expected = [("available".to_owned(), 3), ("clean failed".to_owned(), 1)];
        assert_eq!(counts(&fleet(4)).unwrap(), expected.into());
        assert!(counts(&fleet(5)).is_err() && counts(&json!({})).is_err());
        assert!(has_failed("clean failed") && has_failed("error") && !has_failed("available"));
    }
}
