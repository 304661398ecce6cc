//! Three controllers on one PostgreSQL, from whose caches nodes fetch an image. When each node has half of it, a controller is killed: its
//! nodes must get the rest from the others, and every node must be deployed.

use crate::behaviour::Behaviour;
use crate::fetches::Fetches;
use crate::images::{Image, all_there};
use crate::journal::What;
use crate::network::number_of;
use crate::operator;
use crate::rounds::place::{self, Place};
use anyhow::{Context, Result, anyhow};
use bench::operator::Operator;
use lab::net::Netns;
use reqwest::Method;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(180);
/// Of the mirror: an address of the namespace "room" that no node has.
const MIRROR: Ipv4Addr = Ipv4Addr::new(10, 127, 255, 1);
/// Tables of each controller's configuration.
const SETTINGS: &str = "[images]\ncache = true\ncache_min_free_mib = 0\n";

/// What happens.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Nodes.
    pub nodes: u32,
    /// Bytes of the image. Half of it is more than sockets hold.
    pub bytes: usize,
    /// What the image is made of, and what happens by chance.
    pub seed: u64,
}

/// What came of it, when every node is active and got every byte of the image.
#[derive(Debug)]
pub struct Outcome {
    /// The controller that was killed.
    pub victim: String,
    /// How many nodes it drove then.
    pub bereft: usize,
    /// Fetches in which a try failed.
    pub broken: usize,
    /// How often each node began to write the image.
    pub begun: BTreeMap<u32, usize>,
}

/// Kills a controller that runs `program` in the middle of an image. Needs root.
///
/// # Errors
/// When something cannot be started, or a node fails or does not arrive.
pub fn run(program: &Path, shape: &Shape) -> Result<Outcome> {
    place::inside(|room| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outcome = runtime.block_on(one(room, program, shape));
        // Where a node failed, the others wait for it.
        runtime.shutdown_background();
        outcome
    })
}

async fn one(room: &Netns, program: &Path, shape: &Shape) -> Result<Outcome> {
    let dir = tempfile::tempdir()?;
    let image = Image::serve(dir.path(), MIRROR, shape.bytes, shape.seed)?;
    let mut place = Place::start(room, program, SETTINGS, shape.nodes, Behaviour::default()).await?;
    let outcome = take_over(&mut place, shape, &image).await;
    if outcome.is_err() {
        println!("the logs of the controllers are in {}", place.keep().display());
    }
    outcome
}

async fn take_over(place: &mut Place, shape: &Shape, image: &Image) -> Result<Outcome> {
    let fetches = Arc::new(Fetches::by_halves(image.content.clone(), usize::try_from(shape.nodes)?));
    place.fleet.shared.fetches.set(fetches.clone()).map_err(|_| anyhow!("the fleet has other fetches"))?;
    let (operator, numbers) = (place.controllers[0].operator.clone(), (0..shape.nodes).collect::<Vec<_>>());
    operator::give_image(&operator, numbers.clone(), &image.url, &image.sha256).await?;
    operator::ask(&operator, numbers.clone(), "provide").await?;
    place.are("available", |_| true).await?;
    place.fleet.begin(shape.seed);
    operator::ask(&operator, numbers, "active").await?;
    timeout(LIMIT, all_there(&operator, &fetches)).await.context("not all agents are about to fetch")??;
    fetches.meet().await;
    meet_at_half(&fetches).await.context("half of the image")?;
    let drivers = drivers(&operator).await?;
    let victim = drivers.get(&0).context("the driver of the first node")?.clone();
    place.controller(&victim)?.kill();
    meet_at_half(&fetches).await.context("the other half of the image")?;
    timeout(LIMIT, fetches.meet()).await.context("not all agents have the image")?;
    let survivor = place.controllers.iter().find(|one| one.name != victim).context("another controller")?;
    operator::reach(&survivor.operator, "active", LIMIT).await?;
    let mut begun = BTreeMap::new();
    for entry in place.fleet.shared.journal.take() {
        if matches!(&entry.what, What::Step { step, .. } if step == "deploy.write_image") {
            *begun.entry(entry.node).or_default() += 1;
        }
    }
    let bereft = drivers.values().filter(|driver| **driver == victim).count();
    Ok(Outcome { victim, bereft, broken: fetches.broken(), begun })
}

async fn meet_at_half(fetches: &Arc<Fetches>) -> Result<()> {
    let fetches = fetches.clone();
    Ok(timeout(LIMIT, spawn_blocking(move || fetches.meet_at_half())).await??)
}

/// The controller that drives each node.
async fn drivers(operator: &Operator) -> Result<BTreeMap<u32, String>> {
    let body = operator.call(Method::GET, "/v1/nodes?fields=uuid,conductor", None).await?;
    let nodes = body["nodes"].as_array().context("a list of nodes")?.iter();
    let drivers = nodes.map(|node| -> Result<(u32, String)> {
        let (uuid, driver) = (node["uuid"].as_str().context("a UUID")?, node["conductor"].as_str());
        Ok((number_of(uuid).context("a node of the fleet")?, driver.context("a conductor")?.to_owned()))
    });
    drivers.collect()
}
