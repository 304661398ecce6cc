//! The credentials of the operator: from the environment, never from the command line, which every user of the machine
//! can read.

use crate::failure::Failure;
use reqwest::{Url, header::HeaderValue};

/// A user name and password.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
    header: HeaderValue,
}

impl Credentials {
    /// `ANNEAL_USERNAME` and `ANNEAL_PASSWORD`, or with `OS_AUTH_TYPE=http_basic` what OpenStack's clients read:
    /// `OS_USERNAME` and `OS_PASSWORD`.
    pub fn from_environment() -> Result<Option<Self>, Failure> {
        let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let openstack = get("OS_AUTH_TYPE").is_some_and(|kind| kind == "http_basic");
        let prefix = match (get("ANNEAL_USERNAME"), openstack) {
            (Some(_), _) => "ANNEAL",
            (None, true) => "OS",
            (None, false) => return Ok(None),
        };
        let value = |name: &str| {
            let name = format!("{prefix}_{name}");
            get(&name)
                .ok_or_else(|| Failure::Usage(format!("{name} is not set; it belongs to the credentials")))
        };
        Self::of(&value("USERNAME")?, &value("PASSWORD")?).map(Some)
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The password.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// These; a name with a colon is rejected.
    pub fn of(user: &str, password: &str) -> Result<Self, Failure> {
        use base64::Engine;
        if user.contains(':') {
            return Err(Failure::Usage("a user's name has no ':'".to_owned()));
        }
        let token = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        let mut header = HeaderValue::from_str(&format!("Basic {token}"))
            .map_err(|_| Failure::Usage("the credentials fit into no header".to_owned()))?;
        header.set_sensitive(true);
        Ok(Self { user: user.to_owned(), password: password.to_owned(), header })
    }

    /// The header, if the connection to `endpoint` cannot be read on the network path: HTTPS or loopback.
    pub fn header_for(&self, endpoint: &Url) -> Result<HeaderValue, Failure> {
        if endpoint.scheme() == "https" || is_loopback(endpoint) {
            return Ok(self.header.clone());
        }
        Err(Failure::Usage(format!(
            "--endpoint {endpoint}: is plain HTTP, which would show the password to everybody on the way; write \
             https://"
        )))
    }
}

/// Whether a URL names this machine.
pub fn is_loopback(endpoint: &Url) -> bool {
    let host = endpoint.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}
