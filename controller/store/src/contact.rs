//! What a lookup and a heartbeat do to [`Contact`]: pure, so that every store does the same.

use crate::agents::{HeartbeatRecord, TokenGrant};
use model::Timestamp;
use model::agent::{AgentState, Contact, Rival};
use serde_json::Value;
use subtle::ConstantTimeEq;

/// Give `token` out, or note that somebody asked while one was out.
pub fn grant(contact: &mut Contact, token: &str, boot_id: Option<&str>, at: Timestamp) -> TokenGrant {
    if contact.token.is_some() {
        contact.rival = Some(Rival { at, boot_id: boot_id.map(str::to_owned) });
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

/// Take a beat in. False, and nothing changed, when `token` is not the one that is out (compared in constant
/// time). A beat without certificate or version keeps what an earlier one told; one that tells of the running
/// command just what the last told leaves the time of progress where it was.
pub fn beat(contact: &mut Contact, token: &str, beat: HeartbeatRecord) -> bool {
    let is_out = contact.token.as_ref().is_some_and(|out| out.as_bytes().ct_eq(token.as_bytes()).into());
    if is_out {
        if told(contact.state.as_ref()) != told(beat.state.as_ref()) {
            contact.progress_at = Some(beat.at);
        }
        contact.callback_url = Some(beat.callback_url);
        contact.verify_ca = beat.verify_ca.or(contact.verify_ca.take());
        contact.agent_version = beat.agent_version.or(contact.agent_version.take());
        contact.last_heartbeat_at = Some(beat.at);
        contact.state = beat.state;
    }
    is_out
}

/// What an agent tells of its running command.
fn told(state: Option<&AgentState>) -> Option<(Option<&String>, Option<&Value>)> {
    state.map(|state| (state.running.as_ref(), state.progress.as_ref()))
}
