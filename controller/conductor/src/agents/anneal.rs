//! Anneal's agent. Each heartbeat carries its [`AgentState`]: who it is, what it runs, what has ended.

use super::agent::{Agent, SentTo};
use model::Contact;
use model::agent::AgentState;
use model::image::BootMode;
use serde_json::Value;

impl Agent for AgentState {
    fn boot_id(&self) -> Option<&str> {
        Some(&self.boot_id)
    }

    fn process_id(&self) -> Option<&str> {
        Some(&self.process_id)
    }

    fn evidence_key(&self) -> Option<&str> {
        self.evidence_key.as_deref()
    }

    fn interruption(&self, _contact: &Contact, sent: SentTo) -> Option<&'static str> {
        if sent.boot_id.is_some_and(|then| then != self.boot_id) {
            return Some("the node rebooted");
        }
        // Another process may run a command again that the one before it had begun.
        let restarted = sent.process_id.is_some_and(|then| then != self.process_id);
        restarted.then_some("the agent was restarted: its memory of the command is lost")
    }

    fn takes_command_ids(&self) -> bool {
        true
    }

    fn can_cancel(&self) -> bool {
        true
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn reports_ends(&self) -> bool {
        true
    }

    fn has_ended(&self, command_id: &str) -> bool {
        self.ended.iter().any(|ended| ended == command_id)
    }

    fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn progress(&self) -> Option<&Value> {
        self.progress.as_ref()
    }

    fn default_boot_mode(&self) -> Option<BootMode> {
        None
    }

    fn prepares_boot(&self, _mode: Option<BootMode>) -> bool {
        true
    }

    fn logs_parameters(&self) -> bool {
        false
    }

    fn fetches_from_controller(&self) -> bool {
        true
    }

    fn expects_ironic_defaults(&self) -> bool {
        false
    }

    fn takes_rescue_keys(&self) -> bool {
        true
    }
}
