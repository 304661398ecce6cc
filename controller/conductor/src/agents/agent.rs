//! What the conductor asks about an agent, whichever kind it is.

use model::image::BootMode;
use model::{Contact, Timestamp};
use serde_json::Value;

/// The agent that a command was stored for.
#[derive(Debug, Clone, Copy)]
pub struct SentTo<'a> {
    /// When the command was stored or, once it is accepted, when the agent first reported it.
    pub at: Timestamp,
    /// The agent's boot id, if it reported one.
    pub boot_id: Option<&'a str>,
    /// The agent's process id, if it reported one.
    pub process_id: Option<&'a str>,
}

/// An agent as its last heartbeat describes it.
pub trait Agent: Sync {
    /// Boot id of its ramdisk, if it reports one.
    fn boot_id(&self) -> Option<&str>;

    /// Id of its process, if it reports one.
    fn process_id(&self) -> Option<&str>;

    /// The public key with which it signs the evidence of its erases, if it signs them.
    fn evidence_key(&self) -> Option<&str>;

    /// Why this is not the agent that the command was stored for: the reason for which the command was interrupted.
    fn interruption(&self, contact: &Contact, sent: SentTo) -> Option<&'static str>;

    /// Whether it takes the controller's command ids, so that a command that is sent twice runs once.
    fn takes_command_ids(&self) -> bool;

    /// Whether it can stop a running command.
    fn can_cancel(&self) -> bool;

    /// Whether it can resume an interrupted step from a checkpoint.
    fn can_resume(&self) -> bool;

    /// Whether its heartbeats report which commands have ended, so that it need not be asked often.
    fn reports_ends(&self) -> bool;

    /// Whether its heartbeat reports that this command has ended.
    fn has_ended(&self, command_id: &str) -> bool;

    /// Whether its heartbeat reports a running command, and so that command's progress.
    fn is_running(&self) -> bool;

    /// Progress of the running command, as the agent sent it.
    fn progress(&self) -> Option<&Value>;

    /// The boot mode that it is to prepare where none is asked for; `None`: that of its own boot.
    fn default_boot_mode(&self) -> Option<BootMode>;

    /// Whether it has to prepare a node that boots in this mode.
    fn prepares_boot(&self, mode: Option<BootMode>) -> bool;

    /// Whether it writes the parameters of its commands to its log. Such an agent gets no secrets.
    fn logs_parameters(&self) -> bool;

    /// Whether it can fetch from the controller, whose certificate it must know, and judges hosts as the controller does.
    fn fetches_from_controller(&self) -> bool;

    /// Whether it expects Ironic's defaults for erasing in the node of each command.
    fn expects_ironic_defaults(&self) -> bool;

    /// Whether keys may log in to its rescue ramdisk, besides the password.
    fn takes_rescue_keys(&self) -> bool;
}
