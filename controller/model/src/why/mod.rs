//! Why a node stands where it does: what it waits for and since when, what was tried and answered last, what happens next and
//! when, and which command helps. Pure: every text is made of what is stored of the node.

mod advice;
mod awaits;
mod command;
mod facts;
mod next;
mod tried;

pub use advice::{Advice, Help};
pub use awaits::{Awaited, Awaits};
pub use command::Command;
pub use facts::Facts;
pub use next::{By, Next};
pub use tried::Tried;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// What the node waits for.
    pub awaits: Awaits,
    /// What was tried and answered, the newest first. What has no stored time comes last.
    pub tried: Vec<Tried>,
    /// What happens next.
    pub next: Next,
    /// What can be done.
    pub help: Help,
}

impl Why {
    /// The answer for a node.
    pub fn of(facts: &Facts) -> Self {
        Self {
            awaits: awaits::of(facts),
            tried: tried::of(facts),
            next: next::of(facts),
            help: advice::of(facts),
        }
    }
}

#[cfg(test)]
mod tests;
