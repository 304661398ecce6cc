//! The log of the heads of all chains: one line for each certificate of a controller, in the order in which they were stored.
//!
//! A line is JSON, and names the SHA-256 of the line before it. A reader who knows the digest of a line therefore knows every line
//! up to it, and with them the newest certificate of each node at that time.

use crate::Refused;
use serde::{Deserialize, Serialize};

/// One line: a certificate has become the head of the chain of its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// Its place in the log, from 1.
    pub index: u64,
    /// SHA-256 of the line before it, without the end of that line: 64 hexadecimal digits. `None` in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// UUID of the node.
    pub node: String,
    /// Which of the node's certificates it is, from 1.
    pub number: u64,
    /// Id of the certificate.
    pub certificate: String,
}

impl LogEntry {
    /// The line of the next certificate, after the `last` line of the log.
    ///
    /// # Errors
    /// [`Refused::BrokenLog`]: `last` is no line of a log.
    pub fn line_after(
        last: Option<&str>,
        node: &str,
        number: u64,
        certificate: &str,
    ) -> Result<String, Refused> {
        let index = match last {
            Some(line) => Self::read(line)?.index.saturating_add(1),
            None => 1,
        };
        let entry = Self {
            index,
            previous: last.map(digest),
            node: node.to_owned(),
            number,
            certificate: certificate.to_owned(),
        };
        serde_json::to_string(&entry).map_err(|error| Refused::BrokenLog(error.to_string()))
    }

    fn read(line: &str) -> Result<Self, Refused> {
        serde_json::from_str(line)
            .map_err(|error| Refused::BrokenLog(format!("a line cannot be read: {error}")))
    }
}

/// The digest of a line, which stands for the whole log up to it.
pub fn digest(line: &str) -> String {
    signing::sha256(line.as_bytes())
}

/// A log, or the part of one from its first line to any other, whose lines follow each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    entries: Vec<LogEntry>,
    head: Option<String>,
}

impl Log {
    /// The log with these lines.
    ///
    /// # Errors
    /// [`Refused::BrokenLog`] with the first line that does not follow the one before it.
    pub fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Self, Refused> {
        let mut log = Self::default();
        for line in lines {
            log.push(line)?;
        }
        Ok(log)
    }

    /// Add the next line.
    ///
    /// # Errors
    /// [`Refused::BrokenLog`] if it does not follow the last one.
    pub fn push(&mut self, line: &str) -> Result<(), Refused> {
        let place = self.entries.len() + 1;
        let entry = LogEntry::read(line)?;
        if usize::try_from(entry.index) != Ok(place) {
            return Err(Refused::BrokenLog(format!("line {place} has the index {}", entry.index)));
        }
        if entry.previous != self.head {
            let text = format!("line {place} does not follow the line before it, whose SHA-256 differs");
            return Err(Refused::BrokenLog(text));
        }
        self.head = Some(digest(line));
        self.entries.push(entry);
        Ok(())
    }

    /// Its lines.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// The digest of its last line; `None` of an empty log.
    pub fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }
}
