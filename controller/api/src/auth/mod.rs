//! Who asks, and whether he may.
//!
//! ```text
//!  Authorization ─▶ basic (header) ─▶ users (htpasswd, roles) ─▶ Identity ─┐
//!  a row's policy name ─▶ policy (the table) ────────────────────▶ guard ──┴─▶ handler, with a Seen store
//! ```
//!
//! The [`guard`] stands before the handler of every row of the table of endpoints. A caller of a project gets a store
//! that has only the nodes his project owns or leases ([`seen`]), so no handler can tell him of others.

pub(crate) mod basic;
pub(crate) mod guard;
pub mod identity;
pub mod policy;
pub(crate) mod seen;
pub mod users;

pub use identity::{Grant, Identity, Owners, Role, Scope};
pub use users::Users;

use std::sync::Arc;

/// Who is let in, and how he proves who he is.
#[derive(Clone)]
pub enum Auth {
    /// Everybody is an administrator (Ironic's `noauth`): for loopback.
    Everybody,
    /// Nobody but agents: only what is open, and what they prove with their token.
    Agents,
    /// Users with a password (Ironic's `http_basic`).
    Basic(Arc<Users>),
}
