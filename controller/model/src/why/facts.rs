//! What an answer is made of.

use crate::agent::Contact;
use crate::node::Node;
use crate::request::Policy;

/// What an answer is made of.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The node as stored.
    pub node: &'a Node,
    /// Contact with its agent as stored.
    pub contact: &'a Contact,
    /// The controller that drives the node; `None`: none of its conductor group is alive.
    pub conductor: Option<&'a str>,
    /// The controller that works on the node at this moment: the holder of its lease.
    pub locked_by: Option<&'a str>,
    /// Settings that change what a verb does.
    pub policy: Policy,
}

impl Facts<'_> {
    /// Whether the run waits for an agent that gets no token, because its boot measured something else than what is recorded.
    pub(super) fn awaits_accepted_measurements(&self) -> bool {
        let changed = self.node.tpm.as_ref().and_then(|tpm| tpm.changed.as_ref());
        let run = self.node.run.as_ref().filter(|run| run.awaits_agent());
        self.contact.token.is_none()
            && run.zip(changed).is_some_and(|(run, changed)| changed.at >= run.started_at)
    }
}
