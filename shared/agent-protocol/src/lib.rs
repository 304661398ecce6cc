//! What a controller and an agent say to each other, and nothing else.
//!
//! ```text
//!   agent ── POST <callback> ─────────▶ controller      inspection, when the node is inspected
//!   agent ── GET /v1/lookup ──────────▶ controller      lookup
//!   agent ── POST /v1/heartbeat/<uuid> ▶ controller     heartbeat
//!   agent ◀─ POST /v1/commands/ ─────── controller      command, step
//! ```
//!
//! The shapes are Ironic's and ironic-python-agent's. What Anneal adds lives in one object named
//! `anneal` in each message (and in `anneal_bundles` and `anneal_discovery` of a lookup's answer), and an agent sends its own only to a controller whose lookup answer
//! offered it ([`lookup::Offer`]): Ironic refuses unknown heartbeat fields with 400.

pub mod boot_medium;
pub mod boot_proof;
pub mod command;
pub mod deployment;
pub mod discovery;
pub mod heartbeat;
pub mod inspection;
pub mod inventory;
pub mod lookup;
pub mod progress;
pub mod record;
pub mod rescue;
pub mod schema;
pub mod step;

/// Version of the Anneal extension of the protocol; offered in lookup, echoed in heartbeats.
pub const EXTENSION: u32 = 1;

/// Microversion the agent asks for in lookup (agent tokens exist since 1.62).
pub const LOOKUP_MICROVERSION: &str = "1.62";

/// Microversion the agent sends with a heartbeat (`agent_verify_ca` exists since 1.68).
pub const HEARTBEAT_MICROVERSION: &str = "1.68";

/// Header that names the node of the agent that asks for a bundle, by its UUID.
pub const NODE_HEADER: &str = "x-anneal-node";

/// Header that carries that agent's token.
pub const TOKEN_HEADER: &str = "x-anneal-agent-token";

/// In every request of an agent that the controller booted: the nonce of that boot, which only its boot script contains.
pub const NONCE_HEADER: &str = "x-anneal-boot-nonce";

/// Header that carries a microversion `1.N` in both directions.
pub const MICROVERSION_HEADER: &str = "x-openstack-ironic-api-version";
