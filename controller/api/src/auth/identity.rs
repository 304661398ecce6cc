//! A caller's role and scope, and the projects of a node.

use model::{Node, RequestSender};
use serde_json::Value;
use std::net::IpAddr;

/// Keystone's default roles: each has the rights of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May read.
    Reader,
    /// May also use nodes.
    Member,
    /// May also configure them.
    Manager,
    /// May do everything.
    Admin,
}

impl Role {
    /// All, from the least.
    pub const ALL: [Self; 4] = [Self::Reader, Self::Member, Self::Manager, Self::Admin];

    /// Its name in the file of roles.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Member => "member",
            Self::Manager => "manager",
            Self::Admin => "admin",
        }
    }
}

/// Where a role holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// For everything.
    System,
    /// For what this project owns or leases; never empty.
    Project(String),
}

/// A role and where it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// Where.
    pub scope: Scope,
}

/// A caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The caller's rights; `None`: only what is open to all.
    pub grant: Option<Grant>,
    /// Name of the user; `None` without authentication.
    pub user: Option<String>,
}

impl Identity {
    /// A caller with full access.
    pub const ADMINISTRATOR: Self =
        Self { grant: Some(Grant { role: Role::Admin, scope: Scope::System }), user: None };
    /// An unauthenticated caller.
    pub const ANONYMOUS: Self = Self { grant: None, user: None };

    /// The project that the role is limited to.
    pub fn project(&self) -> Option<&str> {
        match &self.grant.as_ref()?.scope {
            Scope::Project(project) => Some(project),
            Scope::System => None,
        }
    }

    /// The caller, who sent a request from this address.
    pub fn sender(&self, client: Option<IpAddr>) -> RequestSender {
        RequestSender {
            user: self.user.clone(),
            project: self.project().map(str::to_owned),
            address: client.map(|address| address.to_string()),
        }
    }
}

/// Marks a request whose target the guard did not find. The handler gets a store without nodes, so that it cannot find
/// the target under another name, unjudged.
#[derive(Clone, Copy)]
pub struct TargetNotFound;

/// The projects of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    /// The owning project.
    pub owner: Option<String>,
    /// The leasing project.
    pub lessee: Option<String>,
}

impl Owners {
    /// Those of a node.
    pub fn of(node: &Node) -> Self {
        let text = |name: &str| node.other.get(name).and_then(Value::as_str).map(str::to_owned);
        Self { owner: text("owner"), lessee: text("lessee") }
    }

    /// Whether `project` is one of them.
    pub fn include(&self, project: &str) -> bool {
        [&self.owner, &self.lessee].into_iter().any(|known| known.as_deref() == Some(project))
    }
}
