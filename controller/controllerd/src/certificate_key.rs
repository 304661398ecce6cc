//! The key that signs erasure certificates. It is made once and kept: certificates are verified with its public key.

use crate::identity;
use anyhow::{Context, Result};
use certificate::SigningKey;
use std::fs;
use std::path::Path;

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
}
