//! Resident memory of the controller, from `/proc`.

use anyhow::{Context, Result};
use std::time::Duration;

/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;

/// Bytes that are resident now.
///
/// # Errors
/// When there is no such process.
pub fn resident(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    parse(&status).context(path)
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Waits until at most `most` bytes are resident, and gives how many are at the end.
///
/// # Errors
/// When there is no such process.
pub async fn settled(pid: u32, most: u64, limit: Duration) -> Result<u64> {
    let begun = std::time::Instant::now();
    loop {
        let now = resident(pid)?;
        if now <= most || begun.elapsed() >= limit {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_resident_size_is_read() {
        let status = "Name:\tx\nVmHWM:\t  20 kB\nVmRSS:\t    12 kB\nThreads:\t1\n";
        assert_eq!(super::parse(status), Some(12 << 10));
        assert_eq!(super::parse("Name:\tx\n"), None);
        assert!(super::resident(std::process::id()).unwrap() > 1 << 20);
    }
}
