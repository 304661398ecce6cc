//! Section `[api]`: where the API listens, and how its users log in.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// `[api]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Api {
    pub listen: Vec<SocketAddr>,
    pub socket: PathBuf,
    pub public_endpoint: String,
    pub allowed_hosts: Vec<String>,
    pub max_limit: usize,
    pub list_time_limit_s: u32,
    pub available_below_1_11: bool,
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub auth_strategy: AuthStrategy,
    pub http_basic_auth_user_file: PathBuf,
    pub roles_file: Option<PathBuf>,
}

/// `[api] auth_strategy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthStrategy {
    Token,
    Noauth,
    HttpBasic,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6385)],
            socket: PathBuf::new(),
            public_endpoint: String::new(),
            allowed_hosts: Vec::new(),
            max_limit: 1000,
            list_time_limit_s: 10,
            available_below_1_11: false,
            tls_certificate: None,
            tls_key: None,
            auth_strategy: AuthStrategy::Token,
            http_basic_auth_user_file: "/etc/anneal/htpasswd".into(),
            roles_file: None,
        }
    }
}

impl Api {
    /// The users of `http_basic`.
    pub fn users(&self) -> Result<api::auth::Users> {
        let users = api::auth::Users::open(self.http_basic_auth_user_file.clone(), self.roles_file.clone());
        users.context("api.http_basic_auth_user_file, api.roles_file")
    }

    /// A listener, both halves of the key pair, and users where users are needed.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(!self.listen.is_empty(), "api.listen names no address");
        ensure!(
            self.tls_certificate.is_some() == self.tls_key.is_some(),
            "api.tls_certificate and api.tls_key belong together"
        );
        if self.auth_strategy == AuthStrategy::HttpBasic {
            return self.users().map(drop);
        }
        ensure!(
            self.roles_file.is_none(),
            "api.roles_file has no effect without api.auth_strategy = \"http_basic\""
        );
        Ok(())
    }
}
