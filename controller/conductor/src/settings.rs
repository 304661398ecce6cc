//! What an operator can set of the conductor's behaviour.

use model::CatalogueStep;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Settings, all in seconds where they are times. Defaults are documented in `anneal-controller.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Clean nodes automatically on `provide`; a node's own `automated_clean` wins. Read by the API.
    pub automated_clean_enable: bool,
    /// How long a node may take from power-on to the agent's first heartbeat.
    pub boot_timeout_s: u64,
    /// How long the BMC may take to report a power change.
    pub power_timeout_s: u64,
    /// How long VERIFYING tries to reach a BMC.
    pub verify_timeout_s: u64,
    /// How long a running agent may be silent before the node counts as lost.
    pub agent_silence_s: u64,
    /// How often a running command is asked for when no heartbeat brings news.
    pub agent_poll_s: u64,
    /// Pause before a failed deed is tried again.
    pub retry_pause_s: u64,
    /// Consecutive failures of one deed before the run fails.
    pub max_attempts: u32,
    /// How often a step is started again after the node was interrupted in it.
    pub max_interruptions: u32,
    /// How often automated cleaning starts anew because hardware managers changed.
    pub max_replans: u32,
    /// How often the power state of resting nodes is read; 0 = never.
    pub power_sync_s: u64,
    /// Priorities of clean steps by `interface.step`, applied before anything is filtered; 0 = never automatic.
    pub clean_step_priority_override: BTreeMap<String, f64>,
    /// Power a node off once it has become MANAGEABLE (specs/state-machine.txt: "and (optionally) powered off").
    pub power_off_after_verifying: bool,
    /// Leave the ramdisk running after cleaning instead of powering the node off.
    pub stay_on_after_cleaning: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            automated_clean_enable: true,
            boot_timeout_s: 1800,
            power_timeout_s: 120,
            verify_timeout_s: 60,
            agent_silence_s: 300,
            agent_poll_s: 5,
            retry_pause_s: 2,
            max_attempts: 5,
            max_interruptions: 2,
            max_replans: 3,
            power_sync_s: 60,
            clean_step_priority_override: BTreeMap::new(),
            power_off_after_verifying: false,
            stay_on_after_cleaning: false,
        }
    }
}

impl Settings {
    /// [`Self::retry_pause_s`].
    pub fn retry_pause(&self) -> Duration {
        Duration::from_secs(self.retry_pause_s)
    }

    /// [`Self::agent_poll_s`].
    pub fn agent_poll(&self) -> Duration {
        Duration::from_secs(self.agent_poll_s)
    }

    /// The steps with overridden priorities.
    pub fn override_priorities(&self, mut steps: Vec<CatalogueStep>) -> Vec<CatalogueStep> {
        for step in &mut steps {
            let key = format!("{}.{}", step.interface, step.step);
            let wanted =
                self.clean_step_priority_override.get(&key).and_then(|p| serde_json::Number::from_f64(*p));
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
    use model::step::automated_plan;

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
            let steps = settings.override_priorities(known.clone());
            automated_plan(&steps).iter().map(PlannedStep::label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(plan(&[]), "deploy.first deploy.second");
        assert_eq!(plan(&[("first", 0.0)]), "deploy.second");
        assert_eq!(plan(&[("second", 90.5)]), "deploy.second deploy.first");
        assert_eq!(plan(&[("never", 50.0)]), "deploy.first deploy.never deploy.second");
        assert_eq!(plan(&[("unknown", 50.0)]), "deploy.first deploy.second");
    }
}
