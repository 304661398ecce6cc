//! What may go wrong between us and a BMC.

use std::error::Error;
use std::fmt;

/// The kind of an error; callers decide by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// `driver_info` is missing a key or holds a wrong one; nothing went out.
    Config,
    /// No connection: refused, no route, name not found, TLS not agreed.
    Unreachable,
    /// The BMC answered and refused the credentials, or they lack the privilege.
    Auth,
    /// The BMC answered something that cannot be understood, or an error of its own.
    Protocol,
    /// The BMC does not offer what was asked.
    Unsupported,
    /// The BMC accepted the connection and did not answer in time.
    Timeout,
    /// The BMC is busy, or the resource changed meanwhile (409, 412, 423).
    Conflict,
    /// The BMC answered, and reports no power state.
    NoPowerState,
    /// A step cannot be run as it was called, or ran and failed. The text names the step, and is complete
    /// without the BMC.
    Step,
}

/// A failed call: which BMC, doing what, and why. Never holds a secret.
///
/// The text is complete in itself, down to the system's reason: it becomes the node's `last_error`,
/// where there is no chain to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcError {
    kind: ErrorKind,
    address: String,
    action: String,
    message: String,
    retryable: bool,
}

impl BmcError {
    /// `address` as the operator wrote it (no credentials), `action` as an infinitive ("read the power
    /// state"), `message` without secrets.
    pub fn new(kind: ErrorKind, address: &str, action: &str, message: impl Into<String>) -> Self {
        let retryable = matches!(kind, ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Conflict);
        Self {
            kind,
            address: address.to_owned(),
            action: action.to_owned(),
            message: message.into(),
            retryable,
        }
    }

    /// [`ErrorKind::Unsupported`] of a driver that has no such thing with any BMC; its address is empty.
    pub(crate) fn not_offered(action: &str) -> Self {
        Self::new(ErrorKind::Unsupported, "", action, format!("the driver cannot {action}"))
    }

    /// The same, but worth (or not worth) another try whatever its kind.
    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// The same without these texts of at least four letters, should the other side have repeated them.
    #[must_use]
    pub(crate) fn without<'a>(mut self, secrets: impl Iterator<Item = &'a str>) -> Self {
        for secret in secrets.filter(|secret| secret.chars().count() >= 4) {
            // As the message has been made one line.
            let secret = one_line(secret);
            self.message = self.message.replace(&secret, "***");
            // A message is cut off where it gets long, perhaps in the middle of a secret.
            if let Some(cut) = self.message.strip_suffix('…') {
                let mut starts =
                    secret.char_indices().rev().filter(|(end, _)| *end > 0).map(|(end, _)| &secret[..end]);
                if let Some(kept) = starts.find_map(|start| cut.strip_suffix(start)) {
                    self.message = format!("{kept}***…");
                }
            }
        }
        self
    }

    /// Kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later with nothing changed by the operator.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Why, without address and action.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Address of the BMC as configured; empty when the configuration holds none.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// `text` without line ends, other control characters and doubled spaces.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

impl fmt::Display for BmcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self.kind, ErrorKind::Config | ErrorKind::Step) || self.address.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "BMC {}: cannot {}: {}", self.address, self.action, self.message)
    }
}

impl Error for BmcError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_out_whole_or_cut_off() {
        let without = |message: &str, secret: &str| {
            BmcError::new(ErrorKind::Step, "", "", message).without(std::iter::once(secret)).to_string()
        };
        assert_eq!(without("no hunter2, hunter2!", "hunter2"), "no ***, ***!");
        assert_eq!(without("no correct horse.", "correct\n horse"), "no ***.");
        assert_eq!(without("it does not take hunt…", "hunter2"), "it does not take ***…");
        assert_eq!(without("it does not take hunt", "hunter2"), "it does not take hunt");
        assert_eq!(without("it answered 400", "400"), "it answered 400");
    }
}
