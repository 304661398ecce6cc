//! Why a program was not started.

/// Why a program was not started. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is asked makes no sense, or cannot be bounded on this machine.
    #[error("{0}")]
    Refused(String),
    /// Something of the host's.
    #[error("{what}: {source}")]
    Host {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The child could not be confined, or its program not executed.
    #[error("the program is not started, since it cannot be confined: {what}: {source}")]
    Confine {
        /// Which operation.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn host(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::Host { what: what.into(), source: source.into() }
    }
}
