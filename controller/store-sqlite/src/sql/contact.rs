//! Contact with agents, and the steps they offer.

use super::{node, node_version};
use crate::document::{encode, failed, first, read_back, select};
use crate::node_cache::{Reading, bytes_of};
use crate::writer::Change;
use crate::written::Written;
use model::agent::{Contact, UnsignedAgent};
use model::boot::{Boot, BootNonce};
use model::boot_proof::BootProof;
use model::{Catalogue, Node, Run};
use rusqlite::{Connection, params};
use std::sync::Arc;
use store::{
    HeartbeatRecord, Noun, Result, ScriptFetch, ScriptGrant, StepKind, StoreError, TokenGrant, TokenRequest,
};
use uuid::Uuid;

const OF_NODE: &str = "SELECT node, doc FROM contact WHERE node = ?1";

/// A contact as a snapshot has it, which goes into the cache.
pub fn read(connection: &Connection, reading: &Reading, node: Uuid) -> Result<Arc<Contact>> {
    let (contact, bytes) = first(connection, "contact", OF_NODE, [node.to_string()])?.unwrap_or_default();
    let contact = Arc::new(contact);
    reading.keep(node, Arc::clone(&contact), bytes);
    Ok(contact)
}

/// A contact as this transaction sees it.
fn of_node(change: &Change<'_>, node: Uuid) -> Result<Contact> {
    if let Some(known) = change.known::<Arc<Contact>>(node) {
        return Ok(Contact::clone(&known));
    }
    Ok(first(change, "contact", OF_NODE, [node.to_string()])?.unwrap_or_default().0)
}

/// The run of a node as this transaction sees it.
fn run(change: &Change<'_>, node: Uuid) -> Result<Option<Run>> {
    let row = match change.known::<Arc<Node>>(node) {
        Some(known) => return Ok(known.run.clone()),
        None => node::by_uuid(change, node)?,
    };
    row.map(|row| row.run).ok_or_else(|| StoreError::not_found(Noun::Node, node))
}

pub fn grant_token(change: &mut Change<'_>, node: Uuid, request: TokenRequest) -> Result<TokenGrant> {
    let run = run(change, node)?;
    let mut contact = of_node(change, node)?;
    let grant = store::contact::grant(&mut contact, run.as_ref(), request);
    if grant != TokenGrant::NotAwaited {
        write(change, node, &contact)?;
    }
    Ok(grant)
}

/// The grant, and whether anything was written.
pub fn fetch_script(change: &mut Change<'_>, node: Uuid, fetch: &ScriptFetch) -> Result<(ScriptGrant, bool)> {
    let run = run(change, node)?;
    let mut contact = of_node(change, node)?;
    let before = contact.clone();
    let grant = store::contact::fetch(&mut contact, run.as_ref(), fetch);
    let changed = contact != before;
    if changed {
        write(change, node, &contact)?;
    }
    Ok((grant, changed))
}

/// Whether it was stored.
pub fn record_proof(
    change: &mut Change<'_>,
    node: Uuid,
    nonce: &BootNonce,
    proof: BootProof,
) -> Result<bool> {
    let run = run(change, node)?;
    let mut contact = of_node(change, node)?;
    let stored = store::contact::prove(&mut contact, run.as_ref(), nonce, proof);
    if stored {
        write(change, node, &contact)?;
    }
    Ok(stored)
}

pub fn record_heartbeat(
    change: &mut Change<'_>,
    node: Uuid,
    token: &str,
    beat: HeartbeatRecord,
) -> Result<()> {
    node_version::check_exists(change, node)?;
    let mut contact = of_node(change, node)?;
    if !store::contact::beat(&mut contact, token, beat) {
        return Err(StoreError::Stale(node));
    }
    write(change, node, &contact)
}

/// Whether anything was written.
pub fn refuse_unsigned(
    change: &mut Change<'_>,
    node: Uuid,
    token: &str,
    agent: UnsignedAgent,
) -> Result<bool> {
    node_version::check_exists(change, node)?;
    let mut contact = of_node(change, node)?;
    let is_new = store::contact::refuse_unsigned(&mut contact, token, agent);
    if is_new {
        write(change, node, &contact)?;
    }
    Ok(is_new)
}

/// Forget the agent; what was stored of it is not read.
pub fn forget(change: &mut Change<'_>, node: Uuid, next: Option<Boot>) -> Result<()> {
    node_version::check_exists(change, node)?;
    if next.is_some() {
        return write(change, node, &Contact { boot: next, ..Contact::default() });
    }
    change
        .prepare_cached("DELETE FROM contact WHERE node = ?1")
        .and_then(|mut statement| statement.execute([node.to_string()]))
        .map_err(failed(format_args!("forgetting the agent of node {node}")))?;
    change.note(Written::Contact(node, Arc::default(), bytes_of::<Contact>(b"")));
    Ok(())
}

/// Move the instants of the contact of a node.
pub fn shift_clock(change: &mut Change<'_>, node: Uuid, by: i64) -> Result<()> {
    let mut contact = of_node(change, node)?;
    if contact == Contact::default() {
        return Ok(());
    }
    model::clock_jump::shift_contact(&mut contact, by);
    write(change, node, &contact)
}

fn write(change: &mut Change<'_>, node: Uuid, contact: &Contact) -> Result<()> {
    let (doc, contact) = read_back("contact", node, contact)?;
    let sql = "INSERT INTO contact (node, doc) VALUES (?1, ?2)
               ON CONFLICT (node) DO UPDATE SET doc = excluded.doc";
    change
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![node.to_string(), doc]))
        .map_err(failed(format_args!("writing the contact of node {node}")))?;
    change.note(Written::Contact(node, Arc::new(contact), bytes_of::<Contact>(doc.as_bytes())));
    Ok(())
}

pub fn catalogue(connection: &Connection, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
    let sql = "SELECT kind || ' of node ' || node, doc FROM catalogue WHERE node = ?1 AND kind = ?2";
    Ok(select(connection, "catalogue", sql, params![node.to_string(), kind.as_str()])?.pop())
}

pub fn put_catalogue(change: &Change<'_>, node: Uuid, kind: StepKind, catalogue: &Catalogue) -> Result<()> {
    node_version::check_exists(change, node)?;
    let doc = encode("catalogue", node, catalogue)?;
    let sql = "INSERT INTO catalogue (node, kind, doc) VALUES (?1, ?2, ?3)
               ON CONFLICT (node, kind) DO UPDATE SET doc = excluded.doc";
    change
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![node.to_string(), kind.as_str(), doc]))
        .map_err(failed(format_args!("writing the {} steps of node {node}", kind.as_str())))?;
    Ok(())
}
