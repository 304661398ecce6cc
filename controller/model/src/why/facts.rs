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
