//! How long a client may take.

use std::time::Duration;

/// How long a client may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For its TLS handshake, and from the first byte of a request to the end of the request's head.
    pub head: Duration,
    /// Between two parts of a body or of an answer. A body may take this long in all, and longer only if it arrives
    /// with at least 16 KiB per second.
    pub body: Duration,
    /// Between an answer and the next request.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let second = Duration::from_secs;
        Self { head: second(10), body: second(30), idle: second(60) }
    }
}
