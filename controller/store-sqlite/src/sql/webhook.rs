//! How far webhooks got the events, and the events that they were not given.

use super::event_log;
use crate::document::{encode, failed, select};
use model::{DeadLetter, Delivery, Timestamp};
use rusqlite::{Connection, params};
use store::Result;

pub fn take(
    connection: &Connection,
    webhook: &str,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Delivery>> {
    let stored = match by_name(connection, webhook)? {
        Some(stored) => stored,
        None => Delivery::new(webhook, event_log::newest(connection)?.to_string()),
    };
    if !stored.is_free_for(holder, now) {
        return Ok(None);
    }
    let held = stored.held(holder, until);
    write(connection, &held)?;
    Ok(Some(held))
}

/// False: another holds it.
pub fn put(connection: &Connection, delivery: &Delivery, letter: Option<&DeadLetter>) -> Result<bool> {
    let stored = by_name(connection, &delivery.webhook)?;
    if stored.is_none_or(|stored| stored.holder != delivery.holder) {
        return Ok(false);
    }
    write(connection, delivery)?;
    letter.map_or(Ok(()), |letter| put_letter(connection, letter))?;
    Ok(true)
}

pub fn all(connection: &Connection) -> Result<Vec<Delivery>> {
    select(connection, "webhook", "SELECT name, doc FROM webhook ORDER BY name", [])
}

fn by_name(connection: &Connection, name: &str) -> Result<Option<Delivery>> {
    Ok(select(connection, "webhook", "SELECT name, doc FROM webhook WHERE name = ?1", [name])?.pop())
}

fn write(connection: &Connection, delivery: &Delivery) -> Result<()> {
    let doc = encode("webhook", &delivery.webhook, delivery)?;
    connection
        .prepare_cached("INSERT INTO webhook (name, doc) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET doc = excluded.doc")
        .and_then(|mut statement| statement.execute(params![delivery.webhook, doc]))
        .map_err(failed(format_args!("writing webhook {}", delivery.webhook)))?;
    Ok(())
}

pub fn letters(
    connection: &Connection,
    webhook: &str,
    only_retried: bool,
    limit: usize,
) -> Result<Vec<DeadLetter>> {
    let sql = "SELECT webhook || ' ' || place, doc FROM dead_letter WHERE webhook = ?1 AND (retry OR NOT ?2)
        ORDER BY place LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    select(connection, "dead letter", sql, params![webhook, only_retried, limit])
}

pub fn put_letter(connection: &Connection, letter: &DeadLetter) -> Result<()> {
    let doc = encode("dead letter", letter.place, letter)?;
    let sql = "INSERT INTO dead_letter (webhook, place, doc) VALUES (?1, ?2, ?3)
        ON CONFLICT (webhook, place) DO UPDATE SET doc = excluded.doc";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![letter.webhook, letter.place.cast_signed(), doc]))
        .map_err(failed(format_args!("writing a dead letter of webhook {}", letter.webhook)))?;
    Ok(())
}

pub fn remove_letter(connection: &Connection, webhook: &str, place: u64) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM dead_letter WHERE webhook = ?1 AND place = ?2")
        .and_then(|mut statement| statement.execute(params![webhook, place.cast_signed()]))
        .map_err(failed(format_args!("deleting a dead letter of webhook {webhook}")))?;
    Ok(())
}
