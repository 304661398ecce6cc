//! Many simulated nodes in one process, each with a BMC and an agent, over real protocols.
//!
//! ```text
//!   controller ── Redfish over HTTP(S) ────▶ bmc.rs ─┐
//!                                      medium.rs ◀──┼─▶ machine.rs  its power, its boot device
//!   controller ◀── boot script ── firmware.rs ◀──────┘       │
//!              ◀── inspection, lookup, heartbeat ── agent.rs ◀┘   contact.rs: to the next controller when one is silent
//!              ─── commands, TLS ─────────────▶ agent.rs
//! ```
//!
//! Each node has an address of its own, its agent a certificate, a token and a list of commands of its own. A node's power is
//! here and not in a controller, so several controllers see the same machine. Times and faults are data (`behaviour.rs`), drawn
//! from a seed. `journal.rs` has every call of a BMC and every command of an agent.
//!
//! `sizing` takes one controller from empty to all nodes available. `images` lets all nodes fetch one image at once, `media` lets
//! them boot by virtual media at once.
//! `power` reads the power state of all nodes, within a period and as often as it can.
//! `image_takeover` kills one of three controllers when every node has half of an image. `rounds` gives three controllers on one PostgreSQL the same
//! nodes, disturbs one of them, and judges what the nodes saw. `upgrade` replaces all three by another build, one after another.

pub mod agent;
pub mod behaviour;
pub mod bmc;
pub mod contact;
pub mod fetches;
pub mod firmware;
pub mod fleet;
pub mod image_takeover;
pub mod images;
pub mod journal;
pub mod machine;
pub mod media;
pub mod medium;
pub mod network;
pub mod operator;
pub mod power;
pub mod rounds;
pub mod sizing;
pub mod upgrade;
