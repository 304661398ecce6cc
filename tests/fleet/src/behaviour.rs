//! How long things take on the simulated nodes and how they fail: data, read from a TOML file, drawn from a seed.

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Least and most of a time, in milliseconds; each time is drawn evenly from between.
pub type Span = [u64; 2];

/// How all nodes behave. What a file leaves out has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// Their BMCs.
    pub bmc: Bmc,
    /// Firmware, ramdisk and agent.
    pub agent: Agent,
}

/// `[bmc]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bmc {
    /// From a request to its answer.
    pub delay_ms: Span,
    /// Share of requests that are answered with 503, from 0 to 1. They have no effect.
    pub error_rate: f64,
}

/// `[agent]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// From power-on to the request of the boot script.
    pub firmware_ms: Span,
    /// From the boot script to the agent's first request.
    pub ramdisk_ms: Span,
    /// What the agent takes to look at its hardware, for an inspection.
    pub inspect_ms: Span,
    /// A step.
    pub step_ms: Span,
    /// Share of boots in which the agent dies in the middle of its first step, from 0 to 1. It stays silent until the node is
    /// reset.
    pub dies_in_step: f64,
    /// Share of heartbeats that are never sent, from 0 to 1. The agent takes them for sent.
    pub lost_heartbeats: f64,
}

impl Default for Bmc {
    fn default() -> Self {
        Self { delay_ms: [2, 10], error_rate: 0.0 }
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            firmware_ms: [1000, 2000],
            ramdisk_ms: [500, 1000],
            inspect_ms: [200, 500],
            step_ms: [500, 1500],
            dies_in_step: 0.0,
            lost_heartbeats: 0.0,
        }
    }
}

impl Behaviour {
    /// What a TOML text says.
    ///
    /// # Errors
    /// An unknown key, a span whose end is before its beginning, a share that is none.
    pub fn parse(text: &str) -> Result<Self> {
        let read: Self = toml::from_str(text)?;
        let agent = &read.agent;
        for span in [read.bmc.delay_ms, agent.firmware_ms, agent.ramdisk_ms, agent.inspect_ms, agent.step_ms]
        {
            ensure!(span[0] <= span[1], "{span:?} ends before it begins");
        }
        for share in [read.bmc.error_rate, agent.dies_in_step, agent.lost_heartbeats] {
            ensure!((0.0..=1.0).contains(&share), "{share} is no share between 0 and 1");
        }
        Ok(read)
    }

    /// That of the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read; else see [`Behaviour::parse`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }
}

/// What happens by chance at one node. The same seed, node, subject and turn always draw the same.
#[derive(Debug, Clone, Copy)]
pub struct Chance {
    /// Of the run.
    pub seed: u64,
    /// The node's number.
    pub node: u32,
}

impl Chance {
    fn rng(self, subject: &str, turn: u64) -> Rng {
        // FNV-1a, because what is drawn must be the same with every version of the standard library.
        let parts = [self.seed.to_be_bytes(), u64::from(self.node).to_be_bytes(), turn.to_be_bytes()];
        let bytes = subject.bytes().chain(parts.into_iter().flatten());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Rng::with_seed(hash)
    }

    /// A time from this span.
    pub fn time(self, span: Span, subject: &str, turn: u64) -> Duration {
        Duration::from_millis(self.rng(subject, turn).u64(span[0]..=span[1]))
    }

    /// Whether something happens that happens in this share of all turns.
    pub fn happens(self, share: f64, subject: &str, turn: u64) -> bool {
        self.unit(subject, turn) < share
    }

    /// A number below `limit`.
    pub fn below(self, limit: usize, subject: &str, turn: u64) -> usize {
        self.rng(subject, turn).usize(..limit)
    }

    /// A number in [0, 1).
    pub fn unit(self, subject: &str, turn: u64) -> f64 {
        self.rng(subject, turn).f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_data() {
        let text = "[bmc]\ndelay_ms = [10, 20]\nerror_rate = 0.1\n[agent]\ndies_in_step = 1.0\n";
        let read = Behaviour::parse(text).unwrap();
        assert_eq!((read.bmc.delay_ms, read.bmc.error_rate, read.agent.dies_in_step), ([10, 20], 0.1, 1.0));
        assert_eq!(read.agent.step_ms, Agent::default().step_ms);
        for bad in ["[bmc]\ndelay = 1", "[bmc]\ndelay_ms = [2, 1]", "[agent]\nlost_heartbeats = 1.1"] {
            assert!(Behaviour::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let of = |seed, node| Chance { seed, node };
        let draw = |chance: Chance, turn| chance.time([0, 1_000_000], "step", turn);
        assert_eq!(draw(of(1, 2), 3), draw(of(1, 2), 3));
        let other = [draw(of(2, 2), 3), draw(of(1, 3), 3), draw(of(1, 2), 4)];
        assert!(!other.contains(&draw(of(1, 2), 3)), "{other:?}");
        let share = (0..1000).filter(|turn| of(1, 2).happens(0.25, "x", *turn)).count();
        assert!((200..300).contains(&share), "{share}");
    }
}
