//! How a command can fail, and the exit code that reports it to scripts.

use thiserror::Error;

/// Why the command did not do what was asked.
#[derive(Debug, Error)]
pub enum Failure {
    /// The controller refused; the text is the controller's own.
    #[error("{message} (HTTP {status})")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Ironic's `faultstring`.
        message: String,
    },
    /// The command line, or a file it names, is wrong. Nothing was sent.
    #[error("{0}")]
    Usage(String),
    /// `--wait` ran out of time; the node goes on by itself.
    #[error("{0}")]
    Timeout(String),
    /// The node ended somewhere else than asked for, or would be refused what was planned.
    #[error("{0}")]
    Ended(String),
    /// No controller answered at the endpoint, or what answered is none.
    #[error("cannot reach the controller at {endpoint}: {reason}")]
    Unreachable {
        /// Where.
        endpoint: String,
        /// Why, with its causes.
        reason: String,
    },
    /// Not all of many nodes did what was asked; each has its line in the summary, which is shown before.
    #[error("{not_done} of {all} nodes did not do what was asked")]
    Partly {
        /// How many did not.
        not_done: usize,
        /// How many were asked.
        all: usize,
        /// The exit code that all failures have alone, else 1.
        code: u8,
    },
    /// The controller does not know yet.
    #[error("{0}")]
    NotYet(String),
    /// Standard output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    /// The same without `secret`: a controller that rejects a request may quote it.
    pub fn without(self, secret: &str) -> Self {
        match self {
            Self::Refused { status, message } => {
                Self::Refused { status, message: message.replace(secret, "******") }
            }
            other => other,
        }
    }

    /// Exit code; [`EXIT_CODES`] says the same in `--help`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refused { .. } | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Timeout(_) => 3,
            Self::Ended(_) => 4,
            Self::Unreachable { .. } => 5,
            Self::NotYet(_) => 6,
            Self::Partly { code, .. } => *code,
        }
    }
}

/// The part of `--help` about exit codes.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the controller refused (its message is shown)
  2  wrong command line, or a file named on it cannot be used; nothing was sent
  3  --wait ran out of time (the node goes on by itself)
  4  the node ended in a failed state, or in another state than asked for; the erase that was planned would be refused
  5  no controller could be reached at the endpoint
  6  not known yet; try again (steps of a node whose agent was never seen)
With many nodes: 0 if all did what was asked, else the code that every failure would have had alone, or 1 if they differ.";
