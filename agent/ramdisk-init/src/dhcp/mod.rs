//! A DHCPv4 client (RFC 2131): the codec and the state machine are pure, [`super::network`] does I/O.

mod machine;
mod message;

pub use machine::{Lease, Machine, Output};
