//! Authentication and authorization of callers.
//!
//! ```text
//!  Authorization ─▶ basic (header) ─▶ users (htpasswd, roles) ─▶ Identity ─┐
//!  Cookie ────────▶ session (signed), for the web page ────────────────────┤
//!  a row's policy name ─▶ policy (the table) ────────────────────▶ guard ──┴─▶ handler, with a ProjectScopedStore
//! ```
//!
//! The [`guard`] is in front of the handler of every row of the table of endpoints. A caller whose role is limited to a
//! project gets a store with only the nodes that the project owns or leases ([`scoped_store`]), so no handler can reveal
//! others.

mod attempts;
pub(crate) mod audit;
pub(crate) mod basic;
pub(crate) mod cookie;
pub(crate) mod guard;
pub mod identity;
pub mod operator_token;
pub mod policy;
pub(crate) mod scoped_store;
pub mod session;
pub mod users;

pub use identity::{Grant, Identity, Owners, Role, Scope};
pub use operator_token::OperatorToken;
pub use session::Sessions;
pub use users::Users;

use basic::{BasicAuthError, Credentials};
use std::net::IpAddr;
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

impl Auth {
    /// The caller that these credentials prove.
    pub(crate) async fn login(
        &self,
        credentials: Credentials,
        client: Option<IpAddr>,
    ) -> Result<Identity, BasicAuthError> {
        match self {
            Self::Basic(users) => users.identify(credentials, client).await,
            Self::Token(token) => token.identify(credentials),
            Self::NoAuth | Self::Agents | Self::Socket => Err(BasicAuthError::WrongCredentials),
        }
    }

    /// What proves a user of the page now, and who the user is then; `None`: no such user, or a page has no users here. It is not
    /// checked whether it is that user: the caller has a signature that does.
    pub(crate) fn known(&self, user: &str) -> Option<(Vec<u8>, Identity)> {
        match self {
            Self::Basic(users) => users.known(user),
            Self::Token(token) => Some(token.known(user)),
            Self::NoAuth | Self::Agents | Self::Socket => None,
        }
    }
}
