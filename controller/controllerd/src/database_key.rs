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
pub fn load_or_make(config: &Config) -> Result<DatabaseKey> {
    let path = place(config);
    let name = || format!("key of the database {}", path.display());
    match fs::read_to_string(&path) {
        Ok(text) => {
            let key = DatabaseKey::from_text(&text).with_context(|| format!("{}: is no key", name()))?;
            // A credential is read-only, and private to the unit.
            if path.starts_with(&config.state_dir) {
                fs::set_permissions(&path, Permissions::from_mode(0o600)).with_context(name)?;
            }
            Ok(key)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let database = config.database();
            if store_sqlite::are_encrypted(&database).with_context(|| database.display().to_string())? {
                bail!("{}: is missing. {}", name(), advice(&database));
            }
            let key = DatabaseKey::generate().context("no random numbers for the key of the database")?;
            identity::write(&path, format!("{}\n", key.to_text()).as_bytes(), 0o600)?;
            Ok(key)
        }
        Err(error) => Err(error).with_context(name),
    }
}

/// What to do without the key.
pub fn advice(database: &Path) -> String {
    format!(
        "The passwords in {} are encrypted with it: put it back (a backup of the database does not contain it). If it is \
         lost, `anneal-controller forget-secrets` removes the passwords and lists the nodes; then start the controller \
         and enter them again: anneal node set NODE --driver-info redfish_password=@FILE",
        database.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use store_sqlite::SqliteStore;

    #[test]
    fn the_key_is_made_once_and_never_replaced_while_it_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { state_dir: dir.path().into(), ..Config::default() };
        let path = dir.path().join(NAME);
        let key = load_or_make(&config).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(load_or_make(&config).unwrap().to_text(), key.to_text());
        // Nothing is encrypted yet: a lost key is of no concern.
        fs::remove_file(&path).unwrap();
        let key = load_or_make(&config).unwrap();

        drop(SqliteStore::open(&config.database(), &key).unwrap());
        fs::remove_file(&path).unwrap();
        let error = format!("{:#}", load_or_make(&config).unwrap_err());
        for part in ["database.key: is missing", "forget-secrets", "anneal node set NODE --driver-info"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!path.exists());
        fs::write(&path, "hunter2").unwrap();
        let error = format!("{:#}", load_or_make(&config).unwrap_err());
        assert!(error.contains("is no key") && !error.contains("hunter2"), "{error}");
    }
}
