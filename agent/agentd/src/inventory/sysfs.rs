//! Reads files of `/sys` and `/proc`.

use std::path::Path;

/// A file's text without blanks around it; `None` when it cannot be read or is empty.
pub(super) fn read(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}
