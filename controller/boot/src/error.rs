//! Why a boot service could not start or go on.

use std::io;

/// A boot service that could not start or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The configuration contradicts itself or names nothing usable.
    #[error("{service}: {message}")]
    Config {
        /// `dhcp`, `tftp` or `http`.
        service: &'static str,
        /// What is wrong, naming the setting.
        message: String,
    },
    /// A socket could not be opened, bound or read.
    #[error("{service}: cannot {action}")]
    Io {
        /// `dhcp`, `tftp` or `http`.
        service: &'static str,
        /// What was tried, with the address or interface.
        action: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}
