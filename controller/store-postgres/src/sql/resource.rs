//! Resources: chassis, ports, port groups, volumes, allocations, runbooks, inspection rules.

use crate::change::{Change, Params, rows};
use crate::columns;
use crate::database::Client;
use crate::document::{cell, open, seal};
use crate::failure::{Failure, failed};
use crate::text;
use model::{Node, Resource, ResourceKind};
use store::{Noun, ResourceWrite, Result, StoreError, Unique};
use stored_secrets::DatabaseKey;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

const TABLE: &str = "resource";

/// Write one; it comes back as it is stored, or as it was when deleted.
pub async fn write(change: &mut Change, key: &DatabaseKey, write: ResourceWrite) -> Result<Resource> {
    let (before, after) = match write {
        ResourceWrite::Create(mut resource) => {
            resource.version = 1;
            put(change, key, &columns::RESOURCE.insert, &resource).await?;
            (None, resource)
        }
        ResourceWrite::Update(mut resource) => {
            let before = at_version(change, key, resource.kind, resource.uuid, resource.version).await?;
            resource.version += 1;
            put(change, key, &columns::RESOURCE.update, &resource).await?;
            (Some(before), resource)
        }
        ResourceWrite::Delete(kind, uuid, version) => {
            let gone = at_version(change, key, kind, uuid, version).await?;
            let sql = "DELETE FROM resource WHERE kind = $1 AND uuid = $2";
            let deleted = change.execute(sql, &[&kind.as_str(), &uuid]).await;
            deleted.map_err(failed(format_args!("deleting {} {uuid}", kind.as_str())))?;
            (None, gone)
        }
    };
    for node in [before.as_ref(), Some(&after)].into_iter().flatten().filter_map(Resource::rings_for) {
        change.ring(node);
    }
    Ok(after)
}

/// Create one, unless its key belongs to another of its kind.
pub async fn create_if_free(change: &Change, key: &DatabaseKey, mut new: Resource) -> Result<()> {
    new.version = 1;
    let sql =
        format!("{} ON CONFLICT (kind, key) WHERE key IS NOT NULL DO NOTHING", columns::RESOURCE.insert);
    put(change, key, &sql, &new).await
}

/// Add one as it is.
pub async fn add(change: &Change, key: &DatabaseKey, resource: &Resource) -> Result<()> {
    put(change, key, &columns::RESOURCE.insert, resource).await
}

/// Remove what ends with this write of its node ([`Resource::ends_with`]).
pub async fn end_with(change: &Change, node: &Node) -> Result<()> {
    const END: &str = "DELETE FROM resource
        WHERE node_uuid = $1 AND kind = 'allocation' AND uuid IS DISTINCT FROM $2";
    let ended = change.execute(END, &[&node.uuid, &node.instance_uuid]).await;
    ended.map(drop).map_err(failed(format_args!("ending the allocation of node {}", node.uuid)))
}

/// The stored resource, locked; rejects one that is gone, or was written since it was read.
async fn at_version(
    change: &Change,
    key: &DatabaseKey,
    kind: ResourceKind,
    uuid: Uuid,
    read: u64,
) -> Result<Resource> {
    let sql = "SELECT uuid, doc FROM resource WHERE kind = $1 AND uuid = $2 FOR UPDATE";
    let row = change.query_opt(sql, &[&kind.as_str(), &uuid]).await;
    let row = row.map_err(failed(format_args!("reading {} {uuid}", kind.as_str())))?;
    let stored = row.map(|row| of_row(key, &row)).transpose()?;
    match stored {
        None => Err(StoreError::not_found(kind, uuid)),
        Some(stored) if stored.version == read => Ok(stored),
        Some(_) => Err(StoreError::Stale(uuid)),
    }
}

async fn put(change: &Change, key: &DatabaseKey, sql: &str, resource: &Resource) -> Result<()> {
    let (columns, doc) = (columns::of_resource(resource), seal(key, TABLE, resource.uuid, resource)?);
    let values = columns.iter().map(|(_, value)| value as &(dyn ToSql + Sync));
    let params: Vec<_> = values.chain([&doc as &(dyn ToSql + Sync)]).collect();
    change.execute(sql, &params).await.map(drop).map_err(|failure| refusal(resource, failure))
}

fn refusal(resource: &Resource, failure: Failure) -> StoreError {
    let of = |value: &Option<String>| value.clone().unwrap_or_default();
    match (failure.duplicate_in(), resource.node) {
        (Some("resource_pkey"), _) => StoreError::duplicate(Unique::ResourceUuid, resource.uuid),
        (Some("resource_unique_name"), _) => StoreError::duplicate(Unique::ResourceName, of(&resource.name)),
        (Some("resource_unique_key"), _) => StoreError::duplicate(Unique::ResourceKey, of(&resource.key)),
        (_, Some(node)) if failure.is_orphan() => StoreError::not_found(Noun::Node, node),
        _ => failure.while_doing(format_args!("writing {} {}", resource.kind.as_str(), resource.uuid)),
    }
}

/// The resource of a row of its UUID and document.
pub fn of_row(key: &DatabaseKey, row: &Row) -> Result<Resource> {
    open(key, TABLE, cell::<Uuid>(row, 0)?, cell(row, 1)?)
}

async fn select(client: &Client, key: &DatabaseKey, sql: &str, params: Params<'_>) -> Result<Vec<Resource>> {
    let found = rows(client, sql, params).await.map_err(failed("reading resources"))?;
    found.iter().map(|row| of_row(key, row)).collect()
}

pub async fn by_ident(
    client: &Client,
    key: &DatabaseKey,
    kind: ResourceKind,
    ident: &str,
) -> Result<Option<Resource>> {
    if let Ok(uuid) = Uuid::parse_str(ident)
        && let Some(found) = by_uuids(client, key, kind, &[uuid]).await?.pop()
    {
        return Ok(Some(found));
    }
    let sql = "SELECT uuid, doc FROM resource WHERE kind = $1 AND name = $2";
    Ok(select(client, key, sql, &[&kind.as_str(), &&*text::stored(ident)]).await?.pop())
}

pub async fn by_key(
    client: &Client,
    key: &DatabaseKey,
    kind: ResourceKind,
    wanted: &str,
) -> Result<Option<Resource>> {
    let sql = "SELECT uuid, doc FROM resource WHERE kind = $1 AND key = $2";
    Ok(select(client, key, sql, &[&kind.as_str(), &&*text::stored(wanted)]).await?.pop())
}

/// Those of a kind with these UUIDs, in their order.
pub async fn by_uuids(
    client: &Client,
    key: &DatabaseKey,
    kind: ResourceKind,
    uuids: &[Uuid],
) -> Result<Vec<Resource>> {
    let sql = "SELECT uuid, doc FROM resource WHERE kind = $1 AND uuid = ANY($2)";
    let mut found = select(client, key, sql, &[&kind.as_str(), &uuids]).await?;
    found.sort_by_key(|resource| uuids.iter().position(|uuid| *uuid == resource.uuid));
    Ok(found)
}

pub async fn all(
    client: &Client,
    key: &DatabaseKey,
    kind: ResourceKind,
    node: Option<Uuid>,
) -> Result<Vec<Resource>> {
    match node {
        Some(node) => {
            let sql =
                "SELECT uuid, doc FROM resource WHERE node_uuid = $1 AND kind = $2 ORDER BY created_at, uuid";
            select(client, key, sql, &[&node, &kind.as_str()]).await
        }
        None => {
            let sql = "SELECT uuid, doc FROM resource WHERE kind = $1 ORDER BY created_at, uuid";
            select(client, key, sql, &[&kind.as_str()]).await
        }
    }
}
