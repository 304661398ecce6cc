//! How far webhooks got the events, and the events that they were not given.

use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::{cell, decode, encode};
use crate::failure::failed;
use model::{DeadLetter, Delivery, Timestamp};
use store::{EventCursor, Result};

/// Take it; a new one begins behind `newest`.
pub async fn take(
    change: &Change,
    (webhook, holder): (&str, &str),
    newest: EventCursor,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Delivery>> {
    const ADD: &str = "INSERT INTO webhook (name, doc) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    let doc = encode("webhook", webhook, &Delivery::new(webhook, newest.to_string()))?;
    change.execute(ADD, &[&webhook, &doc]).await.map_err(failed("adding a webhook"))?;
    let Some(stored) = locked(change, webhook).await? else { return Ok(None) };
    if !stored.is_free_for(holder, now) {
        return Ok(None);
    }
    let held = stored.held(holder, until);
    write(change, &held).await?;
    Ok(Some(held))
}

/// False: another holds it.
pub async fn put(change: &Change, delivery: &Delivery, letter: Option<&DeadLetter>) -> Result<bool> {
    let stored = locked(change, &delivery.webhook).await?;
    if stored.is_none_or(|stored| stored.holder != delivery.holder) {
        return Ok(false);
    }
    write(change, delivery).await?;
    if let Some(letter) = letter {
        put_letter(change, letter).await?;
    }
    Ok(true)
}

async fn locked(change: &Change, name: &str) -> Result<Option<Delivery>> {
    let row = change.query_opt("SELECT doc FROM webhook WHERE name = $1 FOR NO KEY UPDATE", &[&name]).await;
    let row = row.map_err(failed("reading a webhook"))?;
    row.map(|row| decode("webhook", name, cell(&row, 0)?)).transpose()
}

async fn write(change: &Change, delivery: &Delivery) -> Result<()> {
    let doc = encode("webhook", &delivery.webhook, delivery)?;
    let written =
        change.execute("UPDATE webhook SET doc = $2 WHERE name = $1", &[&delivery.webhook, &doc]).await;
    written.map(drop).map_err(failed(format_args!("writing webhook {}", delivery.webhook)))
}

pub async fn all(client: &Client) -> Result<Vec<Delivery>> {
    let found = rows(client, "SELECT name, doc FROM webhook ORDER BY name", &[]).await;
    let found = found.map_err(failed("reading webhooks"))?;
    found.iter().map(|row| decode("webhook", cell::<&str>(row, 0)?, cell(row, 1)?)).collect()
}

pub async fn letters(
    client: &Client,
    webhook: &str,
    only_retried: bool,
    limit: usize,
) -> Result<Vec<DeadLetter>> {
    let sql =
        "SELECT place, doc FROM dead_letter WHERE webhook = $1 AND (retry OR NOT $2) ORDER BY place LIMIT $3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = rows(client, sql, &[&webhook, &only_retried, &limit]).await;
    let found = found.map_err(failed("reading dead letters"))?;
    found.iter().map(|row| decode("dead letter", cell::<i64>(row, 0)?, cell(row, 1)?)).collect()
}

pub async fn put_letter(change: &Change, letter: &DeadLetter) -> Result<()> {
    const PUT: &str = "INSERT INTO dead_letter (webhook, place, retry, doc) VALUES ($1, $2, $3, $4)
        ON CONFLICT (webhook, place) DO UPDATE SET retry = excluded.retry, doc = excluded.doc";
    let doc = encode("dead letter", letter.place, letter)?;
    let place = letter.place.cast_signed();
    let put = change.execute(PUT, &[&letter.webhook, &place, &letter.retry, &doc]).await;
    put.map(drop).map_err(failed(format_args!("writing a dead letter of webhook {}", letter.webhook)))
}

pub async fn remove_letter(change: &Change, webhook: &str, place: u64) -> Result<()> {
    let sql = "DELETE FROM dead_letter WHERE webhook = $1 AND place = $2";
    let gone = change.execute(sql, &[&webhook, &place.cast_signed()]).await;
    gone.map(drop).map_err(failed(format_args!("deleting a dead letter of webhook {webhook}")))
}
