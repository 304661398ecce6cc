//! Erasure certificates and the log of the heads of their chains. They are added and read, and never changed or taken away.

use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::{cell, decode, encode};
use crate::failure::failed;
use crate::text;
use model::Certificate;
use store::{Noun, Result, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

/// A transaction that adds to the log or to the changes of the key holds this lock of the database until it ends.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4711, 2)";

/// Add the next certificate of its node, whose row is locked, and its line in the log.
pub async fn insert(change: &Change, node: Uuid, certificate: &Certificate) -> Result<()> {
    let doing = || format!("writing certificate {}", certificate.id);
    let last = change
        .query_opt("SELECT max(number) FROM certificate WHERE node = $1", &[&node])
        .await
        .map_err(failed(doing()))?;
    let last = last.map_or(Ok(None), |row| cell::<Option<i64>>(&row, 0))?.unwrap_or_default();
    let number = certificate.number.cast_signed();
    if certificate.node != node || last.checked_add(1) != Some(number) {
        return Err(StoreError::Stale(node));
    }
    add(change, certificate).await?;
    append(change, certificate).await
}

/// Add a certificate, whatever its number.
pub async fn add(change: &Change, certificate: &Certificate) -> Result<()> {
    let doc = encode("certificate", &certificate.id, certificate)?;
    let (id, number) = (text::stored(&certificate.id), certificate.number.cast_signed());
    let sql = "INSERT INTO certificate (id, node, number, doc) VALUES ($1, $2, $3, $4)";
    let added = change.execute(sql, &[&&*id, &certificate.node, &number, &doc]).await;
    added.map(drop).map_err(failed(format_args!("writing certificate {}", certificate.id)))
}

async fn append(change: &Change, certificate: &Certificate) -> Result<()> {
    let doing = || format!("adding certificate {} to the log", certificate.id);
    // What comes after this statement sees the line of the holder of the lock before it.
    change.query(LOCK, &[]).await.map_err(failed(doing()))?;
    let last = change
        .query_opt("SELECT seq, line FROM certificate_log ORDER BY seq DESC LIMIT 1", &[])
        .await
        .map_err(failed(doing()))?;
    let (seq, last) = match &last {
        Some(row) => (cell::<i64>(row, 0)? + 1, Some(cell::<&str>(row, 1)?)),
        None => (1, None),
    };
    let line = store::certificate_log::line_after(last, certificate)?;
    add_line(change, seq, &certificate.id, &line).await
}

/// Add a line, which is of this place and this certificate.
pub async fn add_line(change: &Change, seq: i64, certificate: &str, line: &str) -> Result<()> {
    let sql = "INSERT INTO certificate_log (seq, certificate, line) VALUES ($1, $2, $3)";
    let added = change.execute(sql, &[&seq, &&*text::stored(certificate), &line]).await;
    added.map(drop).map_err(failed(format_args!("adding certificate {certificate} to the log")))
}

fn of_row(row: &Row) -> Result<Certificate> {
    decode("certificate", cell::<&str>(row, 0)?, cell(row, 1)?)
}

pub async fn of_node(client: &Client, node: Uuid) -> Result<Vec<Certificate>> {
    let sql = "SELECT id, doc FROM certificate WHERE node = $1 ORDER BY number";
    let found = rows(client, sql, &[&node]).await;
    found.map_err(failed("reading certificates"))?.iter().map(of_row).collect()
}

pub async fn newest(client: &Client, node: Uuid) -> Result<Option<Certificate>> {
    let sql = "SELECT id, doc FROM certificate WHERE node = $1 ORDER BY number DESC LIMIT 1";
    let found = rows(client, sql, &[&node]).await.map_err(failed("reading a certificate"))?;
    found.first().map(of_row).transpose()
}

pub async fn by_id(client: &Client, id: &str) -> Result<Certificate> {
    let sql = "SELECT id, doc FROM certificate WHERE id = $1";
    let found = rows(client, sql, &[&&*text::stored(id)]).await.map_err(failed("reading a certificate"))?;
    found.first().map(of_row).transpose()?.ok_or_else(|| StoreError::not_found(Noun::Certificate, id))
}

/// Lines from that index on, at most so many.
pub async fn lines(client: &Client, from: u64, limit: usize) -> Result<Vec<String>> {
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = "SELECT line FROM certificate_log WHERE seq >= $1 ORDER BY seq LIMIT $2";
    let found = rows(client, sql, &[&from, &limit]).await;
    found.map_err(failed("reading the log of certificates"))?.iter().map(|row| cell(row, 0)).collect()
}

/// Store a change of the key once.
pub async fn add_key_change(change: &Change, doc: &str) -> Result<()> {
    const ADD: &str = "INSERT INTO certificate_key_change (doc)
        SELECT $1::text WHERE NOT EXISTS (SELECT 1 FROM certificate_key_change WHERE doc = $1::text)";
    let doing = "writing a change of the key of certificates";
    change.query(LOCK, &[]).await.map_err(failed(doing))?;
    change.execute(ADD, &[&&*text::stored(doc)]).await.map(drop).map_err(failed(doing))
}

pub async fn key_changes(client: &Client) -> Result<Vec<String>> {
    let found = rows(client, "SELECT doc FROM certificate_key_change ORDER BY seq", &[]).await;
    let found = found.map_err(failed("reading the changes of the key of certificates"))?;
    found.iter().map(|row| Ok(text::read(cell(row, 0)?))).collect()
}
