//! Ports that stay ours while a controller is dead: below those that the kernel gives to connections.

use anyhow::{Context, Result};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 10_240;
const LAST: u16 = 32_000;

/// A port on which no process listens, and that no other story of this process is given.
///
/// # Errors
/// When all are taken.
pub fn own() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let span = LAST - FIRST;
    // Two processes begin far from each other.
    let start = u16::try_from(std::process::id() % u32::from(span))?;
    (0..span)
        .map(|_| FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % span)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no free port on loopback")
}
