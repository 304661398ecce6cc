//! A note outside the database of the newest epoch of a lease that was in it. A database in which that is older was restored from a
//! backup: what it says of nodes is not true any more, so no controller drives them by it before `anneal-controller restored`.

use crate::database::Database;
use crate::identity;
use anyhow::{Context, Result, ensure};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Name of the file in `state_dir`.
const FILE: &str = "newest-epoch";
/// How often it is brought up to date.
const EVERY: Duration = Duration::from_secs(30);

/// Refuse a database that is older than it was. An empty one drives nothing.
pub async fn check(state_dir: &Path, database: &Database) -> Result<()> {
    let (noted, found) = (read(state_dir)?, database.last_epoch().await?);
    ensure!(
        found >= noted || database.store().nodes().await?.is_empty(),
        "the database is older than this controller has seen it (epoch {found} of leases, and {noted} before): it was restored \
        from a backup. Run anneal-controller restored first: it marks the nodes that are not as the backup says"
    );
    if let Err(error) = note(state_dir, found) {
        // A full disk is none of its concern.
        tracing::warn!("cannot note the newest epoch: {error:#}");
    }
    Ok(())
}

/// Bring the note up to date from time to time; never returns.
pub async fn keep(state_dir: &Path, database: &Database) -> Result<()> {
    let mut noted = 0;
    loop {
        tokio::time::sleep(EVERY).await;
        match database.last_epoch().await {
            Ok(found) if found > noted => {
                if let Err(error) = note(state_dir, found) {
                    tracing::warn!("cannot note the newest epoch: {error:#}");
                }
                noted = found;
            }
            // While the database is gone there is nothing to note.
            _ => {}
        }
    }
}

/// Say that this epoch was in the database.
pub fn note(state_dir: &Path, epoch: u64) -> Result<()> {
    identity::write(&state_dir.join(FILE), format!("{epoch}\n").as_bytes(), 0o600)
}

fn read(state_dir: &Path) -> Result<u64> {
    let path = state_dir.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().with_context(|| format!("{}: is no number", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}
