//! `[metrics]`

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `[metrics]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsSettings {
    pub listen: Vec<SocketAddr>,
    pub bearer_token_file: PathBuf,
}

impl MetricsSettings {
    /// Refuses a listener that every host on a network could read.
    pub fn check(&self) -> Result<()> {
        for address in &self.listen {
            ensure!(
                address.ip().is_loopback() || self.asks_for_token(),
                "metrics.listen {address} is not loopback: it needs metrics.bearer_token_file, or scrape /metrics of an API \
                 listener with users"
            );
        }
        ensure!(
            !self.asks_for_token() || !self.listen.is_empty(),
            "metrics.bearer_token_file has no effect without metrics.listen"
        );
        Ok(())
    }

    /// Whether a scrape must bring the token.
    pub fn asks_for_token(&self) -> bool {
        !self.bearer_token_file.as_os_str().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_served_without_a_token() {
        let settings = |listen: &str, file: &str| MetricsSettings {
            listen: vec![listen.parse().unwrap()],
            bearer_token_file: file.into(),
        };
        for address in ["127.0.0.1:9118", "127.9.9.9:1", "[::1]:9118"] {
            assert!(settings(address, "").check().is_ok(), "{address}");
        }
        for address in ["0.0.0.0:9118", "192.0.2.1:9118", "[::]:9118"] {
            let refused = settings(address, "").check().unwrap_err().to_string();
            assert!(refused.contains(address) && refused.contains("bearer_token_file"), "{refused}");
            assert!(settings(address, "/etc/anneal/metrics.token").check().is_ok(), "{address}");
        }
        let unused = MetricsSettings { bearer_token_file: "/f".into(), ..MetricsSettings::default() };
        assert!(unused.check().is_err());
    }
}
