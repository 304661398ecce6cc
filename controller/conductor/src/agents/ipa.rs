//! ironic-python-agent. Its heartbeats report neither boot nor process nor commands; it chooses its own command ids and
//! cannot stop a command.

use super::agent::{Agent, SentTo};
use model::Contact;
use model::image::BootMode;
use serde_json::Value;

pub(super) struct Ipa;

impl Agent for Ipa {
    fn boot_id(&self) -> Option<&str> {
        None
    }

    fn process_id(&self) -> Option<&str> {
        None
    }

    fn evidence_key(&self) -> Option<&str> {
        None
    }

    /// Each process needs a token. If the token was given out after the command was stored, the agent is another one.
    fn interruption(&self, contact: &Contact, sent: SentTo) -> Option<&'static str> {
        let replaced = contact.token_at.is_some_and(|given| given > sent.at);
        replaced.then_some("the agent was restarted, or the node rebooted: another agent has the token")
    }

    fn takes_command_ids(&self) -> bool {
        false
    }

    fn can_cancel(&self) -> bool {
        false
    }

    fn can_resume(&self) -> bool {
        false
    }

    fn reports_ends(&self) -> bool {
        false
    }

    fn has_ended(&self, _command_id: &str) -> bool {
        false
    }

    fn is_running(&self) -> bool {
        false
    }

    fn progress(&self) -> Option<&Value> {
        None
    }

    /// As Ironic's `[deploy] default_boot_mode`.
    fn default_boot_mode(&self) -> Option<BootMode> {
        Some(BootMode::Uefi)
    }

    /// In BIOS mode it would install a boot loader of its own, and a whole-disk image has one: Ironic sends it nothing.
    fn prepares_boot(&self, mode: Option<BootMode>) -> bool {
        mode != Some(BootMode::Bios)
    }

    fn logs_parameters(&self) -> bool {
        true
    }

    fn fetches_from_controller(&self) -> bool {
        false
    }

    fn expects_ironic_defaults(&self) -> bool {
        true
    }

    fn takes_rescue_keys(&self) -> bool {
        false
    }
}
