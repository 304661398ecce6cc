//! `[ui]`

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// `[ui]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UiSettings {
    pub enabled: bool,
    pub off_loopback: bool,
    pub max_streams: usize,
}

impl Default for UiSettings {
    fn default() -> Self {
        Self { enabled: true, off_loopback: false, max_streams: api::NodeFeed::STREAMS }
    }
}

impl UiSettings {
    /// Check what the types do not; `has_users`: the API has users with passwords.
    pub fn check(&self, has_users: bool) -> Result<()> {
        ensure!(
            !self.off_loopback || (self.enabled && has_users),
            "ui.off_loopback needs ui.enabled and api.auth_strategy = \"http_basic\": other addresses serve no operators"
        );
        ensure!(self.max_streams <= 100_000, "ui.max_streams must be at most 100000");
        Ok(())
    }

    /// Most streams of nodes. Each holds a connection of an operator: with the streams of events a quarter of those stay for others.
    pub fn streams(&self, operators: usize) -> usize {
        self.max_streams.min(operators / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_leaves_loopback_only_where_users_are() {
        let page = UiSettings::default();
        for has_users in [false, true] {
            assert!(page.check(has_users).is_ok());
            let everywhere = UiSettings { off_loopback: true, ..page.clone() };
            assert_eq!(everywhere.check(has_users).is_ok(), has_users);
        }
        let off = UiSettings { enabled: false, off_loopback: true, ..page };
        assert!(off.check(true).is_err());
        assert_eq!([1024, 256, 1].map(|operators| UiSettings::default().streams(operators)), [256, 64, 0]);
    }
}
