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

/// What the line of a certificate has after its place in the log and the digest of the line before it. A database that writes
/// the line itself needs it: `{"index":2,"previous":"…",` and this.
///
/// # Errors
/// As [`line_after`].
pub fn end_of_line(certificate: &Certificate) -> Result<String> {
    let first = line_after(None, certificate)?;
    let end = first.strip_prefix(r#"{"index":1,"#).map(str::to_owned);
    end.ok_or_else(|| StoreError::failed("a line of the log of certificates does not begin with its place"))
}

/// The certificate that a line of the log is about.
///
/// # Errors
/// [`StoreError::Failed`]: it is no line of a log.
pub fn certificate_of(line: &str) -> Result<String> {
    let entry: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let id = entry.and_then(|entry| entry.get("certificate")?.as_str().map(str::to_owned));
    id.ok_or_else(|| StoreError::failed("a line of the log of certificates names no certificate"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;
    use uuid::Uuid;

    #[test]
    fn a_line_names_its_certificate() {
        let certificate = Certificate {
            id: "ab".repeat(32),
            node: Uuid::nil(),
            number: 1,
            at: Timestamp(0),
            finding: String::new(),
            command_id: String::new(),
            file: String::new(),
        };
        let line = line_after(None, &certificate).unwrap();
        assert_eq!(certificate_of(&line).unwrap(), certificate.id);
        let second = line_after(Some(&line), &certificate).unwrap();
        assert!(second.ends_with(&end_of_line(&certificate).unwrap()), "{second}");
        for bad in ["", "{}", r#"{"certificate": 1}"#] {
            assert!(certificate_of(bad).is_err(), "{bad}");
        }
    }
}
