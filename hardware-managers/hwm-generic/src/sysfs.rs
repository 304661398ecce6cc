//! Reading sysfs: a file is one value, and what is not there is not known.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

/// Text of a file without blanks around it; `None` when it cannot be read or is empty.
pub fn text(file: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&fs::read(file).ok()?).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// A whole number.
pub fn number<T: FromStr>(file: &Path) -> Option<T> {
    text(file)?.parse().ok()
}

/// Names in a directory, sorted; none when it cannot be read.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The last part of where a symbolic link leads: the name of a driver.
pub fn link(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_str()?.to_owned())
}

/// Whether the file is read-only by its mode. The mode is asked because root can open every file for writing.
pub fn is_read_only(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o222 == 0)
}
