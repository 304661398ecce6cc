//! Authentication and authorization of callers.
//!
//! ```text
//!  Authorization ─▶ basic (header) ─▶ users (htpasswd, roles) ─▶ Identity ─┐
//!  a row's policy name ─▶ policy (the table) ────────────────────▶ guard ──┴─▶ handler, with a ProjectScopedStore
//! ```
//!
//! The [`guard`] is in front of the handler of every row of the table of endpoints. A caller whose role is limited to a
//! project gets a store with only the nodes that the project owns or leases ([`scoped_store`]), so no handler can reveal
//! others.

mod attempts;
pub(crate) mod audit;
pub(crate) mod basic;
pub(crate) mod guard;
pub mod identity;
pub mod operator_token;
pub mod policy;
pub(crate) mod scoped_store;
pub mod users;

pub use identity::{Grant, Identity, Owners, Role, Scope};
pub use operator_token::OperatorToken;
pub use users::Users;

use std::sync::Arc;

/// How callers authenticate.
#[derive(Clone)]
pub enum Auth {
    /// Every caller is an administrator (Ironic's `noauth`): for loopback.
    NoAuth,
    /// Agents only: the endpoints that are open, and those that an agent's token opens.
    Agents,
    /// Users with a password (Ironic's `http_basic`).
    Basic(Arc<Users>),
    /// A caller that sends the token in a file of the controller is an administrator: for loopback.
    Token(Arc<OperatorToken>),
    /// A user that may open a Unix socket is an administrator.
    Socket,
}
