//! Contact with agents, and the steps they offer.

use super::{node, node_version};
use crate::document::{encode, failed, select};
use model::Catalogue;
use model::agent::{Contact, UnsignedAgent};
use model::boot::Boot;
use rusqlite::{Connection, params};
use store::{
    HeartbeatRecord, Noun, Result, ScriptFetch, ScriptGrant, StepKind, StoreError, TokenGrant, TokenRequest,
};
use uuid::Uuid;

pub fn of_node(connection: &Connection, node: Uuid) -> Result<Contact> {
    let sql = "SELECT node, doc FROM contact WHERE node = ?1";
    Ok(select(connection, "contact", sql, [node.to_string()])?.pop().unwrap_or_default())
}

pub fn grant_token(connection: &Connection, node: Uuid, request: TokenRequest) -> Result<TokenGrant> {
    let row = node::by_uuid(connection, node)?.ok_or_else(|| StoreError::not_found(Noun::Node, node))?;
    let mut contact = of_node(connection, node)?;
    let grant = store::contact::grant(&mut contact, row.run.as_ref(), request);
    if grant != TokenGrant::NotAwaited {
        write(connection, node, &contact)?;
    }
    Ok(grant)
}

/// The grant, and whether anything was written.
pub fn fetch_script(connection: &Connection, node: Uuid, fetch: &ScriptFetch) -> Result<(ScriptGrant, bool)> {
    let row = node::by_uuid(connection, node)?.ok_or_else(|| StoreError::not_found(Noun::Node, node))?;
    let mut contact = of_node(connection, node)?;
    let before = contact.clone();
    let grant = store::contact::fetch(&mut contact, row.run.as_ref(), fetch);
    let changed = contact != before;
    if changed {
        write(connection, node, &contact)?;
    }
    Ok((grant, changed))
}

pub fn record_heartbeat(
    connection: &Connection,
    node: Uuid,
    token: &str,
    beat: HeartbeatRecord,
) -> Result<()> {
    node_version::check_exists(connection, node)?;
    let mut contact = of_node(connection, node)?;
    if !store::contact::beat(&mut contact, token, beat) {
        return Err(StoreError::Stale(node));
    }
    write(connection, node, &contact)
}

/// Whether anything was written.
pub fn refuse_unsigned(
    connection: &Connection,
    node: Uuid,
    token: &str,
    agent: UnsignedAgent,
) -> Result<bool> {
    node_version::check_exists(connection, node)?;
    let mut contact = of_node(connection, node)?;
    let is_new = store::contact::refuse_unsigned(&mut contact, token, agent);
    if is_new {
        write(connection, node, &contact)?;
    }
    Ok(is_new)
}

/// Forget the agent; what was stored of it is not read.
pub fn forget(connection: &Connection, node: Uuid, next: Option<Boot>) -> Result<()> {
    node_version::check_exists(connection, node)?;
    if next.is_some() {
        return write(connection, node, &Contact { boot: next, ..Contact::default() });
    }
    connection
        .prepare_cached("DELETE FROM contact WHERE node = ?1")
        .and_then(|mut statement| statement.execute([node.to_string()]))
        .map_err(failed(format_args!("forgetting the agent of node {node}")))?;
    Ok(())
}

/// Move the instants of the contact of a node.
pub fn shift_clock(connection: &Connection, node: Uuid, by: i64) -> Result<()> {
    let mut contact = of_node(connection, node)?;
    if contact == Contact::default() {
        return Ok(());
    }
    model::clock_jump::shift_contact(&mut contact, by);
    write(connection, node, &contact)
}

fn write(connection: &Connection, node: Uuid, contact: &Contact) -> Result<()> {
    let doc = encode("contact", node, contact)?;
    let sql = "INSERT INTO contact (node, doc) VALUES (?1, ?2)
               ON CONFLICT (node) DO UPDATE SET doc = excluded.doc";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![node.to_string(), doc]))
        .map_err(failed(format_args!("writing the contact of node {node}")))?;
    Ok(())
}

pub fn catalogue(connection: &Connection, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
    let sql = "SELECT kind || ' of node ' || node, doc FROM catalogue WHERE node = ?1 AND kind = ?2";
    Ok(select(connection, "catalogue", sql, params![node.to_string(), kind.as_str()])?.pop())
}

pub fn put_catalogue(
    connection: &Connection,
    node: Uuid,
    kind: StepKind,
    catalogue: &Catalogue,
) -> Result<()> {
    node_version::check_exists(connection, node)?;
    let doc = encode("catalogue", node, catalogue)?;
    let sql = "INSERT INTO catalogue (node, kind, doc) VALUES (?1, ?2, ?3)
               ON CONFLICT (node, kind) DO UPDATE SET doc = excluded.doc";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![node.to_string(), kind.as_str(), doc]))
        .map_err(failed(format_args!("writing the {} steps of node {node}", kind.as_str())))?;
    Ok(())
}
