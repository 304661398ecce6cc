//! What a lookup and a heartbeat change in [`Contact`]: pure, so that every store does the same.

use crate::agents::{HeartbeatRecord, TokenGrant};
use model::Timestamp;
use model::agent::{AgentKind, Contact, SecondAgent};
use serde_json::Value;
use subtle::ConstantTimeEq;

/// Give `token` to the agent, or note a rival if another agent has a token.
pub fn grant(contact: &mut Contact, token: &str, boot_id: Option<&str>, at: Timestamp) -> TokenGrant {
    if contact.token.is_some() {
        contact.rival = Some(SecondAgent { at, boot_id: boot_id.map(str::to_owned) });
        return TokenGrant::AlreadyOut;
    }
    *contact = Contact {
        token: Some(token.to_owned()),
        token_at: Some(at),
        lookup_boot_id: boot_id.map(str::to_owned),
        ..Contact::default()
    };
    TokenGrant::Given
}

/// Store a heartbeat. False, and nothing changed, when `token` is not the current one (compared in constant
/// time). A heartbeat without certificate or version keeps those of an earlier one; one that reports the same of the
/// running command as the last keeps the time of progress.
pub fn beat(contact: &mut Contact, token: &str, heartbeat: HeartbeatRecord) -> bool {
    let is_current = contact.token.as_ref().is_some_and(|out| out.as_bytes().ct_eq(token.as_bytes()).into());
    if is_current {
        if progress(contact.agent.as_ref()) != progress(Some(&heartbeat.agent)) {
            contact.progress_at = Some(heartbeat.at);
        }
        contact.callback_url = Some(heartbeat.callback_url);
        contact.verify_ca = heartbeat.verify_ca.or(contact.verify_ca.take());
        contact.agent_version = heartbeat.agent_version.or(contact.agent_version.take());
        contact.last_heartbeat_at = Some(heartbeat.at);
        contact.agent = Some(heartbeat.agent);
    }
    is_current
}

/// The running command and its progress, if the agent reports them.
fn progress(agent: Option<&AgentKind>) -> Option<(Option<&String>, Option<&Value>)> {
    agent?.anneal().map(|state| (state.running.as_ref(), state.progress.as_ref()))
}
