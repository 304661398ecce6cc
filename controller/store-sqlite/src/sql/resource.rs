//! Resources: chassis, ports, port groups, volumes, allocations, runbooks, inspection rules.

use super::node_version;
use crate::document::{encode, failed, select};
use crate::writer::Change;
use model::{Node, Resource, ResourceKind};
use rusqlite::{Connection, params};
use store::{ResourceWrite, Result, StoreError, Unique};
use uuid::Uuid;

const TABLE: &str = "resource";

/// Write one; it comes back as it is stored, or as it was when deleted.
pub fn write(change: &mut Change<'_>, write: ResourceWrite) -> Result<Resource> {
    let (before, after) = match write {
        ResourceWrite::Create(mut resource) => {
            resource.version = 1;
            if by_uuid(change, resource.kind, resource.uuid)?.is_some() {
                return Err(StoreError::duplicate(Unique::ResourceUuid, resource.uuid));
            }
            put(
                change,
                "INSERT INTO resource (kind, uuid, doc) VALUES (?1, ?2, seal_secrets('resource', ?2, ?3))",
                &resource,
            )?;
            (None, resource)
        }
        ResourceWrite::Update(mut resource) => {
            let before = at_version(change, resource.kind, resource.uuid, resource.version)?;
            resource.version += 1;
            put(
                change,
                "UPDATE resource SET doc = seal_secrets('resource', ?2, ?3) WHERE kind = ?1 AND uuid = ?2",
                &resource,
            )?;
            (Some(before), resource)
        }
        ResourceWrite::Delete(kind, uuid, version) => {
            let gone = at_version(change, kind, uuid, version)?;
            change
                .prepare_cached("DELETE FROM resource WHERE kind = ?1 AND uuid = ?2")
                .and_then(|mut statement| statement.execute([kind.as_str(), &uuid.to_string()]))
                .map_err(failed(format_args!("deleting {} {uuid}", kind.as_str())))?;
            (None, gone)
        }
    };
    for node in [before.as_ref(), Some(&after)].into_iter().flatten().filter_map(Resource::rings_for) {
        change.ring(node);
    }
    Ok(after)
}

/// Remove what ends with this write of its node ([`Resource::ends_with`]).
pub fn end_with(connection: &Connection, node: &Node) -> Result<()> {
    let instance = node.instance_uuid.map(|uuid| uuid.to_string());
    connection
        .prepare_cached("DELETE FROM resource WHERE node = ?1 AND kind = 'allocation' AND uuid IS NOT ?2")
        .and_then(|mut statement| statement.execute(params![node.uuid.to_string(), instance]))
        .map_err(failed(format_args!("ending the allocation of node {}", node.uuid)))?;
    Ok(())
}

pub fn by_ident(connection: &Connection, kind: ResourceKind, ident: &str) -> Result<Option<Resource>> {
    if let Ok(uuid) = Uuid::parse_str(ident)
        && let Some(found) = by_uuid(connection, kind, uuid)?
    {
        return Ok(Some(found));
    }
    by(connection, kind, "name", ident)
}

pub fn by_key(connection: &Connection, kind: ResourceKind, key: &str) -> Result<Option<Resource>> {
    by(connection, kind, "key", key)
}

fn by_uuid(connection: &Connection, kind: ResourceKind, uuid: Uuid) -> Result<Option<Resource>> {
    by(connection, kind, "uuid", &uuid.to_string())
}

fn by(connection: &Connection, kind: ResourceKind, column: &str, value: &str) -> Result<Option<Resource>> {
    let sql = format!(
        "SELECT uuid, open_secrets('resource', uuid, doc) FROM resource WHERE kind = ?1 AND \"{column}\" = ?2"
    );
    Ok(select(connection, TABLE, &sql, [kind.as_str(), value])?.pop())
}

pub fn all(connection: &Connection, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
    match node {
        Some(node) => {
            let sql = "SELECT uuid, open_secrets('resource', uuid, doc) FROM resource WHERE node = ?1 AND kind = ?2 ORDER BY created_at, uuid";
            select(connection, TABLE, sql, [&node.to_string(), kind.as_str()])
        }
        None => {
            let sql = "SELECT uuid, open_secrets('resource', uuid, doc) FROM resource WHERE kind = ?1 ORDER BY created_at, uuid";
            select(connection, TABLE, sql, [kind.as_str()])
        }
    }
}

/// Those of a kind with these UUIDs, in their order.
pub fn by_uuids(connection: &Connection, kind: ResourceKind, uuids: &[String]) -> Result<Vec<Resource>> {
    let sql = "SELECT uuid, open_secrets('resource', uuid, doc) FROM resource WHERE kind = ?1 AND uuid = ?2";
    let mut found = Vec::with_capacity(uuids.len());
    for uuid in uuids {
        found.extend(select(connection, TABLE, sql, [kind.as_str(), uuid])?);
    }
    Ok(found)
}

/// The stored resource; rejects one that is gone, or was written since it was read.
fn at_version(connection: &Connection, kind: ResourceKind, uuid: Uuid, read: u64) -> Result<Resource> {
    match by_uuid(connection, kind, uuid)? {
        None => Err(StoreError::not_found(kind, uuid)),
        Some(stored) if stored.version == read => Ok(stored),
        Some(_) => Err(StoreError::Stale(uuid)),
    }
}

/// Write the document, unless it is of an unknown node, or its name or key belongs to another one of its kind.
fn put(connection: &Change<'_>, sql: &str, resource: &Resource) -> Result<()> {
    if let Some(node) = resource.node {
        node_version::check_exists(connection, node)?;
    }
    let (kind, uuid) = (resource.kind.as_str(), resource.uuid.to_string());
    for (column, what, value) in
        [("name", Unique::ResourceName, &resource.name), ("key", Unique::ResourceKey, &resource.key)]
    {
        let Some(value) = value else { continue };
        let taken = connection
            .prepare_cached(&format!(
                "SELECT 1 FROM resource WHERE kind = ?1 AND \"{column}\" = ?2 AND uuid <> ?3"
            ))
            .and_then(|mut statement| statement.exists([kind, value, &uuid]))
            .map_err(failed(format_args!("looking for another {kind} of this {column}")))?;
        if taken {
            return Err(StoreError::duplicate(what, value));
        }
    }
    let doc = encode(TABLE, resource.uuid, resource)?;
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![kind, uuid, doc]))
        .map_err(failed(format_args!("writing {kind} {uuid}")))?;
    Ok(())
}
