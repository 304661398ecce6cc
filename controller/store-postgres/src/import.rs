//! Everything of another store, copied into an empty database: rows as they are, with their versions and times.

use crate::PostgresStore;
use crate::change::Change;
use crate::document::cell;
use crate::failure::failed;
use crate::sql::node::{self, NodeRow};
use crate::sql::{bundle, certificate, contact, discovery, inventory, lease, resource};
use model::agent::Contact;
use model::{Certificate, ResourceKind};
use store::{Result, StepKind, Store, StoreError};
use stored_secrets::DatabaseKey;

/// Lines of the log of certificates that are read at once.
const LINES: usize = 1000;

impl PostgresStore {
    /// Copy everything from `source`, which no other process may write meanwhile, in one transaction. Leases are not copied: no
    /// conductor runs meanwhile. Their epochs go on after `last_epoch`.
    ///
    /// # Errors
    /// There is something in this database already, or either cannot be read or written. Then nothing is copied.
    pub async fn import(&self, source: &dyn Store, last_epoch: u64) -> Result<()> {
        let key = &self.key;
        self.database.write(|change, _| Box::pin(copy(change, key, source, last_epoch))).await
    }
}

async fn copy(change: &mut Change, key: &DatabaseKey, source: &dyn Store, last_epoch: u64) -> Result<()> {
    // All nodes of the source are read between two statements.
    let patient = "SET LOCAL idle_in_transaction_session_timeout = 0";
    change.batch(patient).await.map_err(failed("beginning to copy"))?;
    check_empty(change).await?;
    lease::raise(change, last_epoch).await?;
    for of in source.nodes().await? {
        let uuid = of.uuid;
        node::add(change, &NodeRow::of(key, of)?).await?;
        node::add_events(change, uuid, &source.history(uuid).await?).await?;
        let known = source.contact(uuid).await?;
        if known != Contact::default() {
            contact::write(change, uuid, &known).await?;
        }
        for kind in StepKind::ALL {
            if let Some(catalogue) = source.catalogue(uuid, kind).await? {
                contact::put_catalogue(change, uuid, kind, &catalogue).await?;
            }
        }
        if let Some(found) = source.inventory(uuid).await? {
            inventory::write(change, uuid, &inventory::document(uuid, found)?).await?;
        }
    }
    for kind in ResourceKind::ALL {
        for of in source.resources(kind, None).await? {
            resource::add(change, key, &of).await?;
        }
    }
    for of in source.bundles().await? {
        bundle::put(change, &of).await?;
    }
    for of in source.discovered_machines().await? {
        discovery::put(change, &of).await?;
    }
    copy_certificates(change, source).await?;
    for text in source.key_changes().await? {
        certificate::import_key_change(change, &text).await?;
    }
    Ok(())
}

/// Each certificate has its line in the log, also those of nodes that are gone.
async fn copy_certificates(change: &Change, source: &dyn Store) -> Result<()> {
    let mut next = 1;
    loop {
        let lines = source.certificate_log(next, LINES).await?;
        for line in &lines {
            let of: Certificate = source.certificate(&store::certificate_log::certificate_of(line)?).await?;
            certificate::add(change, &of).await?;
            certificate::add_line(change, next.cast_signed(), &of.id, line).await?;
            next += 1;
        }
        if lines.is_empty() {
            return Ok(());
        }
    }
}

async fn check_empty(change: &Change) -> Result<()> {
    const TABLES: [&str; 6] =
        ["node", "resource", "bundle", "certificate", "certificate_key_change", "discovered_machine"];
    let lock = format!("LOCK TABLE {} IN EXCLUSIVE MODE", TABLES.join(", "));
    change.batch(&lock).await.map_err(failed("locking the database"))?;
    for table in TABLES {
        let row = change.query_opt(&format!("SELECT EXISTS (SELECT 1 FROM {table})"), &[]).await;
        let row = row.map_err(failed(format_args!("looking whether there is a {table}")))?;
        if row.map_or(Ok(true), |row| cell(&row, 0))? {
            return Err(StoreError::failed(format!(
                "there is something in the database already (a row of {table}): take an empty one"
            )));
        }
    }
    Ok(())
}
