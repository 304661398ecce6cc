//! A second agent, or a second fetch of the boot script, in one boot. Which of the two runs on the node cannot be known: the
//! node boots again, cold, at most `max_interruptions` times in a row; then its run fails and names both addresses.

use super::fail;
use super::transition::at_work;
use super::view::View;
use crate::decision::Change;
use model::agent::{Contact, SecondAgent};
use model::run::Cursor;
use std::net::IpAddr;
use std::time::Duration;

/// How soon after its lookup an agent sends its first heartbeat, at the latest.
const FIRST_HEARTBEAT: Duration = Duration::from_secs(15);

/// Before the first heartbeat: boot again if the boot script was fetched from another address too, or if the agent that has
/// the token sent no heartbeat in [`FIRST_HEARTBEAT`] and another one asks.
pub(super) fn before_first_heartbeat(view: &View) -> Option<Change> {
    let contact = &view.snapshot.contact;
    let rival = contact.rival.as_ref()?;
    if !rival.fetched {
        let given = contact.token_at?;
        if rival.at.since(given) < FIRST_HEARTBEAT || !rival.is_certain() {
            return None;
        }
    }
    Some(boot_again(view, &describe(contact, rival)))
}

/// Another address fetched the script of this boot while the node may still have been booting. The heartbeats of the agent
/// that has the token are no veto then: an impostor that was faster than the node sends them, too.
pub(super) fn while_booting(view: &View) -> Option<String> {
    let contact = &view.snapshot.contact;
    let rival = contact.rival.as_ref().filter(|rival| rival.fetched)?;
    let is_other = rival.address != contact.boot.as_ref()?.fetched_from;
    let booting = Duration::from_secs(view.settings.boot_timeout_s);
    (is_other && rival.at.since(contact.token_at?) < booting).then(|| describe(contact, rival))
}

/// That a request was refused, and of which of two addresses.
pub(super) fn refused(contact: &Contact, rival: &SecondAgent) -> String {
    let (first, second) = (place(contact.claimed_from()), place(rival.address));
    format!("a request of {second} was refused since: the boot of {first} goes on")
}

/// What was claimed, and by whom.
pub(super) fn describe(contact: &Contact, rival: &SecondAgent) -> String {
    let fetched_from = contact.boot.as_ref().and_then(|boot| boot.fetched_from);
    let claimed_from = if rival.fetched { fetched_from.or(contact.token_to) } else { contact.claimed_from() };
    let (first, second) = (place(claimed_from), place(rival.address));
    match (rival.fetched, contact.last_heartbeat_at.is_some()) {
        (true, _) if claimed_from == rival.address => {
            format!("its boot script was fetched again from {first}")
        }
        (true, _) => format!("the boot script was fetched from {first} and also from {second}"),
        (false, true) => {
            format!("the agent (at {first}) does not answer, and another asks for its token (from {second})")
        }
        (false, false) => format!(
            "the agent that took the token (at {first}) sent no heartbeat, and another asks for it (from {second})"
        ),
    }
}

pub(super) fn place(address: Option<IpAddr>) -> String {
    address.map_or_else(|| "an unknown address".to_owned(), |address| address.to_string())
}

/// Boot the node again for this reason, or fail its run.
pub(super) fn boot_again(view: &View, text: &str) -> Change {
    let mut run = view.run.clone();
    run.interrupt();
    if run.fruitless > view.settings.max_interruptions {
        return fail::failed(view, &format!("{text} (interruption {})", run.interruptions));
    }
    let mut change = view.advance(Cursor::PowerOff);
    if let Some(run) = &mut change.node.run {
        run.interrupt();
    }
    at_work(&mut change, &format!("{text}; the node boots again"), view.snapshot.now);
    change
}
