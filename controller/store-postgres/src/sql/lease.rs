//! Leases. The newest of a node is its only row; releasing it removes the row. Epochs are of a sequence, so none is given
//! twice by any controller.

use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::cell;
use crate::failure::failed;
use crate::text;
use model::Timestamp;
use std::collections::BTreeMap;
use store::{Lease, Noun, Result, StoreError};
use uuid::Uuid;

/// One statement: two that come at once wait for each other at the row, and the second sees what the first made of it.
pub async fn take(
    change: &Change,
    node: Uuid,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Lease>> {
    const TAKE: &str = concat!(
        "INSERT INTO lease (node, epoch, holder, until) VALUES ($1, ",
        "nextval('lease_epoch')",
        ", $2, $3) ON CONFLICT (node)
        DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder, until = excluded.until",
        " WHERE lease.holder = excluded.holder OR ",
        "lease.until <= $4 RETURNING epoch"
    );
    match change.query_opt(TAKE, &[&node, &&*text::stored(holder), &until.0, &now.0]).await {
        Ok(None) => Ok(None),
        Ok(Some(row)) => Ok(Some(Lease { node, epoch: cell::<i64>(&row, 0)?.cast_unsigned() })),
        Err(orphan) if orphan.is_orphan() => Err(StoreError::not_found(Noun::Node, node)),
        Err(error) => Err(error.while_doing(format_args!("taking the lease of node {node}"))),
    }
}

pub async fn renew(change: &Change, lease: Lease, until: Timestamp) -> Result<bool> {
    let renewed = change
        .execute(
            "UPDATE lease SET until = $3 WHERE node = $1 AND epoch = $2",
            &[&lease.node, &lease.epoch.cast_signed(), &until.0],
        )
        .await;
    renewed.map(|rows| rows > 0).map_err(failed(format_args!("renewing the lease of node {}", lease.node)))
}

pub async fn release(change: &Change, lease: Lease) -> Result<()> {
    let released = change
        .execute(
            "DELETE FROM lease WHERE node = $1 AND epoch = $2",
            &[&lease.node, &lease.epoch.cast_signed()],
        )
        .await;
    released.map(drop).map_err(failed(format_args!("releasing the lease of node {}", lease.node)))
}

/// Whether a lease is the newest of its node. It stays so until the end of the transaction: a conductor that takes it over waits for that.
pub async fn is_newest(change: &Change, lease: Lease) -> Result<bool> {
    let found = change
        .query_opt(
            concat!("SELECT 1 FROM lease WHERE node = $1 AND epoch = $2", " FOR SHARE"),
            &[&lease.node, &lease.epoch.cast_signed()],
        )
        .await;
    found.map(|row| row.is_some()).map_err(failed(format_args!("reading the lease of node {}", lease.node)))
}

/// Refuses a write under a lease of this node that is not the newest.
pub async fn check(change: &Change, node: Uuid, lease: Option<Lease>) -> Result<()> {
    match lease {
        Some(lease) if lease.node != node || !is_newest(change, lease).await? => Err(StoreError::Stale(node)),
        _ => Ok(()),
    }
}

/// The holders of the leases of these nodes that are not expired.
pub async fn holders(client: &Client, nodes: &[Uuid], now: Timestamp) -> Result<BTreeMap<Uuid, String>> {
    let found =
        rows(client, "SELECT node, holder FROM lease WHERE node = ANY($1) AND until > $2", &[&nodes, &now.0])
            .await;
    let found = found.map_err(failed("reading leases"))?;
    found.iter().map(|row| Ok((cell(row, 0)?, text::read(cell(row, 1)?)))).collect()
}

/// The nodes whose newest lease this holder has, expired or not.
pub async fn of_holder(client: &Client, holder: &str) -> Result<Vec<Uuid>> {
    let sql = "SELECT node FROM lease WHERE holder = $1 ORDER BY node";
    let found = rows(client, sql, &[&&*text::stored(holder)]).await.map_err(failed("reading leases"))?;
    found.iter().map(|row| cell(row, 0)).collect()
}

/// The last number of the sequence that was given. The upper half of an epoch, which is of the server, is not in it
/// (migrations/0002): where a backup was restored to an earlier point in time, that is newer than before, and the sequence is not.
pub async fn last_number(client: &Client) -> Result<u64> {
    let found = rows(client, "SELECT last_value FROM lease_epoch", &[]).await;
    let found = found.map_err(failed("reading the last epoch of leases"))?;
    let last = found.first().map(|row| cell::<i64>(row, 0)).transpose()?;
    Ok(last.unwrap_or_default().cast_unsigned())
}

/// Give no number up to this one any more.
pub async fn raise(change: &Change, to: u64) -> Result<()> {
    const RAISE: &str = "SELECT setval('lease_epoch', GREATEST($1, nextval('lease_epoch')))";
    let raised = change.query(RAISE, &[&to.cast_signed()]).await;
    raised.map(drop).map_err(failed("setting the next epoch of leases"))
}

/// Move the ends of all leases.
pub async fn shift_clock(change: &Change, by: i64) -> Result<()> {
    let moved = change.execute("UPDATE lease SET until = until + $1", &[&by]).await;
    moved.map(drop).map_err(failed("moving the ends of leases"))
}
