//! The key that encrypts the passwords in the database: a credential of systemd, or a private file.

use crate::config::Config;
use crate::identity;
use anyhow::{Context, Result, bail};
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use store_sqlite::DatabaseKey;

/// Name of the file, and of the credential.
const NAME: &str = "database.key";

/// Where the key is: the configured file, the credential that systemd passes, or the file next to the database.
pub fn place(config: &Config) -> PathBuf {
    if !config.database_key_file.as_os_str().is_empty() {
        return config.database_key_file.clone();
    }
    let credentials =
        std::env::var_os("CREDENTIALS_DIRECTORY").map(|directory| Path::new(&directory).join(NAME));
    credentials.filter(|file| file.exists()).unwrap_or_else(|| config.state_dir.join(NAME))
}

/// Load the key. A missing one is made if nothing is encrypted yet.
pub async fn load_or_make(config: &Config) -> Result<DatabaseKey> {
    let path = place(config);
    let name = || name(&path);
    match fs::read_to_string(&path) {
        Ok(_) => load(config),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let Some(database) = encrypted_database(config).await? {
                bail!("{}: is missing. {}", name(), advice(&database));
            }
            let key = DatabaseKey::generate().context("no random numbers for the key of the database")?;
            identity::write(&path, format!("{}\n", key.to_text()).as_bytes(), 0o600)?;
            Ok(key)
        }
        Err(error) => Err(error).with_context(name),
    }
}

/// Load the key, which is there.
pub fn load(config: &Config) -> Result<DatabaseKey> {
    let path = place(config);
    let text = fs::read_to_string(&path).with_context(|| name(&path))?;
    let key = DatabaseKey::from_text(&text).with_context(|| format!("{}: is no key", name(&path)))?;
    // A credential is read-only, and private to the unit.
    if path.starts_with(&config.state_dir) {
        fs::set_permissions(&path, Permissions::from_mode(0o600)).with_context(|| name(&path))?;
    }
    Ok(key)
}

fn name(path: &Path) -> String {
    format!("key of the database {}", path.display())
}

/// The name of the database, if passwords in it are encrypted.
async fn encrypted_database(config: &Config) -> Result<Option<String>> {
    if let Some(settings) = config.database.postgres()? {
        let encrypted = store_postgres::are_encrypted(&settings).await.context("database.url")?;
        return Ok(encrypted.then(|| "the database of PostgreSQL".to_owned()));
    }
    let file = config.database_file();
    let encrypted = store_sqlite::are_encrypted(&file).with_context(|| file.display().to_string())?;
    Ok(encrypted.then(|| file.display().to_string()))
}

/// What to do without the key.
pub fn advice(database: &str) -> String {
    format!(
        "The passwords in {} are encrypted with it: put it back (a backup of the database does not contain it). If it is \
         lost, `anneal-controller forget-secrets` removes the passwords and lists the nodes; then start the controller \
         and enter them again: anneal node set NODE --driver-info redfish_password=@FILE",
        database
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use store_sqlite::SqliteStore;

    #[tokio::test]
    async fn the_key_is_made_once_and_never_replaced_while_it_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { state_dir: dir.path().into(), ..Config::default() };
        let path = dir.path().join(NAME);
        let key = load_or_make(&config).await.unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(load_or_make(&config).await.unwrap().to_text(), key.to_text());
        // Nothing is encrypted yet: a lost key is of no concern.
        fs::remove_file(&path).unwrap();
        let key = load_or_make(&config).await.unwrap();

        drop(SqliteStore::open(&config.database_file(), &key).unwrap());
        fs::remove_file(&path).unwrap();
        let error = format!("{:#}", load_or_make(&config).await.unwrap_err());
        for part in ["database.key: is missing", "forget-secrets", "anneal node set NODE --driver-info"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!path.exists());
        fs::write(&path, "hunter2").unwrap();
        let error = format!("{:#}", load_or_make(&config).await.unwrap_err());
        assert!(error.contains("is no key") && !error.contains("hunter2"), "{error}");
    }
}
