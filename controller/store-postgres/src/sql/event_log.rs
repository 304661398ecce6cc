//! The log of the events of all nodes: what transactions add, and what is given a number then.

use crate::change::{Change, LastStatement};
use crate::document::{cell, decode, encode};
use crate::failure::failed;
use crate::value::Value;
use model::LoggedEvent;
use store::{EventCursor, EventPage, EventRange, KeptEvents, Result};

/// The transaction that gives numbers ends under this lock of the database.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4711, 4)";

/// Most events that get their numbers in one transaction.
const AT_ONCE: i64 = 1000;

/// Add the events of this transaction.
pub async fn add(change: &Change, events: &[LoggedEvent]) -> Result<()> {
    const ADD: &str = "INSERT INTO event_pending (at, doc)
        SELECT at, doc FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS new (at, doc, place) ORDER BY place";
    let encoded = events.iter().map(|event| encode("logged event", event.event.uuid, event));
    let docs = encoded.collect::<Result<Vec<_>>>()?;
    let times: Vec<i64> = events.iter().map(|event| event.event.at.0).collect();
    let added = change.execute(ADD, &[&times, &docs]).await;
    added.map(drop).map_err(failed("adding to the log of events"))
}

/// Whether something has no number yet.
pub async fn is_pending(change: &Change) -> Result<bool> {
    let row = change.query_opt("SELECT EXISTS (SELECT 1 FROM event_pending)", &[]).await;
    let row = row.map_err(failed("reading the log of events"))?;
    row.map_or(Ok(false), |row| cell(&row, 0))
}

/// Give numbers to the first of what is committed, at the end of the transaction.
pub fn number(change: &mut Change) {
    const NUMBER: &str = "WITH head AS (SELECT coalesce((SELECT last FROM event_head), 0) AS last),
        moved AS (DELETE FROM event_pending
            WHERE seq IN (SELECT seq FROM event_pending ORDER BY seq LIMIT $1) RETURNING seq, at, doc),
        logged AS (INSERT INTO event_log (place, at, doc)
            SELECT head.last + row_number() OVER (ORDER BY seq), at, doc FROM moved, head RETURNING place)
        INSERT INTO event_head (id, last) SELECT 1, max(place) FROM logged HAVING count(*) > 0
            ON CONFLICT (id) DO UPDATE SET last = excluded.last";
    let values = vec![Value::Number(Some(AT_ONCE))];
    let doing = "numbering the log of events".to_owned();
    change.end_with(LastStatement { lock: LOCK, sql: NUMBER, values, doing });
}

/// The page behind a cursor, of what has numbers. All statements see the same moment.
pub async fn page(change: &Change, after: Option<EventCursor>, limit: usize) -> Result<EventPage> {
    let range = range(change).await?;
    let found = rows(change, range.begin(after)?, EventPage::rows_needed(limit)).await?;
    EventPage::of(range, after, found, limit)
}

/// The cursor behind the newest event.
pub async fn newest(change: &Change) -> Result<EventCursor> {
    let last = range(change).await?.last;
    let behind = |(place, event): &(u64, LoggedEvent)| EventCursor::behind(*place, event.event.uuid);
    Ok(rows(change, last, 1).await?.first().map_or(EventCursor::at(last), behind))
}

/// Delete from the oldest on, at most [`KeptEvents::AT_ONCE`], what is older than `oldest` or more than `number`.
pub async fn prune(change: &Change, oldest: i64, number: u64) -> Result<u64> {
    const PRUNE: &str = "WITH front AS (SELECT place, at FROM event_log ORDER BY place LIMIT $1)
        DELETE FROM event_log WHERE place IN (SELECT place FROM front) AND (place <= $2
            OR place < coalesce((SELECT min(place) FROM front WHERE at >= $3), 9223372036854775807))";
    let excess = signed(range(change).await?.last.saturating_sub(number));
    let deleted = change.execute(PRUNE, &[&signed(KeptEvents::AT_ONCE), &excess, &oldest]).await;
    deleted.map_err(failed("deleting old events"))
}

async fn range(change: &Change) -> Result<EventRange> {
    const ENDS: &str =
        "SELECT (SELECT min(place) FROM event_log), coalesce((SELECT last FROM event_head), 0)";
    let row = change.query_opt(ENDS, &[]).await.map_err(failed("reading the ends of the log of events"))?;
    let Some(row) = row else { return Ok(EventRange { first: 1, last: 0 }) };
    let (first, last): (Option<i64>, i64) = (cell(&row, 0)?, cell(&row, 1)?);
    let last = last.cast_unsigned();
    Ok(EventRange { first: first.map_or(last + 1, i64::cast_unsigned), last })
}

async fn rows(change: &Change, from: u64, most: usize) -> Result<Vec<(u64, LoggedEvent)>> {
    let sql = "SELECT place, doc FROM event_log WHERE place >= $1 ORDER BY place LIMIT $2";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found =
        change.query(sql, &[&signed(from), &most]).await.map_err(failed("reading the log of events"))?;
    let event = |row: &tokio_postgres::Row| {
        let place: i64 = cell(row, 0)?;
        Ok((place.cast_unsigned(), decode("logged event", place, cell(row, 1)?)?))
    };
    found.iter().map(event).collect()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
