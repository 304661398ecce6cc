//! Machines that no node is known for.

use super::{inventory, node, resource};
use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::{cell, decode, encode};
use crate::failure::failed;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, NotBooted, UnknownBoot, machine_to_boot};
use model::{Event, ProvisionState, Resource};
use store::{Noun, ResourceWrite, Result, StoreError, Unique, UnknownBootGrant};
use stored_secrets::DatabaseKey;
use tokio_postgres::Row;
use uuid::Uuid;

const TABLE: &str = "discovered_machine";

/// What the write of a machine does to its node, with the documents of it.
pub enum Prepared {
    None,
    Create(Box<(node::NodeRow, String, Vec<Resource>)>),
    Update(Box<node::NodeRow>),
    Delete(Uuid, u64),
}

/// Machines, with the provision state of the node of each that has one.
macro_rules! machines {
    ($rest:literal) => {
        concat!(
            "SELECT id, doc, (SELECT provision_state FROM node WHERE uuid = (machine.doc::json ->> 'node')::uuid)
                 FROM discovered_machine AS machine ",
            $rest
        )
    };
}
const ALL: &str = machines!("ORDER BY booted_at, id");
const BY_ID: &str = machines!("WHERE id = $1");

/// A row of [`machines`]: the machine as it stands with its node.
fn of_row(row: &Row) -> Result<DiscoveredMachine> {
    let machine: DiscoveredMachine = decode(TABLE, cell::<Uuid>(row, 0)?, cell(row, 1)?)?;
    Ok(machine.with_node_in(cell::<Option<&str>>(row, 2)?.and_then(ProvisionState::parse)))
}

pub async fn all(client: &Client) -> Result<Vec<DiscoveredMachine>> {
    let found = rows(client, ALL, &[]).await;
    found.map_err(failed("reading discovered machines"))?.iter().map(of_row).collect()
}

pub async fn by_id(client: &Client, id: Uuid) -> Result<DiscoveredMachine> {
    let found = rows(client, BY_ID, &[&id]).await;
    let found = found.map_err(failed(format_args!("reading discovered machine {id}")))?;
    found.first().map_or_else(|| Err(StoreError::not_found(Noun::DiscoveredMachine, id)), of_row)
}

/// Decide about the boot of an unknown MAC address. One transaction at a time: it counts all machines.
pub async fn boot(change: &Change, boot: &UnknownBoot, limits: &DiscoveryLimits) -> Result<UnknownBootGrant> {
    const ONE_AT_A_TIME: &str = "SELECT pg_advisory_xact_lock(4711, 5)";
    change
        .query(ONE_AT_A_TIME, &[])
        .await
        .map_err(failed("waiting for another boot of an unknown machine"))?;
    if is_port(change, &boot.mac.to_string()).await? {
        return Ok(Err(NotBooted::Known));
    }
    let found = change.query(ALL, &[]).await;
    let found = found.map_err(failed("reading discovered machines"))?;
    let mut known = Vec::with_capacity(found.len());
    for row in &found {
        let machine = of_row(row)?;
        match machine.is_over(boot.at) {
            true => remove(change, machine.id).await?,
            false => known.push(machine),
        }
    }
    let machine = match machine_to_boot(&known, boot, limits) {
        Ok(machine) => machine,
        Err(refused) => return Ok(Err(refused)),
    };
    if !known.iter().any(|known| known.id == machine.id) {
        put(change, &machine).await?;
    }
    Ok(Ok(machine.nonce))
}

/// Write a machine that was read at the version before its own, and what that does to its node.
pub async fn write(
    change: &mut Change,
    key: &DatabaseKey,
    machine: &DiscoveredMachine,
    of_node: &Prepared,
    events: &[Event],
) -> Result<()> {
    lock(change, machine.id, machine.version - 1).await?;
    let ring = match of_node {
        Prepared::None => None,
        Prepared::Create(new) => {
            let (row, inventory, ports) = &**new;
            for mac in &machine.macs {
                if is_port(change, &mac.to_string()).await? {
                    return Err(StoreError::duplicate(Unique::ResourceKey, mac));
                }
            }
            node::insert(change, row, events).await?;
            inventory::write(change, row.node.uuid, inventory).await?;
            for port in ports {
                resource::write(change, key, ResourceWrite::Create(port.clone())).await?;
            }
            Some(row.node.uuid)
        }
        Prepared::Update(row) => {
            node::update(change, row, events, None).await?;
            Some(row.node.uuid)
        }
        Prepared::Delete(uuid, version) => {
            node::delete(change, key, *uuid, *version, events).await?;
            Some(*uuid)
        }
    };
    put(change, machine).await?;
    if let Some(node) = ring {
        change.ring(node);
    }
    Ok(())
}

/// Delete a machine at this version.
pub async fn forget(change: &Change, id: Uuid, version: u64) -> Result<()> {
    lock(change, id, version).await?;
    remove(change, id).await
}

/// Store it, in place of itself if it is there.
pub async fn put(change: &Change, machine: &DiscoveredMachine) -> Result<()> {
    const PUT: &str = "INSERT INTO discovered_machine (id, booted_at, doc) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET booted_at = excluded.booted_at, doc = excluded.doc";
    let doc = encode(TABLE, machine.id, machine)?;
    let put = change.execute(PUT, &[&machine.id, &machine.booted_at.0, &doc]).await;
    put.map(drop).map_err(failed(format_args!("writing discovered machine {}", machine.id)))
}

/// No other transaction writes it until the end of this one; it must still have this version.
async fn lock(change: &Change, id: Uuid, version: u64) -> Result<()> {
    const LOCK: &str = concat!(machines!("WHERE id = $1"), " FOR UPDATE OF machine");
    let row = change.query_opt(LOCK, &[&id]).await;
    let row = row.map_err(failed(format_args!("reading discovered machine {id}")))?;
    let row = row.ok_or_else(|| StoreError::not_found(Noun::DiscoveredMachine, id))?;
    if of_row(&row)?.version == version { Ok(()) } else { Err(StoreError::Stale(id)) }
}

async fn remove(change: &Change, id: Uuid) -> Result<()> {
    let gone = change.execute("DELETE FROM discovered_machine WHERE id = $1", &[&id]).await;
    gone.map(drop).map_err(failed(format_args!("deleting discovered machine {id}")))
}

async fn is_port(change: &Change, mac: &str) -> Result<bool> {
    let row = change.query_opt("SELECT 1 FROM resource WHERE kind = 'port' AND key = $1", &[&mac]).await;
    row.map(|row| row.is_some()).map_err(failed(format_args!("looking for a port with address {mac}")))
}
