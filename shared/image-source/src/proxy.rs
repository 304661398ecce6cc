//! Proxies between a node and its mirrors, as ironic-python-agent has them: one for each scheme, and hosts that are asked without.

use crate::credentials::basic;
use crate::hosts::Host;
use crate::url::ImageUrl;
use hyper::header::HeaderValue;
use std::fmt;
use std::str::FromStr;

/// A proxy that is spoken to in plain HTTP: `http://[user:password@]host[:port]`. Shown without its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    url: ImageUrl,
    authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Where it is.
    pub(crate) fn url(&self) -> &ImageUrl {
        &self.url
    }

    /// The header with user and password.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

impl FromStr for Proxy {
    type Err = String;

    /// The problem never contains the text.
    fn from_str(text: &str) -> Result<Self, String> {
        let url: ImageUrl = text.parse()?;
        if url.is_tls() {
            return Err("a proxy is spoken to in plain HTTP; it must begin with http://".to_owned());
        }
        if url.target() != "/" {
            return Err("a proxy has no path".to_owned());
        }
        let authorization = url.userinfo().map(basic).transpose()?;
        Ok(Self { url, authorization })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// Which proxy is asked for a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http://`: it is given the whole URL.
    pub http: Option<Proxy>,
    /// For `https://`: it opens the way to the mirror (CONNECT), and reads nothing.
    pub https: Option<Proxy>,
    /// Hosts that are asked without.
    pub none_for: NoProxy,
}

impl Proxies {
    /// The proxy for a URL; `None`: the mirror is asked itself.
    pub(crate) fn of(&self, url: &ImageUrl) -> Option<&Proxy> {
        let proxy = if url.is_tls() { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.none_for.has(url))
    }
}

/// Hosts that are asked without a proxy: names with all names below them, addresses and networks, separated by commas. `*` is every
/// host. A name that leads to such an address is none of them: it is not resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy {
    all: bool,
    hosts: Vec<Host>,
}

impl NoProxy {
    fn has(&self, url: &ImageUrl) -> bool {
        let is_meant = |host: &Host| match (host, url.ip()) {
            (Host::Net(net), Some(address)) => net.contains(&address),
            (Host::Net(_), None) => false,
            (Host::Name(_), _) => host.names(url.host()),
        };
        self.all || self.hosts.iter().any(is_meant)
    }
}

impl FromStr for NoProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parsed = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if word == "*" {
                parsed.all = true;
                continue;
            }
            let host = Host::parse(word.trim_start_matches('.'))?;
            if let Host::Name(name) = &host {
                parsed.hosts.push(Host::Name(format!(".{name}")));
            }
            parsed.hosts.push(host);
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_proxy_are_not_shown() {
        let proxy: Proxy = "http://me:word@proxy.example:3128".parse().expect("a proxy");
        assert_eq!(format!("{proxy:?}"), "http://******@proxy.example:3128/");
        assert_eq!(proxy.authorization().expect("a header"), "Basic bWU6d29yZA==");
        for bad in [
            "https://me:word@p",
            "http://me:word@p/path",
            "http://me:word@p?x",
            "socks://me:word@p",
            "me:word",
        ] {
            let problem = bad.parse::<Proxy>().expect_err(bad);
            assert!(!problem.contains("word"), "{problem}");
        }
    }

    #[test]
    fn each_scheme_has_its_proxy_and_some_hosts_have_none() {
        let proxies = Proxies {
            http: Some("http://a".parse().expect("a proxy")),
            https: Some("http://b".parse().expect("a proxy")),
            none_for: "own.example, .other.example,192.0.2.0/24,2001:db8::1".parse().expect("hosts"),
        };
        let of = |url: &str| proxies.of(&url.parse().expect(url)).map(|proxy| proxy.url().host().to_owned());
        assert_eq!(of("http://mirror.example/x").as_deref(), Some("a"));
        assert_eq!(of("https://mirror.example/x").as_deref(), Some("b"));
        assert_eq!(of("https://xown.example/x").as_deref(), Some("b"));
        assert_eq!(of("https://198.51.100.1/x").as_deref(), Some("b"));
        for url in [
            "http://own.example/x",
            "https://OWN.example./x",
            "https://a.own.example/x",
            "https://other.example/x",
            "https://192.0.2.9/x",
            "https://[2001:db8::1]/x",
        ] {
            assert_eq!(of(url), None, "{url}");
        }
        let none = Proxies { none_for: "*".parse().expect("all"), ..proxies };
        assert_eq!(none.of(&"http://mirror.example/x".parse().expect("a URL")), None);
        assert!("a/b".parse::<NoProxy>().is_err() && "*.example".parse::<NoProxy>().is_err());
    }
}
