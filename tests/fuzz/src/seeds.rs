//! Inputs to begin with.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The seeds of a target, in the order of their names; none where it has no directory.
///
/// # Errors
/// When one cannot be read.
pub fn seeds(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut files = entries?;
    files.sort();
    files.iter().map(fs::read).collect()
}
