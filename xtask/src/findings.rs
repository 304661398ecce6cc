//! How a check reports what it found.

use anyhow::{Result, bail};

/// Fails if there are findings: with what they are, how many, and each on a line of its own.
pub fn none(findings: &[String], what: &str) -> Result<()> {
    if !findings.is_empty() {
        bail!("{what} ({}):\n  {}", findings.len(), findings.join("\n  "));
    }
    Ok(())
}
