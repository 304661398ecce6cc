//! The line of a certificate in the log of the heads of all chains.

use crate::error::{Result, StoreError};
use certificate::LogEntry;
use model::Certificate;

/// The line of the next certificate, after the `last` line of the log.
///
/// # Errors
/// [`StoreError::Failed`]: `last` is no line of a log.
pub fn line_after(last: Option<&str>, certificate: &Certificate) -> Result<String> {
    let node = certificate.node.to_string();
    LogEntry::line_after(last, &node, certificate.number, &certificate.id)
        .map_err(|refused| StoreError::caused("adding to the log of certificates".to_owned(), refused))
}
