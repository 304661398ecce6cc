//! What a lookup and a heartbeat change in [`Contact`]: pure, so that every store does the same.

use crate::agents::{HeartbeatRecord, TokenGrant};
use model::agent::{AgentKind, Contact, SecondAgent};
use model::{Run, Timestamp};
use serde_json::Value;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// Give `token` to the agent, or note a rival if another agent has a token. Without a run that awaits an agent there is no
/// token to give: the caller does not run in a boot of ours.
///
/// An agent whose answer was lost asks again, with the boot id that only it knows. It gets the new token in the place of the
/// lost one, until a heartbeat has shown that it has one.
pub fn grant(
    contact: &mut Contact,
    run: Option<&Run>,
    token: &str,
    boot_id: Option<&str>,
    at: Timestamp,
) -> TokenGrant {
    if contact.token.is_some() && !asks_again(contact, boot_id) {
        contact.rival = Some(rival(contact, boot_id, at));
        return TokenGrant::AlreadyOut;
    }
    if !run.is_some_and(Run::awaits_agent) {
        return TokenGrant::NotAwaited;
    }
    *contact = Contact {
        token: Some(token.to_owned()),
        token_at: Some(at),
        lookup_boot_id: boot_id.map(str::to_owned),
        rival: contact.rival.take(),
        ..Contact::default()
    };
    TokenGrant::Given
}

/// How long after a rival was noted further ones are not: their lookups would only write.
const RIVAL_PAUSE: Duration = Duration::from_secs(10);

/// Whether [`grant`] would do no more than note a rival a moment after the last one.
pub fn is_noted(contact: &Contact, boot_id: Option<&str>, now: Timestamp) -> bool {
    let is_rival = contact.token.is_some() && !asks_again(contact, boot_id);
    // A time in the future was noted before the clock was set back.
    let is_recent = |rival: &SecondAgent| rival.at <= now && now.since(rival.at) < RIVAL_PAUSE;
    is_rival && contact.rival.as_ref().is_some_and(is_recent)
}

/// Whether the agent that got the token asks for it again, before its first heartbeat.
fn asks_again(contact: &Contact, boot_id: Option<&str>) -> bool {
    contact.callback_url.is_none() && is_same_boot(contact, boot_id)
}

/// The agent that asks now, after the one that was noted before.
fn rival(contact: &Contact, boot_id: Option<&str>, at: Timestamp) -> SecondAgent {
    let unheard_since = |rival: &&SecondAgent| contact.last_heartbeat_at.is_none_or(|heard| heard < rival.at);
    let before = contact.rival.as_ref().filter(unheard_since);
    let repeated = before.is_some_and(|before| before.boot_id.as_deref() == boot_id);
    SecondAgent { at, boot_id: boot_id.map(str::to_owned), repeated }
}

/// Whether the lookup that got the token named this boot, compared in constant time.
fn is_same_boot(contact: &Contact, boot_id: Option<&str>) -> bool {
    let known = contact.lookup_boot_id.as_deref().zip(boot_id);
    known.is_some_and(|(known, asked)| known.as_bytes().ct_eq(asked.as_bytes()).into())
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
