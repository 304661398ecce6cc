//! The log of the events of all nodes.

use crate::document::{decode, encode, failed};
use model::LoggedEvent;
use rusqlite::{Connection, OptionalExtension, params};
use store::{EventCursor, EventPage, EventRange, KeptEvents, Result};

/// Add an event.
pub fn append(connection: &Connection, event: &LoggedEvent) -> Result<()> {
    let doc = encode("logged event", event.event.uuid, event)?;
    connection
        .prepare_cached("INSERT INTO event_log (at, doc) VALUES (?1, ?2)")
        .and_then(|mut statement| statement.execute(params![event.event.at.0, doc]))
        .map_err(failed("adding an event to the log"))?;
    Ok(())
}

/// The page behind a cursor.
pub fn page(connection: &Connection, after: Option<EventCursor>, limit: usize) -> Result<EventPage> {
    let range = range(connection)?;
    EventPage::of(range, after, rows(connection, range.begin(after)?, EventPage::rows_needed(limit))?, limit)
}

/// The cursor behind the newest event.
pub fn newest(connection: &Connection) -> Result<EventCursor> {
    let last = range(connection)?.last;
    let behind = |(place, event): &(u64, LoggedEvent)| EventCursor::behind(*place, event.event.uuid);
    Ok(rows(connection, last, 1)?.first().map_or(EventCursor::at(last), behind))
}

/// Delete from the oldest on, at most [`KeptEvents::AT_ONCE`], what is older than `oldest` or more than `number`.
pub fn prune(connection: &Connection, oldest: i64, number: u64) -> Result<u64> {
    const FRONT: &str = "SELECT place, at FROM event_log ORDER BY place LIMIT ?1";
    let sql = format!(
        "DELETE FROM event_log WHERE place IN (SELECT place FROM event_log ORDER BY place LIMIT ?1)
         AND (place <= ?2 OR place < ifnull((SELECT min(place) FROM ({FRONT}) WHERE at >= ?3), ?4))"
    );
    let excess = signed(range(connection)?.last.saturating_sub(number));
    let deleted = connection
        .prepare_cached(&sql)
        .and_then(|mut delete| delete.execute(params![signed(KeptEvents::AT_ONCE), excess, oldest, i64::MAX]))
        .map_err(failed("deleting old events"))?;
    Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
}

fn range(connection: &Connection) -> Result<EventRange> {
    let number = |sql: &str| {
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, Option<i64>>(0)).optional())
            .map(|number| number.flatten().and_then(|number| u64::try_from(number).ok()))
            .map_err(failed("reading the ends of the log of events"))
    };
    let first = number("SELECT min(place) FROM event_log")?;
    let last = number("SELECT seq FROM sqlite_sequence WHERE name = 'event_log'")?.unwrap_or_default();
    Ok(EventRange { first: first.unwrap_or(last + 1), last })
}

fn rows(connection: &Connection, from: u64, most: usize) -> Result<Vec<(u64, LoggedEvent)>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let read = || -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
        let sql = "SELECT place, doc FROM event_log WHERE place >= ?1 ORDER BY place LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get_ref(1)?.as_bytes()?.to_vec()));
        statement.query_map(params![signed(from), most], row)?.collect()
    };
    let found = read().map_err(failed("reading the log of events"))?;
    let event =
        |(place, doc): (i64, Vec<u8>)| Ok((place.cast_unsigned(), decode("logged event", place, &doc)?));
    found.into_iter().map(event).collect()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
