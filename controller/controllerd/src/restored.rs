//! `anneal-controller restored`: marks the nodes that are not as a backup says that was put in the place of the database.

use crate::config::Config;
use crate::database::{Database, refusal_of_postgres};
use crate::{database_key, newest_epoch};
use anyhow::{Context, Result, ensure};
use bmc::{Builtin, Drivers, ErrorKind};
use conductor::decision::Snapshot;
use conductor::stages::after_restore;
use model::{Node, PowerState, Timestamp};
use std::sync::Arc;
use store::{Clock, Store, SystemClock};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// BMCs that are asked at once.
const AT_ONCE: usize = 64;

/// Compare every node with its row, mark those that differ, print them, and let the controllers start again.
pub async fn run(config: &Config) -> Result<()> {
    if let Some(settings) = config.database.postgres()? {
        let used = store_postgres::is_in_use(&settings).await.map_err(refusal_of_postgres)?;
        ensure!(!used, "a controller uses the database of PostgreSQL: stop all of them first");
    }
    let key = database_key::load(config)?;
    let database = Database::open(config, &key).await?;
    let (store, clock) = (database.store(), SystemClock::default());
    // Leases are given far less often than once in a microsecond: whatever was given after the backup is less than this.
    let now = clock.now();
    database.raise_epochs(now.0.unsigned_abs()).await.context("the epochs of leases")?;
    let nodes = store.nodes().await.context("reading the nodes")?;
    let (count, mut marked) = (nodes.len(), Vec::new());
    let mut reading = JoinSet::new();
    let (bmcs, places) = (Builtin::new(config.bmc.clone()), Arc::new(Semaphore::new(AT_ONCE)));
    for node in nodes {
        let (bmcs, places) = (bmcs.clone(), places.clone());
        reading.spawn(async move {
            let _place = places.acquire().await;
            let read = power(&bmcs, &node).await;
            (node, read)
        });
    }
    while let Some(read) = reading.join_next().await {
        let (node, read) = read?;
        marked.extend(mark(config, &*store, node, read, now).await?);
    }
    marked.sort();
    marked.iter().for_each(|line| println!("{line}"));
    println!(
        "{} of {count} nodes are in maintenance until you look at them; the others are as the backup says",
        marked.len()
    );
    newest_epoch::note(&config.state_dir, database.last_epoch().await?)
}

async fn power(bmcs: &Builtin, node: &Node) -> Result<Option<PowerState>, String> {
    let bmc = bmcs.open(&node.driver, &node.driver_info, &node.uuid.to_string());
    match bmc.map_err(|error| error.to_string())?.power_state().await {
        Ok(state) => Ok(Some(state)),
        Err(error) if error.kind() == ErrorKind::NoPowerState => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Store what becomes of a node; its line, if it is marked.
async fn mark(
    config: &Config,
    store: &dyn Store,
    node: Node,
    read: Result<Option<PowerState>, String>,
    now: Timestamp,
) -> Result<Option<String>> {
    let contact = store.contact(node.uuid).await?;
    let snapshot = Snapshot::of(node, contact, Err("not asked for".to_owned()), now, now);
    let Some(change) = after_restore(&snapshot, &config.conductor, read) else { return Ok(None) };
    let name = change.node.name.clone().unwrap_or_else(|| change.node.uuid.to_string());
    let reason = change.node.maintenance_reason.clone().unwrap_or_default();
    store
        .update_node(change.node, change.events, None)
        .await
        .with_context(|| format!("writing node {name}"))?;
    Ok(Some(format!("{name}: {reason}")))
}
