//! Opening a database: look whether it is fit, migrate it, check the key, and begin to hear.

use crate::address::{self, AGENT_CONNECTIONS, Settings};
use crate::change::{Change, Commit};
use crate::connect::{self, Tls};
use crate::database::Database;
use crate::failure::Failure;
use crate::listen::Listener;
use crate::migrate::{self, Migration};
use crate::open_error::OpenError;
use crate::ring::StoreId;
use crate::secrets;
use deadpool_postgres::Pool;
use store::Bell;
use stored_secrets::DatabaseKey;

/// Oldest PostgreSQL that the tests run with, as `server_version_num` says it.
const OLDEST: i64 = 150_000;

/// An opened database.
pub struct Opened {
    pub database: Database,
    /// The same with connections for agents and boot.
    pub agent_database: Database,
    pub listener: Listener,
}

/// Open it, with these migrations.
pub async fn open(
    settings: &Settings,
    key: &DatabaseKey,
    migrations: &[Migration],
) -> Result<Opened, OpenError> {
    let address = address::read(settings)?;
    let tls = Tls::of(&address.trust)?;
    let pool = connect::pool(&address, &tls, settings, settings.connections.max(1))?;
    let agents = connect::pool(&address, &tls, settings, AGENT_CONNECTIONS)?;
    let name = &address.name;
    let failed = |source| OpenError::Failed { name: name.clone(), source };
    if let Some(why) = unfit(&pool).await.map_err(failed)? {
        return Err(OpenError::Unfit { name: name.clone(), why });
    }
    migrate::apply(&pool, name, migrations).await?;
    if !has_key(&pool, key).await.map_err(failed)? {
        return Err(OpenError::WrongKey { name: name.clone() });
    }
    let (bell, store) = (Bell::new(), StoreId::new());
    let listener = Listener::start(address.clone(), tls, bell.clone(), store).await.map_err(failed)?;
    let patience = settings.connect_timeout;
    let database = Database { pool, store, bell, patience };
    let agent_database = Database { pool: agents, ..database.clone() };
    Ok(Opened { database, agent_database, listener })
}

/// Why a server does not keep what the store promises.
async fn unfit(pool: &Pool) -> Result<Option<String>, Failure> {
    const ASK: &str =
        "SELECT current_setting('server_version_num')::bigint, current_setting('server_encoding'),
        current_setting('synchronous_commit'), current_setting('fsync')";
    let row = pool.get().await?.query_one(ASK, &[]).await?;
    let (version, encoding, commit, sync): (i64, &str, &str, &str) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
    if sync != "on" {
        tracing::warn!(
            "PostgreSQL runs with fsync = off: what it acknowledged is lost when its machine fails"
        );
    }
    Ok(judge(version, encoding, commit))
}

fn judge(version: i64, encoding: &str, commit: &str) -> Option<String> {
    if version < OLDEST {
        return Some(format!("PostgreSQL {version} is too old: 15 or later is needed"));
    }
    if encoding != "UTF8" {
        return Some(format!(
            "its encoding is {encoding}: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        ));
    }
    // An acknowledged write could be lost.
    (commit == "off")
        .then(|| "synchronous_commit is off: ALTER DATABASE … SET synchronous_commit = on".to_owned())
}

async fn has_key(pool: &Pool, key: &DatabaseKey) -> Result<bool, Failure> {
    let change = Change::begin(pool.get().await?, "BEGIN").await?;
    let is_right = secrets::prepare(&change, key).await?;
    match change.commit().await {
        Commit::Done => Ok(is_right),
        Commit::Undone(failure) | Commit::NoAnswer(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_would_lose_a_write_is_refused() {
        assert_eq!(judge(150_020, "UTF8", "on"), None);
        assert_eq!(judge(170_002, "UTF8", "remote_apply"), None);
        for (version, encoding, commit, part) in [
            (140_009, "UTF8", "on", "too old"),
            (150_020, "LATIN1", "on", "LATIN1"),
            (150_020, "UTF8", "off", "synchronous_commit is off"),
        ] {
            assert!(judge(version, encoding, commit).unwrap().contains(part), "{part}");
        }
    }
}
