//! Rings between controllers, as the text of a NOTIFY on the channel `anneal`.

use std::fmt;
use store::Bell;
use uuid::Uuid;

/// A store: one opening of the database by one process. It hears its own rings at once, and ignores them here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreId(u32);

impl StoreId {
    /// A new one.
    pub fn new() -> Self {
        Self(Uuid::new_v4().as_fields().0)
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// What happened to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// It, or what belongs to it, was written.
    Changed(Uuid),
    /// Its lease was released.
    Released(Uuid),
}

impl Ring {
    /// The text that others hear.
    pub fn payload(self, store: StoreId) -> String {
        match self {
            Self::Changed(node) => format!("{store} changed {node}"),
            Self::Released(node) => format!("{store} released {node}"),
        }
    }

    /// What such a text says, and whose it is. None for another: of a later version.
    pub fn parse(payload: &str) -> Option<(StoreId, Self)> {
        let mut words = payload.split(' ');
        let store = StoreId(u32::from_str_radix(words.next()?, 16).ok()?);
        let what = words.next()?;
        let node = Uuid::parse_str(words.next()?).ok()?;
        match what {
            "changed" => Some((store, Self::Changed(node))),
            "released" => Some((store, Self::Released(node))),
            _ => None,
        }
    }

    /// Ring the bell of this process.
    pub fn sound(self, bell: &Bell) {
        match self {
            Self::Changed(node) => bell.ring(node),
            Self::Released(node) => bell.released(node),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_heard_as_it_was_sent() {
        let (store, node) = (StoreId::new(), Uuid::from_u128(5));
        for ring in [Ring::Changed(node), Ring::Released(node)] {
            assert_eq!(Ring::parse(&ring.payload(store)), Some((store, ring)));
        }
        for other in ["", "x", "00000001 changed", "00000001 moved 00000000-0000-0000-0000-000000000005"] {
            assert_eq!(Ring::parse(other), None, "{other}");
        }
    }
}
