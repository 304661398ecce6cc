//! The conductor's settings.

use agent_protocol::record::RequiredVerification;
use model::interface::AddPorts;
use model::provision::Budget;
use model::root_disk::Rules;
use model::{CatalogueStep, ProvisionState, StepKind};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Settings, all in seconds where they are times. Defaults are documented in `anneal-controller.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Clean nodes automatically on `provide`; a node's own `automated_clean` wins. Read by the API.
    pub automated_clean_enable: bool,
    /// The conductor group whose nodes this controller drives; empty: those of every group that has no controller of its own.
    pub conductor_group: String,
    /// How long a node may take from power-on to the agent's first heartbeat.
    pub boot_timeout_s: u64,
    /// How long the BMC may take to report a power change.
    pub power_timeout_s: u64,
    /// How long VERIFYING tries to reach a BMC.
    pub verify_timeout_s: u64,
    /// How long a running agent may be silent before the node counts as lost.
    pub agent_silence_s: u64,
    /// Seconds between two queries of a running command when no heartbeat reports on it. An ironic-python-agent, whose
    /// heartbeats report nothing, is asked sooner at first: 50 ms after it got the command, then after a quarter of the time
    /// that the command has run, at most this.
    pub agent_poll_s: u64,
    /// Pause after a reset before the boot device of the next reset is set: the firmware that starts could use it up.
    pub reset_pause_s: u64,
    /// Pause before a failed action, or a pass that panicked, is tried again.
    pub retry_pause_s: u64,
    /// Consecutive failures of one action, or panics of a pass, before the run fails.
    pub max_attempts: u32,
    /// How often in a row a step is started again after an interruption, without progress in between.
    pub max_interruptions: u32,
    /// How often automated cleaning starts again because hardware managers changed.
    pub max_replans: u32,
    /// How often the power state of nodes at rest is read; 0 = never.
    pub power_sync_s: u64,
    /// How long one step may take in all; 0 = no limit.
    pub step_timeout_s: u64,
    /// How long a step that reports progress may take without any; 0 = no limit.
    pub step_stall_s: u64,
    /// [`Self::step_timeout_s`] of single steps, by `interface.step`.
    pub step_timeout_override: BTreeMap<String, u64>,
    /// [`Self::step_stall_s`] of single steps, by `interface.step`.
    pub step_stall_override: BTreeMap<String, u64>,
    /// What an erase must be verified by: sent to the agents, whose reports are held to it.
    pub require_verification: RequiredVerification,
    /// Time budgets of single states instead of [`Self::verify_timeout_s`], [`Self::power_timeout_s`] and
    /// [`Self::boot_timeout_s`], by the state's name.
    pub state_timeout_s: BTreeMap<String, u64>,
    /// Priorities of clean steps by `interface.step`, applied before anything is filtered; 0 = never automatic.
    pub clean_step_priority_override: BTreeMap<String, f64>,
    /// The same of deploy steps; non-negative integers.
    pub deploy_step_priority_override: BTreeMap<String, u64>,
    /// Which interfaces of an inventory become ports of the node. Those that `fake-hardware` invents never do.
    pub inspection_add_ports: AddPorts,
    /// Power a node off once it has become MANAGEABLE (specs/state-machine.txt: "and (optionally) powered off").
    pub power_off_after_verifying: bool,
    /// Where the machines of this controller stand; in erasure certificates. Empty: it is not stated.
    pub site: String,
    /// Without root device hints no smaller disk gets an image, in GiB.
    pub root_disk_min_gib: u64,
    /// Deploy only where the root device hints leave one disk; else the smallest of several is taken.
    pub root_device_strict: bool,
    /// Leave the ramdisk running after cleaning instead of powering the node off.
    pub stay_on_after_cleaning: bool,
    /// Keep the ramdisk of automated cleaning running for a deployment, which then begins without a reboot; a node's own
    /// `driver_info.fast_track` wins.
    pub fast_track: bool,
    /// Whether only a boot counts that the node's TPM has proved (`[boot] require_tpm`), unless its `driver_info` decides.
    #[serde(skip)]
    pub require_tpm: bool,
    /// How old the last heartbeat of such a ramdisk may be for a deployment to begin in it.
    pub fast_track_timeout_s: u64,
    /// How long an available node keeps its ramdisk for a deployment before it is powered off; 0 = no limit.
    pub fast_track_idle_s: u64,
    /// Most nodes that are worked on at the same moment.
    pub max_passes: usize,
    /// Most of them at one BMC address.
    pub max_passes_per_bmc: usize,
    /// When the logs of the ramdisk are collected.
    pub logs_collect: CollectLogs,
    /// Their directory; empty: the caller's choice.
    pub logs_directory: PathBuf,
    /// Largest archive that is kept, in MiB.
    pub logs_max_mib: u64,
    /// How many archives of one node are kept; the oldest are deleted.
    pub logs_keep: usize,
    /// Most MiB of all archives together; the oldest of all nodes are deleted for a new one.
    pub logs_total_mib: u64,
    /// MiB that an archive leaves free on its file system; else it is not stored.
    pub logs_min_free_mib: u64,
}

/// When logs are collected: Ironic's `[agent]deploy_logs_collect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectLogs {
    /// When a run fails while its agent sends heartbeats.
    OnFailure,
    /// Also before the ramdisk is stopped after a success.
    Always,
    /// Never.
    Never,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            automated_clean_enable: true,
            conductor_group: String::new(),
            boot_timeout_s: 1800,
            power_timeout_s: 120,
            verify_timeout_s: 60,
            agent_silence_s: 300,
            agent_poll_s: 5,
            reset_pause_s: 60,
            retry_pause_s: 2,
            max_attempts: 5,
            max_interruptions: 2,
            max_replans: 3,
            power_sync_s: 60,
            step_timeout_s: 72 * 3600,
            step_stall_s: 1800,
            step_timeout_override: BTreeMap::new(),
            step_stall_override: BTreeMap::new(),
            require_verification: RequiredVerification::Device,
            state_timeout_s: BTreeMap::new(),
            clean_step_priority_override: BTreeMap::new(),
            deploy_step_priority_override: BTreeMap::new(),
            inspection_add_ports: AddPorts::Pxe,
            power_off_after_verifying: false,
            site: String::new(),
            root_disk_min_gib: Rules::default().smallest >> 30,
            root_device_strict: Rules::default().strict,
            stay_on_after_cleaning: false,
            fast_track: false,
            require_tpm: false,
            fast_track_timeout_s: 300,
            fast_track_idle_s: 3600,
            max_passes: 128,
            max_passes_per_bmc: 8,
            logs_collect: CollectLogs::OnFailure,
            logs_directory: PathBuf::new(),
            logs_max_mib: 32,
            logs_keep: 10,
            logs_total_mib: 10_240,
            logs_min_free_mib: 1024,
        }
    }
}

impl Settings {
    /// [`Self::retry_pause_s`].
    pub fn retry_pause(&self) -> Duration {
        Duration::from_secs(self.retry_pause_s)
    }

    /// [`Self::reset_pause_s`].
    pub fn reset_pause(&self) -> Duration {
        Duration::from_secs(self.reset_pause_s)
    }

    /// [`Self::agent_poll_s`].
    pub fn agent_poll(&self) -> Duration {
        Duration::from_secs(self.agent_poll_s)
    }

    /// [`Self::root_disk_min_gib`] and [`Self::root_device_strict`].
    pub fn root_disk_rules(&self) -> Rules {
        Rules { smallest: self.root_disk_min_gib.saturating_mul(1 << 30), strict: self.root_device_strict }
    }

    /// The budget of a state ([`ProvisionState::budget`]); `None`: a user decides.
    pub fn budget(&self, state: ProvisionState) -> Option<Duration> {
        let default = match state.budget() {
            Budget::User => return None,
            Budget::Verify => self.verify_timeout_s,
            Budget::Bmc => self.power_timeout_s,
            Budget::Ramdisk => self.boot_timeout_s,
        };
        Some(Duration::from_secs(self.state_timeout_s.get(state.as_str()).copied().unwrap_or(default)))
    }

    /// How long a step may take, and how long without progress; `None`: no limit.
    pub fn step_limits(&self, label: &str) -> (Option<Duration>, Option<Duration>) {
        let limit = |overrides: &BTreeMap<String, u64>, default: u64| {
            let seconds = overrides.get(label).copied().unwrap_or(default);
            (seconds > 0).then(|| Duration::from_secs(seconds))
        };
        (
            limit(&self.step_timeout_override, self.step_timeout_s),
            limit(&self.step_stall_override, self.step_stall_s),
        )
    }

    /// The steps with overridden priorities.
    pub fn override_priorities(&self, kind: StepKind, mut steps: Vec<CatalogueStep>) -> Vec<CatalogueStep> {
        for step in &mut steps {
            let key = step.label();
            let wanted = match kind {
                StepKind::Clean => {
                    self.clean_step_priority_override.get(&key).and_then(|p| Number::from_f64(*p))
                }
                StepKind::Deploy => self.deploy_step_priority_override.get(&key).map(|p| Number::from(*p)),
                StepKind::Service => None,
            };
            if let Some(priority) = wanted {
                step.priority = priority;
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PlannedStep;
    use model::plan::automated_plan;

    #[test]
    fn priorities_are_overridden_before_steps_are_filtered_and_ordered() {
        let step = |name: &str, priority: i64| {
            let text = serde_json::json!({"interface": "deploy", "step": name, "priority": priority});
            serde_json::from_value(text).unwrap()
        };
        let known = vec![step("first", 90), step("second", 10), step("never", 0)];
        let plan = |overrides: &[(&str, f64)]| {
            let mut settings = Settings::default();
            for (step, priority) in overrides {
                settings.clean_step_priority_override.insert(format!("deploy.{step}"), *priority);
            }
            let steps = settings.override_priorities(StepKind::Clean, known.clone());
            automated_plan(&steps).iter().map(PlannedStep::label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(plan(&[]), "deploy.first deploy.second");
        assert_eq!(plan(&[("first", 0.0)]), "deploy.second");
        assert_eq!(plan(&[("second", 90.5)]), "deploy.second deploy.first");
        assert_eq!(plan(&[("never", 50.0)]), "deploy.first deploy.never deploy.second");
        assert_eq!(plan(&[("unknown", 50.0)]), "deploy.first deploy.second");
    }
}
