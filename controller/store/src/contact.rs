//! What a lookup and a heartbeat change in [`Contact`]: pure, so that every store does the same.

use crate::agents::{FetchSource, HeartbeatRecord, ScriptFetch, ScriptGrant, TokenGrant, TokenRequest};
use model::agent::{AgentKind, Contact, SecondAgent, UnsignedAgent};
use model::boot::{Boot, BootNonce};
use model::boot_proof::BootProof;
use model::{Run, Timestamp};
use serde_json::Value;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// Give the token to the agent, or note a rival if another agent has a token. Without a run that awaits an agent, or without
/// the nonce of its boot, there is no token to give: the caller does not run in a boot of ours.
///
/// An agent whose answer was lost asks again, with the boot id that only it knows. It gets the new token in the place of the
/// lost one, until a heartbeat has shown that it has one.
pub fn grant(contact: &mut Contact, run: Option<&Run>, request: TokenRequest) -> TokenGrant {
    if !is_of_this_boot(contact, request.nonce.as_ref(), request.without_nonce) {
        return TokenGrant::NotAwaited;
    }
    if request.proof_required && !is_proved(contact, request.boot_id.as_deref()) {
        return TokenGrant::NotAwaited;
    }
    if contact.token.is_some() && !asks_again(contact, request.boot_id.as_deref()) {
        contact.rival = Some(rival(contact, request));
        return TokenGrant::AlreadyOut;
    }
    if !run.is_some_and(Run::awaits_agent) {
        return TokenGrant::NotAwaited;
    }
    let shown = request.nonce.is_some();
    let proved = is_proved(contact, request.boot_id.as_deref());
    *contact = Contact {
        boot: contact.boot.take().map(|boot| Boot { shown, ..boot }),
        proof: contact.proof.take().filter(|_| proved),
        token: Some(request.token),
        token_at: Some(request.at),
        token_to: request.address,
        lookup_boot_id: request.boot_id,
        rival: contact.rival.take(),
        ..Contact::default()
    };
    TokenGrant::Given
}

/// Whether a request comes from the boot that the controller ordered: that has begun, and the request shows its nonce, compared
/// in constant time. Where the settings accept agents `without` one, only such are accepted whose boot script no client fetched
/// here.
pub fn is_of_this_boot(contact: &Contact, shown: Option<&BootNonce>, without: bool) -> bool {
    if !contact.boot.as_ref().is_none_or(Boot::has_begun) {
        return false;
    }
    match (&contact.boot, shown) {
        (Some(boot), Some(shown)) => boot.nonce.expose().as_bytes().ct_eq(shown.expose().as_bytes()).into(),
        (Some(boot), None) => without && boot.fetched_from.is_none() && boot.medium_read_by.is_none(),
        (None, Some(_)) => false,
        (None, None) => without,
    }
}

/// Whether the node's TPM has proved the boot with this id, compared in constant time.
pub fn is_proved(contact: &Contact, boot_id: Option<&str>) -> bool {
    let known = contact.proof.as_ref().zip(boot_id);
    known.is_some_and(|(proof, asked)| proof.boot_id.as_bytes().ct_eq(asked.as_bytes()).into())
}

/// Whether the agent of the boot with this id may still prove it: none has the token, or this one, before its first heartbeat.
pub fn may_prove(contact: &Contact, run_awaits_agent: bool, boot_id: &str) -> bool {
    match contact.token {
        None => run_awaits_agent,
        Some(_) => asks_again(contact, Some(boot_id)),
    }
}

/// Store a proof of the boot with this nonce. False, and nothing changed: see [`crate::AgentStore::record_proof`].
pub fn prove(contact: &mut Contact, run: Option<&Run>, nonce: &BootNonce, proof: BootProof) -> bool {
    let awaits = run.is_some_and(Run::awaits_agent);
    let accepted = may_prove(contact, awaits, &proof.boot_id) && is_of_this_boot(contact, Some(nonce), false);
    if accepted {
        contact.proof = Some(Box::new(proof));
    }
    accepted
}

/// Give the boot script, or the medium of HTTP boot, to the first address that asks while the run awaits an agent, and to that
/// one again until the agent has its token. A fetch after that, or by another address, is noted as a rival: the node rebooted, or
/// someone else asks.
///
/// The node's BMC may read the medium of the boot at any time: the caller has shown that it is the BMC.
pub fn fetch(contact: &mut Contact, run: Option<&Run>, fetch: &ScriptFetch) -> ScriptGrant {
    let mac = match fetch.by {
        FetchSource::Nic(mac) => Some(mac),
        FetchSource::Firmware => None,
        FetchSource::Bmc => {
            return contact.boot.as_mut().map_or(ScriptGrant::Withheld, |boot| {
                boot.medium_read_by.get_or_insert(fetch.from);
                keep_medium(boot, fetch);
                ScriptGrant::Given(boot.nonce.clone())
            });
        }
    };
    let awaits = run.is_some_and(Run::awaits_agent);
    if contact.token.is_none() && !awaits {
        return ScriptGrant::Withheld;
    }
    let claimed = contact.token.is_some();
    if let Some(boot) = contact.boot.as_mut().filter(|_| !claimed)
        && boot.fetched_from.is_none_or(|first| first == fetch.from)
    {
        boot.note_fetch(mac, fetch.from);
        keep_medium(boot, fetch);
        return ScriptGrant::Given(boot.nonce.clone());
    }
    if contact.claimed_from().is_some() && !is_fetch_noted(contact, fetch) {
        let address = Some(fetch.from);
        contact.rival =
            Some(SecondAgent { at: fetch.at, boot_id: None, repeated: false, address, fetched: true });
    }
    ScriptGrant::Withheld
}

/// Remember what the medium carries. What was stored first stays.
fn keep_medium(boot: &mut Boot, fetch: &ScriptFetch) {
    if boot.medium.is_none() {
        boot.medium.clone_from(&fetch.medium);
    }
}

/// Whether the same fetch was noted a moment ago.
fn is_fetch_noted(contact: &Contact, fetch: &ScriptFetch) -> bool {
    let same = |rival: &&SecondAgent| rival.fetched && rival.address == Some(fetch.from);
    contact.rival.as_ref().filter(same).is_some_and(|rival| is_recent(rival, fetch.at))
}

/// How long after a rival was noted further ones are not: their lookups would only write.
const RIVAL_PAUSE: Duration = Duration::from_secs(10);

/// Whether [`grant`] would do no more than note a rival a moment after the last one.
pub fn is_noted(contact: &Contact, boot_id: Option<&str>, now: Timestamp) -> bool {
    let is_rival = contact.token.is_some() && !asks_again(contact, boot_id);
    is_rival && contact.rival.as_ref().is_some_and(|rival| is_recent(rival, now))
}

/// Whether a rival was noted less than a pause ago. A time in the future was noted before the clock was set back.
fn is_recent(rival: &SecondAgent, now: Timestamp) -> bool {
    rival.at <= now && now.since(rival.at) < RIVAL_PAUSE
}

/// Whether the agent that got the token asks for it again, before its first heartbeat.
fn asks_again(contact: &Contact, boot_id: Option<&str>) -> bool {
    contact.callback_url.is_none() && is_same_boot(contact, boot_id)
}

/// The agent that asks now, after the one that was noted before.
fn rival(contact: &Contact, request: TokenRequest) -> SecondAgent {
    let unheard_since = |rival: &&SecondAgent| contact.last_heartbeat_at.is_none_or(|heard| heard < rival.at);
    let before = contact.rival.as_ref().filter(unheard_since);
    let repeated = before.is_some_and(|before| !before.fetched && before.boot_id == request.boot_id);
    let TokenRequest { at, boot_id, address, .. } = request;
    SecondAgent { at, boot_id, repeated, address, fetched: false }
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
        // It has been read, and proved where that is required.
        if let Some(boot) = &mut contact.boot {
            boot.medium = None;
        }
        contact.callback_url = Some(heartbeat.callback_url);
        contact.verify_ca = heartbeat.verify_ca.or(contact.verify_ca.take());
        contact.agent_version = heartbeat.agent_version.or(contact.agent_version.take());
        contact.last_heartbeat_at = Some(heartbeat.at);
        contact.agent = Some(heartbeat.agent);
    }
    is_current
}

/// Note that the agent with this token was not accepted. False, and nothing changed, when the token is not the current one, or
/// when it is noted.
pub fn refuse_unsigned(contact: &mut Contact, token: &str, agent: UnsignedAgent) -> bool {
    let is_current = contact.token.as_ref().is_some_and(|out| out.as_bytes().ct_eq(token.as_bytes()).into());
    let is_new = is_current && contact.unsigned.is_none();
    if is_new {
        contact.unsigned = Some(agent);
    }
    is_new
}

/// The running command and its progress, if the agent reports them.
fn progress(agent: Option<&AgentKind>) -> Option<(Option<&String>, Option<&Value>)> {
    agent?.anneal().map(|state| (state.running.as_ref(), state.progress.as_ref()))
}
