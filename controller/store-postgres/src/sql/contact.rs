//! Contact with agents, and the steps they offer. A write of a contact locks its row, and the node's before that where the run
//! decides.

use super::node;
use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::{cell, decode, encode};
use crate::failure::failed;
use model::Catalogue;
use model::agent::{Contact, UnsignedAgent};
use model::boot::{Boot, BootNonce};
use model::boot_proof::BootProof;
use std::collections::BTreeMap;
use store::{
    HeartbeatRecord, Noun, Result, ScriptFetch, ScriptGrant, StepKind, StoreError, TokenGrant, TokenRequest,
};
use stored_secrets::DatabaseKey;
use uuid::Uuid;

/// Those of these nodes that have one.
pub async fn of_nodes(client: &Client, nodes: &[Uuid]) -> Result<BTreeMap<Uuid, Contact>> {
    let found = rows(client, "SELECT node, doc FROM contact WHERE node = ANY($1)", &[&nodes]).await;
    let found = found.map_err(failed("reading contacts"))?;
    let contact = |row| {
        let node: Uuid = cell(row, 0)?;
        Ok((node, decode("contact", node, cell(row, 1)?)?))
    };
    found.iter().map(contact).collect()
}

/// The contact of a node, locked; none: it has no row.
async fn locked(change: &Change, node: Uuid) -> Result<Option<Contact>> {
    let row = change
        .query_opt(concat!("SELECT doc FROM contact WHERE node = $1", " FOR UPDATE"), &[&node])
        .await
        .map_err(failed(format_args!("reading the contact of node {node}")))?;
    row.map(|row| decode("contact", node, cell(&row, 0)?)).transpose()
}

pub async fn grant_token(
    change: &Change,
    key: &DatabaseKey,
    node: Uuid,
    request: TokenRequest,
) -> Result<TokenGrant> {
    let row = node::locked(change, key, node).await?;
    let mut contact = locked(change, node).await?.unwrap_or_default();
    let grant = store::contact::grant(&mut contact, row.run.as_ref(), request);
    if grant != TokenGrant::NotAwaited {
        write(change, node, &contact).await?;
    }
    Ok(grant)
}

/// The grant, and whether anything was written.
pub async fn fetch_script(
    change: &Change,
    key: &DatabaseKey,
    node: Uuid,
    fetch: &ScriptFetch,
) -> Result<(ScriptGrant, bool)> {
    let row = node::locked(change, key, node).await?;
    let mut contact = locked(change, node).await?.unwrap_or_default();
    let before = contact.clone();
    let grant = store::contact::fetch(&mut contact, row.run.as_ref(), fetch);
    let changed = contact != before;
    if changed {
        write(change, node, &contact).await?;
    }
    Ok((grant, changed))
}

/// Whether it was stored.
pub async fn record_proof(
    change: &Change,
    key: &DatabaseKey,
    node: Uuid,
    nonce: &BootNonce,
    proof: BootProof,
) -> Result<bool> {
    let row = node::locked(change, key, node).await?;
    let mut contact = locked(change, node).await?.unwrap_or_default();
    let stored = store::contact::prove(&mut contact, row.run.as_ref(), nonce, proof);
    if stored {
        write(change, node, &contact).await?;
    }
    Ok(stored)
}

/// The row of the node is not touched: its contact has the token, or there is none to compare with.
pub async fn record_heartbeat(change: &Change, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
    let Some(mut contact) = locked(change, node).await? else {
        node::check_exists(change, node).await?;
        return Err(StoreError::Stale(node));
    };
    if !store::contact::beat(&mut contact, token, beat) {
        return Err(StoreError::Stale(node));
    }
    write(change, node, &contact).await
}

/// Whether anything was written.
pub async fn refuse_unsigned(change: &Change, node: Uuid, token: &str, agent: UnsignedAgent) -> Result<bool> {
    let Some(mut contact) = locked(change, node).await? else {
        node::check_exists(change, node).await?;
        return Ok(false);
    };
    let is_new = store::contact::refuse_unsigned(&mut contact, token, agent);
    if is_new {
        write(change, node, &contact).await?;
    }
    Ok(is_new)
}

/// Forget the agent; what was stored of it is not read.
pub async fn forget(change: &Change, node: Uuid, next: Option<Boot>) -> Result<()> {
    // Locked, so that no request for a token that saw the boot before is granted after this.
    node::version_locked(change, node).await?;
    if next.is_some() {
        return write(change, node, &Contact { boot: next, ..Contact::default() }).await;
    }
    let gone = change.execute("DELETE FROM contact WHERE node = $1", &[&node]).await;
    gone.map(drop).map_err(failed(format_args!("forgetting the agent of node {node}")))
}

/// Move the instants of the contact of a node.
pub async fn shift_clock(change: &Change, node: Uuid, by: i64) -> Result<()> {
    let Some(mut contact) = locked(change, node).await? else { return Ok(()) };
    model::clock_jump::shift_contact(&mut contact, by);
    write(change, node, &contact).await
}

pub async fn write(change: &Change, node: Uuid, contact: &Contact) -> Result<()> {
    let doc = encode("contact", node, contact)?;
    put(change, node, "contact", &doc).await
}

/// Put a document in the place of that of a node, in a table that has one for each.
pub async fn put(change: &Change, node: Uuid, table: &str, doc: &str) -> Result<()> {
    let sql = format!(
        "INSERT INTO {table} (node, doc) VALUES ($1, $2) ON CONFLICT (node) DO UPDATE SET doc = excluded.doc"
    );
    match change.execute(&sql, &[&node, &doc]).await {
        Ok(_) => Ok(()),
        Err(orphan) if orphan.is_orphan() => Err(StoreError::not_found(Noun::Node, node)),
        Err(error) => Err(error.while_doing(format_args!("writing the {table} of node {node}"))),
    }
}

pub async fn catalogue(client: &Client, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
    let found =
        rows(client, "SELECT doc FROM catalogue WHERE node = $1 AND kind = $2", &[&node, &kind.as_str()])
            .await
            .map(|mut rows| rows.pop());
    let row = found.map_err(failed(format_args!("reading the steps of node {node}")))?;
    row.map(|row| decode("catalogue", node, cell(&row, 0)?)).transpose()
}

pub async fn put_catalogue(change: &Change, node: Uuid, kind: StepKind, catalogue: &Catalogue) -> Result<()> {
    const PUT: &str = "INSERT INTO catalogue (node, kind, doc) VALUES ($1, $2, $3)
        ON CONFLICT (node, kind) DO UPDATE SET doc = excluded.doc";
    let doc = encode("catalogue", node, catalogue)?;
    match change.execute(PUT, &[&node, &kind.as_str(), &doc]).await {
        Ok(_) => Ok(()),
        Err(orphan) if orphan.is_orphan() => Err(StoreError::not_found(Noun::Node, node)),
        Err(error) => Err(error.while_doing(format_args!("writing the steps of node {node}"))),
    }
}
