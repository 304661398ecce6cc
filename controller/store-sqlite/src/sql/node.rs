//! Nodes and their history.

use super::node_version::version;
use super::{event_log, lease, resource};
use crate::document::{encode, failed, first, read_back, select};
use crate::node_cache::{Reading, bytes_of};
use crate::writer::Change;
use crate::written::Written;
use model::history::StateAtEvent;
use model::{Event, LoggedEvent, Node, ProvisionState, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::Arc;
use store::{Lease, Noun, Result, StoreError, Unique, basis, history_limits};
use uuid::Uuid;

/// A node with its document, as it is to be written.
#[derive(Clone)]
pub struct Document {
    text: String,
    /// What reads will return.
    node: Arc<Node>,
}

impl Document {
    /// Of this node. It is made before the writer has a turn: it is work for one, and everybody waits for the writer.
    pub fn of(node: &Node) -> Result<Self> {
        let (text, node) = read_back("node", node.uuid, node)?;
        Ok(Self { text, node: Arc::new(node) })
    }

    fn note(&self, change: &mut Change<'_>) {
        change.note(Written::Node(self.node.uuid, self.node.clone(), bytes_of::<Node>(self.text.as_bytes())));
    }
}

/// Add a node.
pub fn insert(change: &mut Change<'_>, doc: &Document, events: &[Event]) -> Result<()> {
    let node = &*doc.node;
    if version(change, node.uuid)?.is_some() {
        return Err(StoreError::duplicate(Unique::NodeUuid, node.uuid));
    }
    basis::check(node, || Ok(None))?;
    check_unique(change, node, None)?;
    let uuid = node.uuid.to_string();
    change
        .prepare_cached("INSERT INTO node (uuid, doc) VALUES (?1, seal_secrets('node', ?1, ?2))")
        .and_then(|mut statement| statement.execute(params![uuid, doc.text]))
        .map_err(failed(format_args!("inserting node {uuid}")))?;
    append_events(change, node, &StateAtEvent::of(node), events)?;
    doc.note(change);
    Ok(())
}

/// Write a node over the version before its own, while `lease` is the newest if one is given.
pub fn update(change: &mut Change<'_>, doc: &Document, events: &[Event], lease: Option<Lease>) -> Result<()> {
    let node = &*doc.node;
    let before = change.known::<Arc<Node>>(node.uuid);
    let stored = match &before {
        Some(before) => Some(before.version),
        None => version(change, node.uuid)?,
    };
    let stored = stored.ok_or_else(|| StoreError::not_found(Noun::Node, node.uuid))?;
    if stored.checked_add(1) != Some(node.version) {
        return Err(StoreError::Stale(node.uuid));
    }
    lease::check(change, node.uuid, lease)?;
    let stood =
        || before.as_ref().map_or_else(|| stood(change, node.uuid), |node| Ok(StateAtEvent::of(node)));
    basis::check(node, || Ok(Some(stood()?.provision_state)))?;
    check_unique(change, node, before.as_deref())?;
    if !events.is_empty() {
        append_events(change, node, &stood()?, events)?;
    }
    let uuid = node.uuid.to_string();
    change
        .prepare_cached("UPDATE node SET doc = seal_secrets('node', ?1, ?2) WHERE uuid = ?1")
        .and_then(|mut statement| statement.execute(params![uuid, doc.text]))
        .map_err(failed(format_args!("writing node {uuid}")))?;
    resource::end_with(change, node)?;
    doc.note(change);
    Ok(())
}

/// Ports, resources, history, contact, catalogue, inventory and lease go with it: their rows refer to it with
/// ON DELETE CASCADE. The log gets these events.
pub fn delete(change: &mut Change<'_>, uuid: Uuid, expected: u64, events: &[Event]) -> Result<()> {
    match version(change, uuid)? {
        None => return Err(StoreError::not_found(Noun::Node, uuid)),
        Some(stored) if stored != expected => return Err(StoreError::Stale(uuid)),
        Some(_) => {}
    }
    if !events.is_empty()
        && let Some(node) = by_uuid(change, uuid)?
    {
        append_events(change, &node, &StateAtEvent::of(&node), events)?;
    }
    change
        .prepare_cached("DELETE FROM node WHERE uuid = ?1")
        .and_then(|mut statement| statement.execute([uuid.to_string()]))
        .map_err(failed(format_args!("deleting node {uuid}")))?;
    change.note(Written::Unknown(uuid));
    Ok(())
}

const BY_UUID: &str = "SELECT uuid, open_secrets('node', uuid, doc) FROM node WHERE uuid = ?1";

/// A node as this transaction sees it.
pub fn by_uuid(connection: &Connection, uuid: Uuid) -> Result<Option<Node>> {
    Ok(first(connection, "node", BY_UUID, [uuid.to_string()])?.map(|(node, _)| node))
}

/// A node as a snapshot has it, which goes into the cache.
pub fn read(connection: &Connection, reading: &Reading, uuid: Uuid) -> Result<Option<Arc<Node>>> {
    let Some((node, bytes)) = first(connection, "node", BY_UUID, [uuid.to_string()])? else {
        return Ok(None);
    };
    let node = Arc::new(node);
    reading.keep(uuid, Arc::clone(&node), bytes);
    Ok(Some(node))
}

/// The nodes with these UUIDs, in their order. They were read from the snapshot, which has begun.
pub fn by_uuids(connection: &Connection, reading: &Reading, uuids: &[String]) -> Result<Vec<Node>> {
    let mut found = Vec::with_capacity(uuids.len());
    for uuid in uuids {
        let uuid = Uuid::parse_str(uuid).map_err(failed(format_args!("node {uuid}")))?;
        let node = match reading.get(uuid) {
            Some(known) => Some(known),
            None => read(connection, reading, uuid)?,
        };
        found.extend(node.map(Arc::unwrap_or_clone));
    }
    Ok(found)
}

/// The node with this UUID or name.
pub fn by_ident(connection: &Connection, reading: &Reading, ident: &str) -> Result<Option<Node>> {
    if let Ok(uuid) = Uuid::parse_str(ident)
        && let Some(node) = read(connection, reading, uuid)?
    {
        return Ok(Some(Arc::unwrap_or_clone(node)));
    }
    let uuid: Option<String> = connection
        .prepare_cached("SELECT uuid FROM node WHERE name = ?1")
        .and_then(|mut statement| statement.query_row([ident], |row| row.get(0)).optional())
        .map_err(failed(format_args!("looking for node {ident}")))?;
    Ok(by_uuids(connection, reading, uuid.as_slice())?.pop())
}

pub fn all(connection: &Connection) -> Result<Vec<Node>> {
    let sql = "SELECT uuid, open_secrets('node', uuid, doc) FROM node ORDER BY created_at, uuid";
    select(connection, "node", sql, [])
}

pub fn in_states(connection: &Connection, states: &[ProvisionState]) -> Result<Vec<Node>> {
    let states = serde_json::to_string(states).map_err(failed("writing states"))?;
    let sql = "SELECT uuid, open_secrets('node', uuid, doc) FROM node
               WHERE uuid IN (SELECT uuid FROM node_list WHERE provision_state IN (SELECT value FROM json_each(?1)))
               ORDER BY created_at, uuid";
    select(connection, "node", sql, [states])
}

pub fn history(connection: &Connection, node: Uuid) -> Result<Vec<Event>> {
    let sql = "SELECT seq || ' of node ' || node, doc FROM event WHERE node = ?1 ORDER BY seq";
    select(connection, "event", sql, [node.to_string()])
}

pub fn due(connection: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Uuid>> {
    let sql = "SELECT uuid FROM node WHERE next_wake_at <= ?1 ORDER BY next_wake_at, uuid LIMIT ?2";
    let read = || -> rusqlite::Result<Vec<String>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        connection.prepare_cached(sql)?.query_map(params![now.0, limit], |row| row.get(0))?.collect()
    };
    let due = read().map_err(failed("reading the nodes that are due"))?;
    due.iter().map(|uuid| Uuid::parse_str(uuid).map_err(failed(format_args!("node {uuid}")))).collect()
}

pub fn next_due(connection: &Connection, now: Timestamp) -> Result<Option<Timestamp>> {
    connection
        .prepare_cached("SELECT min(next_wake_at) FROM node WHERE next_wake_at > ?1")
        .and_then(|mut statement| statement.query_row([now.0], |row| row.get::<_, Option<i64>>(0)))
        .map(|at| at.map(Timestamp))
        .map_err(failed("reading when the next node is due"))
}

/// Refuses a node whose name or instance UUID belongs to another one; what it had `before` does not. The unique indexes would too, but could
/// not say whose fault it is in the words of the trait.
fn check_unique(connection: &Connection, node: &Node, before: Option<&Node>) -> Result<()> {
    let taken = |column: &str, value: &str| {
        let sql = format!("SELECT 1 FROM node WHERE {column} = ?1 AND uuid <> ?2");
        connection
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.exists([value, &node.uuid.to_string()]))
            .map_err(failed(format_args!("looking for another node of this {column}")))
    };
    if let Some(name) = &node.name
        && before.is_none_or(|before| before.name.as_ref() != Some(name))
        && taken("name", name)?
    {
        return Err(StoreError::duplicate(Unique::NodeName, name));
    }
    if let Some(instance) = node.instance_uuid
        && before.is_none_or(|before| before.instance_uuid != Some(instance))
        && taken("instance_uuid", &instance.to_string())?
    {
        return Err(StoreError::duplicate(Unique::InstanceUuid, instance));
    }
    Ok(())
}

/// How a stored node stands, without reading the rest of its document: that is long, and the writer's time is
/// everybody's.
fn stood(connection: &Connection, uuid: Uuid) -> Result<StateAtEvent> {
    let sql = "SELECT uuid, doc FROM node WHERE uuid = ?1";
    let found = select(connection, "node", sql, [uuid.to_string()])?.pop();
    found.ok_or_else(|| StoreError::not_found(Noun::Node, uuid))
}

/// Add events to the log, and to the node's history, with how it `stood`. `node` is as the write leaves it.
fn append_events(connection: &Connection, node: &Node, stood: &StateAtEvent, events: &[Event]) -> Result<()> {
    let mut newest = None;
    for logged in LoggedEvent::of_write(node, stood, events) {
        let event = &logged.event;
        if event.kind.is_history() {
            let doc = encode("event", event.uuid, event)?;
            connection
                .prepare_cached("INSERT INTO event (node, doc) VALUES (?1, ?2)")
                .and_then(|mut statement| statement.execute(params![node.uuid.to_string(), doc]))
                .map_err(failed(format_args!("adding to the history of node {}", node.uuid)))?;
            newest = Some(event.at);
        }
        event_log::append(connection, &logged)?;
    }
    match newest {
        Some(newest) => prune_history(connection, node.uuid, newest),
        None => Ok(()),
    }
}

/// As [`history_limits::prune`] does.
fn prune_history(connection: &Connection, node: Uuid, newest: Timestamp) -> Result<()> {
    const EXCESS: &str = "DELETE FROM event WHERE node = ?1 AND seq <=
         (SELECT seq FROM event WHERE node = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)";
    const OLD: &str =
        "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE node = ?1 ORDER BY seq LIMIT ?3)
         AND json_extract(doc, '$.at') < ?2";
    let (node_text, oldest) = (node.to_string(), history_limits::oldest_kept(newest).0);
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let delete = || -> rusqlite::Result<()> {
        let excess = params![node_text, number(history_limits::MAX_EVENTS)];
        connection.prepare_cached(EXCESS)?.execute(excess)?;
        let old = params![node_text, oldest, number(history_limits::AT_ONCE)];
        connection.prepare_cached(OLD)?.execute(old).map(drop)
    };
    delete().map_err(failed(format_args!("deleting old history of node {node}")))
}
