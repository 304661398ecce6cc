//! The two kinds of agent, one file each: Anneal's own, and ironic-python-agent, which reports less.

mod agent;
mod anneal;
mod ipa;

pub use agent::{Agent, SentTo};
use ipa::Ipa;
use model::Contact;
use model::agent::AgentKind;

/// The agent of this contact. Before its first heartbeat its kind is unknown; then no more is assumed than what every
/// agent can do.
pub fn of(contact: &Contact) -> &dyn Agent {
    match &contact.agent {
        Some(AgentKind::Anneal(state)) => state,
        Some(AgentKind::Ipa) | None => &Ipa,
    }
}
