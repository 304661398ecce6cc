//! t
use anyhow::Result;
pub fn run(_words: Vec<String>) -> Result<()> {
    anyhow::bail!("not yet")
}
