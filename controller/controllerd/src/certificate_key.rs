//! The key that signs erasure certificates. It is made once and kept: certificates are verified with its public key. An operator
//! changes it; the old key signs for the new one, and the store keeps that.

use crate::identity;
use anyhow::{Context, Result, ensure};
use certificate::{PublicKey, SignedKeyChange, SigningKey};
use std::fs;
use std::path::{Path, PathBuf};
use store::{Clock, Store, SystemClock};

/// The next key, until the change is stored.
fn next(state_dir: &Path) -> PathBuf {
    state_dir.join("certificate.key.next")
}

/// Put a new key in the place of the old one, which is deleted; the public halves of both. The controller must not run.
pub async fn change(state_dir: &Path, store: &dyn Store) -> Result<(PublicKey, PublicKey)> {
    ensure!(state_dir.join("certificate.key").exists(), "{} has no certificate.key yet", state_dir.display());
    complete(state_dir, store).await?;
    let old = load_or_make(state_dir)?;
    let (new, text) = SigningKey::generate().context("a new key")?;
    identity::write(&next(state_dir), text.as_bytes(), 0o600)?;
    let change = SignedKeyChange::make(&old, &new, certificate::instant(SystemClock::default().now().0));
    store.add_key_change(serde_json::to_string(&change)?).await.context("storing the change of the key")?;
    complete(state_dir, store).await?;
    Ok((old.public(), new.public()))
}

/// Complete a change that was interrupted: once it is stored, the next key takes the place of the old one; before that it
/// is deleted.
pub async fn complete(state_dir: &Path, store: &dyn Store) -> Result<()> {
    let next = next(state_dir);
    let name = || format!("key of erasure certificates {}", next.display());
    let text = match fs::read_to_string(&next) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(name),
    };
    let key = SigningKey::from_pem(&text).with_context(name)?.public();
    let mut stored = false;
    for change in store.key_changes().await.context("changes of the key")? {
        let change: SignedKeyChange = serde_json::from_str(&change).context("changes of the key")?;
        stored |= change.open().is_ok_and(|(_, new)| new == key);
    }
    if stored {
        fs::rename(&next, state_dir.join("certificate.key")).with_context(name)
    } else {
        fs::remove_file(&next).with_context(name)
    }
}

/// Load the key, or make it at the first start.
pub fn load_or_make(state_dir: &Path) -> Result<SigningKey> {
    let path = state_dir.join("certificate.key");
    let name = || format!("key of erasure certificates {}", path.display());
    match fs::read_to_string(&path) {
        Ok(text) => SigningKey::from_pem(&text).with_context(name),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let (key, text) = SigningKey::generate().with_context(name)?;
            identity::write(&path, text.as_bytes(), 0o600)?;
            Ok(key)
        }
        Err(error) => Err(error).with_context(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_made_once_private_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let made = load_or_make(dir.path()).unwrap().public();
        assert_eq!(load_or_make(dir.path()).unwrap().public(), made);
        let path = dir.path().join("certificate.key");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // A key that cannot be read is not replaced: earlier certificates could no longer be verified.
        fs::write(&path, "garbage").unwrap();
        let error = format!("{:#}", load_or_make(dir.path()).err().unwrap());
        assert!(error.contains("certificate.key") && !error.contains("garbage"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "garbage");
    }

    #[tokio::test]
    async fn a_change_is_signed_by_both_keys_and_survives_an_interruption() {
        let dir = tempfile::tempdir().unwrap();
        let store = store::memory::MemoryStore::new();
        assert!(change(dir.path(), &store).await.is_err(), "there is no key to change");
        let first = load_or_make(dir.path()).unwrap().public();
        let (old, new) = change(dir.path(), &store).await.unwrap();
        assert_eq!((old, load_or_make(dir.path()).unwrap().public()), (first, new));
        let key = dir.path().join("certificate.key");
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let stored: Vec<SignedKeyChange> = store::prelude::NodeStore::key_changes(&store)
            .await
            .unwrap()
            .iter()
            .map(|change| serde_json::from_str(change).unwrap())
            .collect();
        assert_eq!(stored[0].open().unwrap(), (old, new));
        // Interrupted before the change was stored: the old key stays.
        let (_, text) = SigningKey::generate().unwrap();
        fs::write(next(dir.path()), text).unwrap();
        complete(dir.path(), &store).await.unwrap();
        assert!(!next(dir.path()).exists());
        assert_eq!(load_or_make(dir.path()).unwrap().public(), new);
        // Interrupted after it: the new key takes its place.
        let now = load_or_make(dir.path()).unwrap();
        let (third, text) = SigningKey::generate().unwrap();
        fs::write(next(dir.path()), text).unwrap();
        let stored = serde_json::to_string(&SignedKeyChange::make(&now, &third, String::new())).unwrap();
        store::prelude::NodeStore::add_key_change(&store, stored).await.unwrap();
        complete(dir.path(), &store).await.unwrap();
        assert_eq!(load_or_make(dir.path()).unwrap().public(), third.public());
    }
}
