//! Deploy templates.

use crate::document::{encode, failed, select};
use model::DeployTemplate;
use rusqlite::{Connection, OptionalExtension, params};
use store::{Noun, Result, StoreError, Unique};
use uuid::Uuid;

const TABLE: &str = "deploy_template";

pub fn insert(connection: &Connection, template: &DeployTemplate) -> Result<()> {
    if version(connection, template.uuid)?.is_some() {
        return Err(StoreError::duplicate(Unique::DeployTemplateUuid, template.uuid));
    }
    check_unique(connection, template)?;
    write(connection, "INSERT INTO deploy_template (uuid, doc) VALUES (?1, ?2)", template)
}

/// Write `template` over the version before its own.
pub fn update(connection: &Connection, template: &DeployTemplate) -> Result<()> {
    let stored = version(connection, template.uuid)?.ok_or_else(|| missing(template.uuid))?;
    if stored.checked_add(1) != Some(template.version) {
        return Err(StoreError::Stale(template.uuid));
    }
    check_unique(connection, template)?;
    write(connection, "UPDATE deploy_template SET doc = ?2 WHERE uuid = ?1", template)
}

pub fn delete(connection: &Connection, uuid: Uuid) -> Result<()> {
    let gone = connection
        .prepare_cached("DELETE FROM deploy_template WHERE uuid = ?1")
        .and_then(|mut statement| statement.execute([uuid.to_string()]))
        .map_err(failed(format_args!("deleting deploy template {uuid}")))?;
    if gone == 0 { Err(missing(uuid)) } else { Ok(()) }
}

pub fn by_ident(connection: &Connection, ident: &str) -> Result<Option<DeployTemplate>> {
    if let Ok(uuid) = Uuid::parse_str(ident) {
        let sql = "SELECT uuid, doc FROM deploy_template WHERE uuid = ?1";
        if let Some(template) = select(connection, TABLE, sql, [uuid.to_string()])?.pop() {
            return Ok(Some(template));
        }
    }
    Ok(select(connection, TABLE, "SELECT uuid, doc FROM deploy_template WHERE name = ?1", [ident])?.pop())
}

pub fn all(connection: &Connection) -> Result<Vec<DeployTemplate>> {
    select(connection, TABLE, "SELECT uuid, doc FROM deploy_template ORDER BY created_at, uuid", [])
}

pub fn named(connection: &Connection, names: &[String]) -> Result<Vec<DeployTemplate>> {
    let names = serde_json::to_string(names).map_err(failed("looking for deploy templates"))?;
    let sql = "SELECT uuid, doc FROM deploy_template
               WHERE name IN (SELECT value FROM json_each(?1)) ORDER BY name";
    select(connection, TABLE, sql, [names])
}

pub fn missing(ident: impl ToString) -> StoreError {
    StoreError::not_found(Noun::DeployTemplate, ident)
}

fn version(connection: &Connection, uuid: Uuid) -> Result<Option<u64>> {
    let version: Option<i64> = connection
        .prepare_cached("SELECT version FROM deploy_template WHERE uuid = ?1")
        .and_then(|mut statement| statement.query_row([uuid.to_string()], |row| row.get(0)).optional())
        .map_err(failed(format_args!("reading deploy template {uuid}")))?;
    Ok(version.map(i64::cast_unsigned))
}

/// Refuses a template whose name belongs to another one, in the words of the trait.
fn check_unique(connection: &Connection, template: &DeployTemplate) -> Result<()> {
    let taken = connection
        .prepare_cached("SELECT 1 FROM deploy_template WHERE name = ?1 AND uuid <> ?2")
        .and_then(|mut statement| statement.exists([&template.name, &template.uuid.to_string()]))
        .map_err(failed("looking for another deploy template of this name"))?;
    if taken { Err(StoreError::duplicate(Unique::DeployTemplateName, &template.name)) } else { Ok(()) }
}

fn write(connection: &Connection, sql: &str, template: &DeployTemplate) -> Result<()> {
    let (uuid, doc) = (template.uuid.to_string(), encode(TABLE, template.uuid, template)?);
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![uuid, doc]))
        .map_err(failed(format_args!("writing deploy template {uuid}")))?;
    Ok(())
}
