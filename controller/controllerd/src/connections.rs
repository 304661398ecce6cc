//! `[connections]`: how many connections each class of clients may have, and how long a client may take.

use anyhow::{Result, ensure};
use http_server::{Clients, Limits, Places, Timeouts};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// File descriptors for everything but connections: the database, files that are served, calls to BMCs and agents.
const OTHER_DESCRIPTORS: u64 = 1024;

/// `[connections]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Connections {
    pub head_timeout_s: u32,
    pub body_timeout_s: u32,
    pub idle_timeout_s: u32,
    pub boot: usize,
    pub boot_per_address: usize,
    pub agents: usize,
    pub agents_per_address: usize,
    pub operators: usize,
    pub operators_per_address: usize,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            head_timeout_s: 10,
            body_timeout_s: 30,
            idle_timeout_s: 60,
            boot: 1024,
            boot_per_address: 16,
            agents: 2048,
            agents_per_address: 16,
            operators: 1024,
            operators_per_address: 128,
        }
    }
}

/// The connections of the process, counted by class.
pub struct Classes {
    timeouts: Timeouts,
    boot: Arc<Places>,
    agents: Arc<Places>,
    operators: Arc<Places>,
}

impl Connections {
    /// Check what the types do not.
    pub fn check(&self) -> Result<()> {
        for (name, seconds) in [
            ("head_timeout_s", self.head_timeout_s),
            ("body_timeout_s", self.body_timeout_s),
            ("idle_timeout_s", self.idle_timeout_s),
        ] {
            ensure!((1..=3600).contains(&seconds), "connections.{name} must be 1 to 3600");
        }
        for (name, total, per_address) in [
            ("boot", self.boot, self.boot_per_address),
            ("agents", self.agents, self.agents_per_address),
            ("operators", self.operators, self.operators_per_address),
        ] {
            ensure!((1..=100_000).contains(&total), "connections.{name} must be 1 to 100000");
            ensure!(
                (1..=total).contains(&per_address),
                "connections.{name}_per_address must be 1 to connections.{name}"
            );
        }
        Ok(())
    }

    /// The empty classes.
    pub fn classes(&self) -> Classes {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        Classes {
            timeouts: Timeouts {
                head: seconds(self.head_timeout_s),
                body: seconds(self.body_timeout_s),
                idle: seconds(self.idle_timeout_s),
            },
            boot: Places::new("boot", Limits { total: self.boot, per_address: self.boot_per_address }),
            agents: Places::new(
                "agents",
                Limits { total: self.agents, per_address: self.agents_per_address },
            ),
            operators: Places::new(
                "operators",
                Limits { total: self.operators, per_address: self.operators_per_address },
            ),
        }
    }

    /// Raise the limit of open file descriptors as far as the process may, and warn if the connections could use it up.
    /// The default of systemd and of shells, 1,024, is for programs that use select(2).
    pub fn raise_descriptor_limit(&self) -> Result<()> {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        if soft < hard {
            setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        }
        let connections = [self.boot, self.agents, self.operators].into_iter().sum::<usize>();
        let wanted = u64::try_from(connections)?.saturating_add(OTHER_DESCRIPTORS);
        if hard < wanted {
            tracing::warn!(
                limit = hard,
                wanted,
                "the limit of open files is too low for the configured connections; raise LimitNOFILE"
            );
        }
        Ok(())
    }
}

impl Classes {
    /// The clients of boot HTTP.
    pub fn boot(&self) -> Clients {
        Clients { timeouts: self.timeouts, places: self.boot.clone(), operators: None }
    }

    /// The clients of a listener that everybody reaches: agents, and users from their first authenticated request on.
    pub fn agents(&self) -> Clients {
        let operators = Some(self.operators.clone());
        Clients { timeouts: self.timeouts, places: self.agents.clone(), operators }
    }

    /// The clients of a loopback listener.
    pub fn operators(&self) -> Clients {
        Clients { timeouts: self.timeouts, places: self.operators.clone(), operators: None }
    }
}
