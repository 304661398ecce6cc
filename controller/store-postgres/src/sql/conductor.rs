//! Reports of controllers.

use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::{cell, decode, encode};
use crate::failure::failed;
use crate::migrate::{self, MIGRATIONS};
use crate::text;
use model::{ConductorReport, Timestamp};
use store::Result;

/// Put a report in the place of the one of its controller, with the newest schema that it knows.
pub async fn put(change: &Change, report: &ConductorReport) -> Result<()> {
    const PUT: &str = "INSERT INTO conductor (hostname, doc, schema) VALUES ($1, $2, $3)
        ON CONFLICT (hostname) DO UPDATE SET doc = excluded.doc, schema = excluded.schema";
    let hostname = &report.hostname;
    let doc = encode("conductor", hostname, report)?;
    let knows = migrate::number(MIGRATIONS.len());
    let written = change.execute(PUT, &[&&*text::stored(hostname), &doc, &knows]).await;
    written.map(drop).map_err(failed(format_args!("writing the report of controller {hostname}")))
}

pub async fn remove(change: &Change, hostname: &str) -> Result<()> {
    let gone =
        change.execute("DELETE FROM conductor WHERE hostname = $1", &[&&*text::stored(hostname)]).await;
    gone.map(drop).map_err(failed(format_args!("removing the report of controller {hostname}")))
}

pub async fn all(client: &Client) -> Result<Vec<ConductorReport>> {
    let found = rows(client, "SELECT doc FROM conductor ORDER BY hostname", &[]).await;
    let found = found.map_err(failed("reading the reports of controllers"))?;
    found.iter().map(|row| decode("the report of a", "controller", cell(row, 0)?)).collect()
}

/// The time of the database's machine.
pub async fn clock(client: &Client) -> Result<Timestamp> {
    const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let found = rows(client, NOW, &[]).await.map_err(failed("reading the database's clock"))?;
    let now = found.first().map(|row| cell::<i64>(row, 0)).transpose()?;
    Ok(Timestamp(now.unwrap_or_default()))
}
