//! What a TPM refuses, in words (TPM 2.0 Library, Part 2, section 6.6).

use crate::bytes::Malformed;
use crate::key::KeyError;
use std::fmt;
use std::io;

/// Why a TPM did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum TpmError {
    /// It cannot be reached.
    #[error("the TPM does not answer: {0}")]
    Transport(#[from] io::Error),
    /// It answers what no TPM answers.
    #[error("the TPM's response cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// It refuses.
    #[error("the TPM refuses {command} with code {code}")]
    Refused {
        /// Name of the command.
        command: &'static str,
        /// Its code.
        code: Code,
    },
    /// It has made another key than was asked for.
    #[error("the TPM has made no {0} key: {1}")]
    Key(&'static str, KeyError),
}

/// `TPM_RC`. As text: hexadecimal, and what it means where something can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u32);

const RETRY: u32 = 0x922;
const TESTING: u32 = 0x90a;
const YIELDED: u32 = 0x908;
const LOCKOUT: u32 = 0x921;

impl Code {
    /// The same command may be sent again.
    pub(super) fn is_transient(self) -> bool {
        matches!(self.0, RETRY | TESTING | YIELDED)
    }

    /// Errors of handles, sessions and parameters (format 1), without which of them it was.
    fn format_1(self) -> Option<u32> {
        (self.0 & 0x80 != 0).then_some(self.0 & 0x3f)
    }

    fn meaning(self) -> &'static str {
        match (self.0, self.format_1()) {
            (LOCKOUT, _) => ": it is locked after too many failed tries",
            // TPM_RC_AUTH_FAIL, TPM_RC_BAD_AUTH
            (_, Some(0x0e | 0x22)) => ": someone has set a password; clearing the TPM takes it away",
            // TPM_RC_HIERARCHY
            (_, Some(0x05)) => ": the hierarchy is switched off until the next power-on",
            // TPM_RC_CURVE
            (_, Some(0x26)) => ": it has no P-256",
            _ => "",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{:#05x}{}", self.0, self.meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_what_can_be_done() {
        assert_eq!(Code(0x921).to_string(), "0x921: it is locked after too many failed tries");
        assert!(Code(0x9a2).to_string().contains("password"));
        assert!(Code(0x98e).to_string().contains("password"));
        assert!(Code(0x185).to_string().contains("switched off"));
        assert_eq!(Code(0x101).to_string(), "0x101");
        assert!(Code(0x922).is_transient() && !Code(0x921).is_transient());
    }
}
