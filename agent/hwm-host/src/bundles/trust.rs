//! Whose bundles are taken (docs/decisions/0011).

use bundle::{PublicKey, Trust};
use std::io;
use std::path::Path;

/// The keys of the file, of which one has to have signed. Where there is no file, the controller's word for a digest
/// counts. A file that cannot be used is not the same as none: nothing is taken.
pub fn read(path: &Path) -> Result<Trust, String> {
    let wrong = |problem: String| format!("trusted keys {}: {problem}", path.display());
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Trust::Digest),
        text => text.map_err(|error| wrong(error.to_string()))?,
    };
    let keys = PublicKey::list(&text).map_err(|error| wrong(error.to_string()))?;
    if keys.is_empty() {
        return Err(wrong("no key in it".to_owned()));
    }
    Ok(Trust::Keys { keys, unsigned: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_is_not_the_same_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        assert_eq!(read(&path), Ok(Trust::Digest));
        for (text, says) in [("# none\n", "no key in it"), ("ed25519:1", "line 1")] {
            std::fs::write(&path, text).unwrap();
            assert!(read(&path).is_err_and(|why| why.contains(says) && why.contains("keys")), "{text}");
        }
        assert!(read(dir.path()).is_err(), "a directory");
        let key = format!("ed25519:{}", "00".repeat(32));
        std::fs::write(&path, &key).unwrap();
        assert_eq!(read(&path), Ok(Trust::Keys { keys: vec![key.parse().unwrap()], unsigned: false }));
    }
}
