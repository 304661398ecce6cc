//! The full check of the database, in the background.

use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;
use store_sqlite::SqliteStore;

/// Between two log lines about a damaged database.
const REMINDER: Duration = Duration::from_secs(600);

/// Check the database now and then every `hours`; never returns. After a finding nothing is written any more, and the log
/// says so again and again.
pub async fn run(store: Arc<SqliteStore>, hours: u32) -> Result<()> {
    loop {
        match store.check().await {
            Ok(None) => tracing::debug!("the database is whole"),
            Ok(Some(found)) => loop {
                tracing::error!(
                    found,
                    "the database is damaged: reads go on, and nothing is written. Stop the controller, restore a backup \
                     (anneal-controller restore FILE --replace), and check the disk"
                );
                tokio::time::sleep(REMINDER).await;
            },
            Err(error) => tracing::error!(error = format!("{error:#}"), "cannot check the database"),
        }
        tokio::time::sleep(Duration::from_secs(3600 * u64::from(hours))).await;
    }
}
