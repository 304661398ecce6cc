//! Erasure certificates and the log of the heads of their chains. They are added and read, and never changed or taken away.

use crate::change::{Change, LastStatement, rows};
use crate::database::Client;
use crate::document::{cell, decode, encode};
use crate::failure::failed;
use crate::text;
use crate::value::Value;
use model::Certificate;
use store::{Noun, Result, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

/// A transaction that adds to the log or to the changes of the key ends under this lock of the database.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4711, 2)";

/// Add the next certificate of its node, whose row is locked, and its line in the log at the end of the transaction.
pub async fn insert(change: &mut Change, node: Uuid, certificate: &Certificate) -> Result<()> {
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
    append(change, certificate)
}

/// Add a certificate, whatever its number.
pub async fn add(change: &Change, certificate: &Certificate) -> Result<()> {
    let doc = encode("certificate", &certificate.id, certificate)?;
    let (id, number) = (text::stored(&certificate.id), certificate.number.cast_signed());
    let sql = "INSERT INTO certificate (id, node, number, doc) VALUES ($1, $2, $3, $4)";
    let added = change.execute(sql, &[&&*id, &certificate.node, &number, &doc]).await;
    added.map(drop).map_err(failed(format_args!("writing certificate {}", certificate.id)))
}

/// The line is composed by the database, as [`store::certificate_log::line_after`] does it: what comes before it is known under
/// the lock only.
fn append(change: &mut Change, certificate: &Certificate) -> Result<()> {
    const APPEND: &str = r#"INSERT INTO certificate_log (seq, certificate, line)
        SELECT coalesce(last.seq, 0) + 1, $1, '{"index":' || coalesce((last.line::json ->> 'index')::bigint, 0) + 1
            || coalesce(',"previous":"' || encode(sha256(convert_to(last.line, 'UTF8')), 'hex') || '"', '') || ',' || $2::text
        FROM (VALUES (1)) AS new LEFT JOIN (SELECT seq, line FROM certificate_log ORDER BY seq DESC LIMIT 1) AS last ON true"#;
    let end = store::certificate_log::end_of_line(certificate)?;
    let values = vec![Value::text(&certificate.id), Value::text(&end)];
    let doing = format!("adding certificate {} to the log", certificate.id);
    change.end_with(LastStatement { lock: LOCK, sql: APPEND, values, doing });
    Ok(())
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

/// Stores a change of the key once.
const ADD_KEY_CHANGE: &str = "INSERT INTO certificate_key_change (doc)
    SELECT $1::text WHERE NOT EXISTS (SELECT 1 FROM certificate_key_change WHERE doc = $1::text)";

const ADDING_KEY_CHANGE: &str = "writing a change of the key of certificates";

/// Store a change of the key once, at the end of the transaction.
pub fn add_key_change(change: &mut Change, doc: &str) {
    let (values, doing) = (vec![Value::text(doc)], ADDING_KEY_CHANGE.to_owned());
    change.end_with(LastStatement { lock: LOCK, sql: ADD_KEY_CHANGE, values, doing });
}

/// Store a change of the key in a transaction that has the whole database to itself.
pub async fn import_key_change(change: &Change, doc: &str) -> Result<()> {
    let added = change.execute(ADD_KEY_CHANGE, &[&&*text::stored(doc)]).await;
    added.map(drop).map_err(failed(ADDING_KEY_CHANGE))
}

pub async fn key_changes(client: &Client) -> Result<Vec<String>> {
    let found = rows(client, "SELECT doc FROM certificate_key_change ORDER BY seq", &[]).await;
    let found = found.map_err(failed("reading the changes of the key of certificates"))?;
    found.iter().map(|row| Ok(text::read(cell(row, 0)?))).collect()
}
