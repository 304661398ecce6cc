//! The proxies of agents that fetch images by themselves.

use image_source::Proxy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// URL of a proxy as it is configured; empty: none. It may have a password, so it is not shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProxyUrl(String);

impl From<&str> for ProxyUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "ProxyUrl()" } else { "ProxyUrl(******)" })
    }
}

/// What is sent to agents, in the form of ironic-python-agent.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AgentProxies {
    /// The URL of the proxy by scheme. It may have a password.
    pub proxies: BTreeMap<&'static str, String>,
    /// Hosts that are asked without, separated by commas.
    pub no_proxy: String,
}

impl ProxyUrl {
    /// Check that it is one, or empty.
    ///
    /// # Errors
    /// Why it is none; without the URL.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { self.0.parse::<Proxy>().map(drop) }
    }
}

impl AgentProxies {
    /// For the two schemes. Without a proxy there is nothing to send.
    pub(crate) fn of(http: &ProxyUrl, https: &ProxyUrl, no_proxy: &str) -> Self {
        let set = [("http", http), ("https", https)].into_iter().filter(|(_, url)| !url.0.is_empty());
        let proxies: BTreeMap<_, _> = set.map(|(scheme, url)| (scheme, url.0.clone())).collect();
        let no_proxy = if proxies.is_empty() { String::new() } else { no_proxy.to_owned() };
        Self { proxies, no_proxy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_sent_and_the_password_is_not_shown() {
        let (url, none) = (ProxyUrl::from("http://me:word@proxy.example:3128"), ProxyUrl::default());
        let sent = AgentProxies::of(&none, &url, "own.example,192.0.2.0/24");
        assert_eq!(sent.proxies, BTreeMap::from([("https", "http://me:word@proxy.example:3128".to_owned())]));
        assert_eq!(sent.no_proxy, "own.example,192.0.2.0/24");
        assert_eq!(format!("{url:?}"), "ProxyUrl(******)");
        assert!(AgentProxies::of(&none, &none, "own.example") == AgentProxies::default());
    }
}
