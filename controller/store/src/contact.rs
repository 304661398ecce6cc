//! What a lookup and a heartbeat do to [`Contact`]: pure, so that every store does the same.

use crate::{HeartbeatRecord, TokenGrant};
use model::Timestamp;
use model::agent::{AgentKind, Contact, Rival};
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
        if progress(contact.agent.as_ref()) != progress(Some(&beat.agent)) {
            contact.progress_at = Some(beat.at);
        }
        contact.callback_url = Some(beat.callback_url);
        contact.verify_ca = beat.verify_ca.or(contact.verify_ca.take());
        contact.agent_version = beat.agent_version.or(contact.agent_version.take());
        contact.last_heartbeat_at = Some(beat.at);
        contact.agent = Some(beat.agent);
    }
    is_out
}

/// The running command and its progress, if the agent reports them.
fn progress(agent: Option<&AgentKind>) -> Option<(Option<&String>, Option<&Value>)> {
    agent?.anneal().map(|state| (state.running.as_ref(), state.progress.as_ref()))
}
