//! Nodes and their history.

use super::{event_log, lease, resource};
use crate::change::{Change, Params, rows};
use crate::columns::{self, Row as Columns};
use crate::database::Client;
use crate::document::{cell, decode, encode, open, seal};
use crate::failure::{Failure, failed};
use crate::text;
use model::history::StateAtEvent;
use model::{Event, LoggedEvent, Node, ProvisionState, Timestamp};
use store::{Lease, Noun, Result, StoreError, Unique, basis, history_limits};
use stored_secrets::DatabaseKey;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// A node as its row holds it: made before the transaction, which then is short.
pub struct NodeRow {
    pub node: Node,
    columns: Columns,
    doc: String,
}

impl NodeRow {
    /// As it comes.
    pub fn of(key: &DatabaseKey, node: Node) -> Result<Self> {
        let doc = seal(key, "node", node.uuid, &node)?;
        Ok(Self { columns: columns::of_node(&node), node, doc })
    }

    /// With the version after its own.
    pub fn next(key: &DatabaseKey, mut node: Node) -> Result<Self> {
        node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
        Self::of(key, node)
    }

    async fn write(&self, change: &Change, sql: &str) -> Result<()> {
        let values = self.columns.iter().map(|(_, value)| value as &(dyn ToSql + Sync));
        let params: Vec<_> = values.chain([&self.doc as &(dyn ToSql + Sync)]).collect();
        change.execute(sql, &params).await.map(drop).map_err(|failure| self.refusal(failure))
    }

    fn refusal(&self, failure: Failure) -> StoreError {
        let node = &self.node;
        match failure.duplicate_in() {
            Some("node_pkey") => StoreError::duplicate(Unique::NodeUuid, node.uuid),
            Some("node_unique_name") => {
                StoreError::duplicate(Unique::NodeName, node.name.as_deref().unwrap_or_default())
            }
            Some("node_unique_instance_uuid") => {
                StoreError::duplicate(Unique::InstanceUuid, node.instance_uuid.unwrap_or_default())
            }
            _ => failure.while_doing(format_args!("writing node {}", node.uuid)),
        }
    }
}

pub async fn insert(change: &Change, new: &NodeRow, events: &[Event]) -> Result<()> {
    basis::check(&new.node, || Ok(None))?;
    new.write(change, &columns::NODE.insert).await?;
    append_events(change, &new.node, &StateAtEvent::of(&new.node), events).await
}

/// Add a node as it is, whatever its version.
pub async fn add(change: &Change, new: &NodeRow) -> Result<()> {
    new.write(change, &columns::NODE.insert).await
}

/// Write a node over the version before its own, while `lease` is the newest if one is given.
pub async fn update(change: &Change, new: &NodeRow, events: &[Event], lease: Option<Lease>) -> Result<()> {
    // The document is long, and only some writes need to know how the node stood.
    const LOCK: &str =
        concat!("SELECT version, CASE WHEN $2 THEN doc END FROM node WHERE uuid = $1", " FOR NO KEY UPDATE");
    let node = &new.node;
    let becomes_available = node.provision_state == ProvisionState::Available && node.basis.is_none();
    let wants_state = becomes_available || !events.is_empty();
    let row = change
        .query_opt(LOCK, &[&node.uuid, &wants_state])
        .await
        .map_err(failed(format_args!("reading node {}", node.uuid)))?;
    let row = row.ok_or_else(|| StoreError::not_found(Noun::Node, node.uuid))?;
    let stored = cell::<i64>(&row, 0)?.cast_unsigned();
    if stored.checked_add(1) != Some(node.version) {
        return Err(StoreError::Stale(node.uuid));
    }
    if let Some(lease) = lease
        && (lease.node != node.uuid || !lease::is_newest(change, lease).await?)
    {
        return Err(StoreError::Stale(node.uuid));
    }
    let doc: Option<&str> = cell(&row, 1)?;
    let stood: Option<StateAtEvent> = doc.map(|doc| decode("node", node.uuid, doc)).transpose()?;
    basis::check(node, || Ok(stood.as_ref().map(|stood| stood.provision_state)))?;
    if let Some(stood) = &stood {
        append_events(change, node, stood, events).await?;
    }
    overwrite(change, new).await?;
    resource::end_with(change, node).await
}

/// Write a node whose row is locked.
pub async fn overwrite(change: &Change, new: &NodeRow) -> Result<()> {
    new.write(change, &columns::NODE.update).await
}

/// Ports, resources, history, contact, catalogue, inventory and lease go with it: their rows refer to it with
/// ON DELETE CASCADE. The log gets these events.
pub async fn delete(
    change: &Change,
    key: &DatabaseKey,
    uuid: Uuid,
    expected: u64,
    events: &[Event],
) -> Result<()> {
    let doing = || format!("deleting node {uuid}");
    let row =
        change.query_opt("SELECT uuid, doc, version FROM node WHERE uuid = $1 FOR UPDATE", &[&uuid]).await;
    let row = row.map_err(failed(doing()))?.ok_or_else(|| StoreError::not_found(Noun::Node, uuid))?;
    if cell::<i64>(&row, 2)?.cast_unsigned() != expected {
        return Err(StoreError::Stale(uuid));
    }
    if !events.is_empty() {
        let node = of_row(key, &row)?;
        append_events(change, &node, &StateAtEvent::of(&node), events).await?;
    }
    let gone = change.execute("DELETE FROM node WHERE uuid = $1", &[&uuid]).await;
    gone.map(drop).map_err(failed(doing()))
}

/// A node, which no other transaction writes or deletes until the end of the transaction.
pub async fn locked(change: &Change, key: &DatabaseKey, uuid: Uuid) -> Result<Node> {
    let sql = concat!("SELECT uuid, doc FROM node WHERE uuid = $1", " FOR NO KEY UPDATE");
    let row = change.query_opt(sql, &[&uuid]).await;
    let row = row.map_err(failed(format_args!("reading node {uuid}")))?;
    row.map_or_else(|| Err(StoreError::not_found(Noun::Node, uuid)), |row| of_row(key, &row))
}

/// The same, of which only the version is read.
pub async fn version_locked(change: &Change, uuid: Uuid) -> Result<u64> {
    let sql = "SELECT version FROM node WHERE uuid = $1 FOR NO KEY UPDATE";
    let row = change.query_opt(sql, &[&uuid]).await;
    let row = row.map_err(failed(format_args!("reading node {uuid}")))?;
    let row = row.ok_or_else(|| StoreError::not_found(Noun::Node, uuid))?;
    Ok(cell::<i64>(&row, 0)?.cast_unsigned())
}

/// A node as the transaction sees it.
pub async fn by_uuid_in(change: &Change, key: &DatabaseKey, uuid: Uuid) -> Result<Option<Node>> {
    let row = change.query_opt("SELECT uuid, doc FROM node WHERE uuid = $1", &[&uuid]).await;
    let row = row.map_err(failed(format_args!("reading node {uuid}")))?;
    row.map(|row| of_row(key, &row)).transpose()
}

/// Reject a write that belongs to a node that is not stored.
pub async fn check_exists(change: &Change, uuid: Uuid) -> Result<()> {
    let row = change.query_opt("SELECT 1 FROM node WHERE uuid = $1", &[&uuid]).await;
    let row = row.map_err(failed(format_args!("reading node {uuid}")))?;
    row.map(drop).ok_or_else(|| StoreError::not_found(Noun::Node, uuid))
}

/// The node of a row of its UUID and document.
pub fn of_row(key: &DatabaseKey, row: &Row) -> Result<Node> {
    open(key, "node", cell::<Uuid>(row, 0)?, cell(row, 1)?)
}

async fn select(client: &Client, key: &DatabaseKey, sql: &str, params: Params<'_>) -> Result<Vec<Node>> {
    let found = rows(client, sql, params).await.map_err(failed("reading nodes"))?;
    found.iter().map(|row| of_row(key, row)).collect()
}

pub async fn by_uuid(client: &Client, key: &DatabaseKey, uuid: Uuid) -> Result<Option<Node>> {
    Ok(select(client, key, "SELECT uuid, doc FROM node WHERE uuid = $1", &[&uuid]).await?.pop())
}

pub async fn by_ident(client: &Client, key: &DatabaseKey, ident: &str) -> Result<Option<Node>> {
    if let Ok(uuid) = Uuid::parse_str(ident)
        && let Some(node) = by_uuid(client, key, uuid).await?
    {
        return Ok(Some(node));
    }
    let sql = "SELECT uuid, doc FROM node WHERE name = $1";
    Ok(select(client, key, sql, &[&&*text::stored(ident)]).await?.pop())
}

pub async fn all(client: &Client, key: &DatabaseKey) -> Result<Vec<Node>> {
    select(client, key, "SELECT uuid, doc FROM node ORDER BY created_at, uuid", &[]).await
}

pub async fn in_states(client: &Client, key: &DatabaseKey, states: &[ProvisionState]) -> Result<Vec<Node>> {
    let states: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
    let sql = "SELECT uuid, doc FROM node WHERE provision_state = ANY($1) ORDER BY created_at, uuid";
    select(client, key, sql, &[&states]).await
}

pub async fn history(client: &Client, node: Uuid) -> Result<Vec<Event>> {
    let found = rows(client, "SELECT doc FROM event WHERE node = $1 ORDER BY seq", &[&node]).await;
    let found = found.map_err(failed(format_args!("reading the history of node {node}")))?;
    found.iter().map(|row| decode("event of node", node, cell(row, 0)?)).collect()
}

pub async fn due(client: &Client, now: Timestamp, limit: usize) -> Result<Vec<Uuid>> {
    let sql = "SELECT uuid FROM node WHERE next_wake_at <= $1 ORDER BY next_wake_at, uuid LIMIT $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found =
        rows(client, sql, &[&now.0, &limit]).await.map_err(failed("reading the nodes that are due"))?;
    found.iter().map(|row| cell(row, 0)).collect()
}

pub async fn next_due(client: &Client, now: Timestamp) -> Result<Option<Timestamp>> {
    let sql = "SELECT min(next_wake_at) FROM node WHERE next_wake_at > $1";
    let found = rows(client, sql, &[&now.0]).await.map_err(failed("reading when the next node is due"))?;
    let at = found.first().map_or(Ok(None), |row| cell::<Option<i64>>(row, 0))?;
    Ok(at.map(Timestamp))
}

/// Add events to the log, and to the node's history, with how it `stood`. `node` is as the write leaves it.
async fn append_events(change: &Change, node: &Node, stood: &StateAtEvent, events: &[Event]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let logged = LoggedEvent::of_write(node, stood, events);
    let history = logged.iter().map(|one| &one.event).filter(|event| event.kind.is_history());
    let history: Vec<Event> = history.cloned().collect();
    if let Some(newest) = history.last() {
        add_events(change, node.uuid, &history).await?;
        prune_history(change, node.uuid, newest.at).await?;
    }
    event_log::add(change, &logged).await
}

/// Add events to a node's history as they are; not to the log.
pub async fn add_events(change: &Change, node: Uuid, events: &[Event]) -> Result<()> {
    const ADD: &str = "INSERT INTO event (node, at, doc, logged)
        SELECT $1, at, doc, true FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS new (at, doc, place) ORDER BY place";
    let docs = events.iter().map(|event| encode("event", event.uuid, event)).collect::<Result<Vec<_>>>()?;
    let times: Vec<i64> = events.iter().map(|event| event.at.0).collect();
    let added = change.execute(ADD, &[&node, &times, &docs]).await;
    added.map(drop).map_err(failed(format_args!("adding to the history of node {node}")))
}

/// As [`history_limits::prune`] does.
async fn prune_history(change: &Change, node: Uuid, newest: Timestamp) -> Result<()> {
    const EXCESS: &str = "DELETE FROM event WHERE node = $1 AND seq <=
        (SELECT seq FROM event WHERE node = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
    const OLD: &str = "DELETE FROM event WHERE at < $2
        AND seq IN (SELECT seq FROM event WHERE node = $1 ORDER BY seq LIMIT $3)";
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let delete = async {
        change.execute(EXCESS, &[&node, &number(history_limits::MAX_EVENTS)]).await?;
        let oldest = history_limits::oldest_kept(newest).0;
        change.execute(OLD, &[&node, &oldest, &number(history_limits::AT_ONCE)]).await
    };
    delete.await.map(drop).map_err(failed(format_args!("deleting old history of node {node}")))
}
