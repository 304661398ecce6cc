//! Everybody who could call.

use crate::common;
use api::auth::{Role, Users};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

pub const RELATIONS: [&str; 4] = ["system", "owner", "lessee", "stranger"];

/// What Ironic's own code says; see fixtures/ironic_policy.py.
pub static IRONIC: LazyLock<Value> =
    LazyLock::new(|| common::fixture(include_str!("../fixtures/ironic_policy.json")));

/// An authenticated user: relation to the node, and role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    pub relation: &'static str,
    pub role: Role,
}

impl User {
    pub fn all() -> impl Iterator<Item = Self> {
        RELATIONS.into_iter().flat_map(|relation| Role::ALL.map(|role| Self { relation, role }))
    }

    pub fn name(self) -> String {
        format!("{}-{}", self.relation, self.role.as_str())
    }

    pub fn header(self) -> String {
        basic(&self.name(), "right")
    }

    pub fn is_of_a_project(self) -> bool {
        self.relation != "system"
    }

    /// Whether Ironic's `policy` allows it; for policies of ours, whether docs/rights.md does.
    pub fn may(self, policy: &str) -> bool {
        self.may_as(policy, self.relation)
    }

    /// The same, treated as another relation.
    pub fn may_as(self, policy: &str, relation: &str) -> bool {
        match policy {
            "anneal:bundle:get"
            | "anneal:certificate:log"
            | "anneal:discovery:get"
            | "anneal:event:list_all"
            | "anneal:metrics:get"
            | "anneal:webhook:get" => relation == "system",
            "anneal:bundle:create"
            | "anneal:bundle:delete"
            | "anneal:discovery:decide"
            | "anneal:node:measurements:accept"
            | "anneal:node:override"
            | "anneal:webhook:retry" => relation == "system" && self.role == Role::Admin,
            "anneal:certificate:get" | "anneal:event:list" | "anneal:rights:get" | "anneal:session:link" => {
                true
            }
            "anneal:node:measurements:get" => matches!(relation, "system" | "owner"),
            "anneal:node:disks:retire" => relation == "system" && self.role >= Role::Member,
            policy => {
                let who = IRONIC["policies"][policy].as_array();
                let who = who.unwrap_or_else(|| panic!("Ironic has no policy {policy}"));
                who.contains(&Value::from(format!("{relation}:{}", self.role.as_str())))
            }
        }
    }
}

pub fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Invalid credentials, with the status they get.
pub fn strangers() -> Vec<(&'static str, Option<String>, u16)> {
    let admin = "system-admin";
    vec![
        ("no credentials", None, 401),
        ("a wrong password", Some(basic(admin, "wrong")), 401),
        ("no password", Some(basic(admin, "")), 401),
        ("an unknown user", Some(basic("unknown", "right")), 401),
        ("a token", Some("Bearer right".to_owned()), 400),
        ("nonsense", Some("Basic !".to_owned()), 400),
    ]
}

/// A user of the password file who is not in that of roles.
pub const WITHOUT_ROLE: &str = "roleless";

/// Files of all of them, and the users of these. All have one password: bcrypt is slow on purpose.
pub fn users() -> Arc<Users> {
    static USERS: LazyLock<Arc<Users>> = LazyLock::new(|| {
        let hash = hash("right");
        let (mut passwords, mut roles) = (format!("{WITHOUT_ROLE}:{hash}\n"), String::new());
        for user in User::all() {
            writeln!(passwords, "{}:{hash}", user.name()).unwrap();
            let project = if user.is_of_a_project() { format!("p-{}", user.relation) } else { String::new() };
            writeln!(roles, "{}: {} {project}", user.name(), user.role.as_str()).unwrap();
        }
        let dir = tempfile::tempdir().unwrap().keep();
        std::fs::write(dir.join("htpasswd"), passwords).unwrap();
        std::fs::write(dir.join("roles"), roles).unwrap();
        Arc::new(Users::open(dir.join("htpasswd"), Some(dir.join("roles"))).unwrap())
    });
    USERS.clone()
}

/// As `htpasswd -B -C 4` makes it.
pub fn hash(password: &str) -> String {
    bcrypt::hash(password, 4).unwrap().replacen("$2b$", "$2y$", 1)
}
