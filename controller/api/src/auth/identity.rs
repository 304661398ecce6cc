//! A caller, and whose a node is.

use model::Node;
use serde_json::Value;

/// What a user may, as Keystone's default roles: each has the rights of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks.
    Reader,
    /// Works with nodes.
    Member,
    /// Also decides how they are set up.
    Manager,
    /// Everything.
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
    /// What he may; `None`: nothing but what is open to all.
    pub grant: Option<Grant>,
}

impl Identity {
    /// Who may everything.
    pub const ADMINISTRATOR: Self = Self { grant: Some(Grant { role: Role::Admin, scope: Scope::System }) };
    /// Who has proved nothing.
    pub const ANONYMOUS: Self = Self { grant: None };

    /// The project that his role is for.
    pub fn project(&self) -> Option<&str> {
        match &self.grant.as_ref()?.scope {
            Scope::Project(project) => Some(project),
            Scope::System => None,
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
    /// Whose it is.
    pub owner: Option<String>,
    /// Who has it for now.
    pub lessee: Option<String>,
}

impl Owners {
    /// Those of a node.
    pub fn of(node: &Node) -> Self {
        let text = |name: &str| node.other.get(name).and_then(Value::as_str).map(str::to_owned);
        Self { owner: text("owner"), lessee: text("lessee") }
    }

    /// Whether it is one of them.
    pub fn include(&self, project: &str) -> bool {
        [&self.owner, &self.lessee].into_iter().any(|known| known.as_deref() == Some(project))
    }
}
