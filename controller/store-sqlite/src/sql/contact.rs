//! Contact with agents, and the steps they offer.

use super::{node, node_version};
use crate::document::{encode, failed, select};
use model::agent::Contact;
use model::{Catalogue, Timestamp};
use rusqlite::{Connection, params};
use store::{HeartbeatRecord, Noun, Result, StepKind, StoreError, TokenGrant};
use uuid::Uuid;

pub fn of_node(connection: &Connection, node: Uuid) -> Result<Contact> {
    let sql = "SELECT node, doc FROM contact WHERE node = ?1";
    Ok(select(connection, "contact", sql, [node.to_string()])?.pop().unwrap_or_default())
}

pub fn grant_token(
    connection: &Connection,
    node: Uuid,
    token: &str,
    boot_id: Option<&str>,
    at: Timestamp,
) -> Result<TokenGrant> {
    let row = node::by_uuid(connection, node)?.ok_or_else(|| StoreError::not_found(Noun::Node, node))?;
    let mut contact = of_node(connection, node)?;
    let grant = store::contact::grant(&mut contact, row.run.as_ref(), token, boot_id, at);
    if grant != TokenGrant::NotAwaited {
        write(connection, node, &contact)?;
    }
    Ok(grant)
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

pub fn forget(connection: &Connection, node: Uuid) -> Result<()> {
    node_version::check_exists(connection, node)?;
    connection
        .prepare_cached("DELETE FROM contact WHERE node = ?1")
        .and_then(|mut statement| statement.execute([node.to_string()]))
        .map_err(failed(format_args!("forgetting the agent of node {node}")))?;
    Ok(())
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
