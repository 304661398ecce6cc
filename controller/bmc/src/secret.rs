//! A password that does not print and does not stay in memory.

use std::fmt;
use std::hash::{Hash, Hasher};

use zeroize::Zeroizing;

use crate::error::one_line;

/// A secret string: `Debug` shows nothing of it, and it is overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Zeroizing<String>);

impl Secret {
    pub(crate) fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself; for the one place that sends it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` from a BMC or a tool, made fit for an error: one line, bounded, the secret removed
    /// should the other side have echoed it.
    pub(crate) fn redact(&self, text: &str) -> String {
        const LONGEST: usize = 300;
        let text = if self.0.is_empty() { text.to_owned() } else { text.replace(self.0.as_str(), "***") };
        let mut line = one_line(&text);
        if let Some((end, _)) = line.char_indices().nth(LONGEST) {
            line.truncate(end);
            line.push('…');
        }
        line
    }
}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echoed_secret_is_removed_and_text_is_one_bounded_line() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(secret.redact("bad password\r\n 'hunter2'\u{1b}[0m"), "bad password '***' [0m");
        assert_eq!(secret.redact(&"ä ".repeat(1000)).chars().count(), 301);
        assert_eq!(format!("{secret:?}"), "Secret(***)");
    }
}
