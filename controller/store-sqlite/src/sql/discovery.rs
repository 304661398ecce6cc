//! Machines that no node is known for.

use super::resource;
use crate::document::{decode, encode, failed};
use model::discovery::{DiscoveredMachine, DiscoveryLimits, NotBooted, UnknownBoot, machine_to_boot};
use model::{ProvisionState, ResourceKind};
use rusqlite::{Connection, Params, Row, params};
use store::{Noun, Result, StoreError, Unique, UnknownBootGrant};
use uuid::Uuid;

const TABLE: &str = "discovered_machine";

/// Machines, with the provision state of the node of each that has one.
macro_rules! machines {
    ($rest:literal) => {
        concat!(
            "SELECT id, doc, (SELECT provision_state FROM node_list WHERE uuid = json_extract(doc, '$.node'))
                 FROM discovered_machine ",
            $rest
        )
    };
}

pub fn all(connection: &Connection) -> Result<Vec<DiscoveredMachine>> {
    read(connection, machines!("ORDER BY booted_at, id"), [])
}

pub fn by_id(connection: &Connection, id: Uuid) -> Result<DiscoveredMachine> {
    let found = read(connection, machines!("WHERE id = ?1"), [id.to_string()])?.pop();
    found.ok_or_else(|| StoreError::not_found(Noun::DiscoveredMachine, id))
}

/// The machines of a query by [`machines`].
fn read(connection: &Connection, sql: &str, params: impl Params) -> Result<Vec<DiscoveredMachine>> {
    let read = || -> rusqlite::Result<Vec<Result<DiscoveredMachine>>> {
        let mut statement = connection.prepare_cached(sql)?;
        let row = |row: &Row<'_>| {
            let node: Option<String> = row.get(2)?;
            Ok(of_row(row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_bytes()?, node.as_deref()))
        };
        statement.query_map(params, row)?.collect()
    };
    read().map_err(failed(format_args!("reading {TABLE}")))?.into_iter().collect()
}

/// A machine as it stands with its node, which is in this provision state.
fn of_row(id: &str, doc: &[u8], node: Option<&str>) -> Result<DiscoveredMachine> {
    let machine: DiscoveredMachine = decode(TABLE, id, doc)?;
    Ok(machine.with_node_in(node.and_then(ProvisionState::parse)))
}

/// Decide about the boot of an unknown MAC address.
pub fn boot(
    connection: &Connection,
    boot: &UnknownBoot,
    limits: &DiscoveryLimits,
) -> Result<UnknownBootGrant> {
    if resource::by_key(connection, ResourceKind::Port, &boot.mac.to_string())?.is_some() {
        return Ok(Err(NotBooted::Known));
    }
    let (over, known): (Vec<_>, Vec<_>) =
        all(connection)?.into_iter().partition(|machine| machine.is_over(boot.at));
    for machine in over {
        remove(connection, machine.id)?;
    }
    let machine = match machine_to_boot(&known, boot, limits) {
        Ok(machine) => machine,
        Err(refused) => return Ok(Err(refused)),
    };
    if !known.iter().any(|known| known.id == machine.id) {
        put(connection, &machine)?;
    }
    Ok(Ok(machine.nonce))
}

/// Refuses a machine that was written since it was read at this version.
pub fn check_version(connection: &Connection, id: Uuid, version: u64) -> Result<()> {
    if by_id(connection, id)?.version == version { Ok(()) } else { Err(StoreError::Stale(id)) }
}

/// Refuses a machine of which a MAC address is a port's.
pub fn check_unknown(connection: &Connection, machine: &DiscoveredMachine) -> Result<()> {
    for mac in &machine.macs {
        if resource::by_key(connection, ResourceKind::Port, &mac.to_string())?.is_some() {
            return Err(StoreError::duplicate(Unique::ResourceKey, mac));
        }
    }
    Ok(())
}

/// Store it, in place of itself if it is there.
pub fn put(connection: &Connection, machine: &DiscoveredMachine) -> Result<()> {
    let (id, doc) = (machine.id.to_string(), encode(TABLE, machine.id, machine)?);
    let sql = "INSERT INTO discovered_machine (id, doc) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![id, doc]))
        .map_err(failed(format_args!("writing discovered machine {id}")))?;
    Ok(())
}

pub fn remove(connection: &Connection, id: Uuid) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM discovered_machine WHERE id = ?1")
        .and_then(|mut statement| statement.execute([id.to_string()]))
        .map_err(failed(format_args!("deleting discovered machine {id}")))?;
    Ok(())
}
