//! Section `[bundles]`: where bundles of hardware managers are kept, and whose are trusted.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[bundles]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bundles {
    pub directory: PathBuf,
    pub trusted_keys: Vec<String>,
    pub allow_unsigned: bool,
    pub max_mib: u64,
}

impl Default for Bundles {
    fn default() -> Self {
        Self { directory: PathBuf::new(), trusted_keys: Vec::new(), allow_unsigned: false, max_mib: 512 }
    }
}

impl Bundles {
    /// Which bundles are accepted.
    pub fn trust(&self) -> Result<bundle::Trust> {
        let keys = self.trusted_keys.iter().map(|key| key.parse());
        let keys = keys.collect::<Result<Vec<bundle::PublicKey>, _>>().context("bundles.trusted_keys")?;
        Ok(bundle::Trust::Keys { keys, unsigned: self.allow_unsigned })
    }
    /// Keys that can be read, and a bound.
    pub(super) fn check(&self) -> Result<()> {
        self.trust()?;
        ensure!((1..=4096).contains(&self.max_mib), "bundles.max_mib must be 1 to 4096");
        Ok(())
    }
}
