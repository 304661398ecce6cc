//! URLs of images. User, password and query are secrets: they reach the mirror and nothing else.

use hyper::Uri;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Longest URL taken.
const LENGTH: usize = 4096;

/// `http[s]://[user:password@]host[:port]/path[?query]`; shown without its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct ImageUrl {
    tls: bool,
    host: String,
    port: u16,
    userinfo: Option<String>,
    path: String,
    query: Option<String>,
}

/// A URL as it may be shown: user, password and query masked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct MaskedUrl(String);

impl fmt::Display for MaskedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ImageUrl {
    /// Whether it needs a certificate.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Name or address, an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address, where the host is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }

    /// For the `Host` header.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// For the request line.
    pub(crate) fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// User and password.
    pub(crate) fn userinfo(&self) -> Option<&str> {
        self.userinfo.as_deref()
    }

    /// The last part of the path, by which a checksum file names it.
    pub fn base_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Without its secrets.
    pub fn masked(&self) -> MaskedUrl {
        let scheme = if self.tls { "https" } else { "http" };
        let user = if self.userinfo.is_some() { "******@" } else { "" };
        let query = if self.query.is_some() { "?******" } else { "" };
        let default = if self.tls { 443 } else { 80 };
        let port = if self.port == default { String::new() } else { format!(":{}", self.port) };
        MaskedUrl(format!("{scheme}://{user}{}{port}{}{query}", self.host, self.path))
    }

    /// Whether both are of the same scheme, host and port.
    pub(crate) fn is_same_service(&self, other: &Self) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// Where a redirect of this URL leads. The password stays on its own host.
    ///
    /// # Errors
    /// No URL, or one that gives up TLS.
    pub(crate) fn redirected(&self, location: &str) -> Result<Self, String> {
        let mut next = if location.contains("://") {
            location.parse::<Self>()?
        } else if let Some(rest) = location.strip_prefix("//") {
            format!("{}://{rest}", if self.tls { "https" } else { "http" }).parse()?
        } else {
            let path = if location.starts_with('/') {
                location.to_owned()
            } else {
                let dir = self.path.rsplit_once('/').map_or("", |(dir, _)| dir);
                format!("{dir}/{location}")
            };
            let (path, query) = path.split_once('?').map_or((path.as_str(), None), |(p, q)| (p, Some(q)));
            if path.parse::<Uri>().is_err() {
                return Err("a redirect to no URL".to_owned());
            }
            Self { path: path.to_owned(), query: query.map(str::to_owned), ..self.clone() }
        };
        if self.tls && !next.tls {
            return Err(format!("a redirect from https to {}", next.masked()));
        }
        if next.userinfo.is_none() && (&next.host, next.port) == (&self.host, self.port) {
            next.userinfo.clone_from(&self.userinfo);
        }
        Ok(next)
    }
}

impl FromStr for ImageUrl {
    type Err = String;

    /// The problem never contains the text: its secrets cannot be distinguished from the rest of what is no URL.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > LENGTH {
            return Err(format!("longer than {LENGTH} bytes"));
        }
        let text = text.split('#').next().unwrap_or_default();
        let uri: Uri = text.parse().map_err(|_| "not a URL".to_owned())?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(other) => return Err(format!("{other}:// is not fetched, only http:// and https://")),
            None => return Err("it must begin with http:// or https://".to_owned()),
        };
        let authority = uri.authority().ok_or("no host")?;
        let behind = authority.as_str().rsplit('@').next().unwrap_or_default();
        let port = match (authority.port(), authority.port_u16()) {
            (None, _) if behind != authority.host() => return Err("bad port".to_owned()),
            (None, _) => 443 - 363 * u16::from(!tls),
            (Some(_), Some(port)) if port > 0 => port,
            _ => return Err("bad port".to_owned()),
        };
        if authority.host().is_empty() {
            return Err("no host".to_owned());
        }
        let userinfo = authority.as_str().rsplit_once('@').map(|(user, _)| user.to_owned());
        let path = if uri.path().is_empty() { "/" } else { uri.path() };
        Ok(Self {
            tls,
            host: authority.host().to_owned(),
            port,
            userinfo,
            path: path.to_owned(),
            query: uri.query().map(str::to_owned),
        })
    }
}

impl fmt::Display for ImageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked().0)
    }
}

impl fmt::Debug for ImageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ImageUrl {
        text.parse().expect(text)
    }

    #[test]
    fn secrets_are_sent_and_not_shown() {
        let url = url("https://me:word@mirror.example:8443/a/b.raw?token=secret#part");
        assert_eq!(url.to_string(), "https://******@mirror.example:8443/a/b.raw?******");
        assert_eq!(format!("{url:?}"), url.to_string());
        assert_eq!((url.userinfo(), url.target().as_str()), (Some("me:word"), "/a/b.raw?token=secret"));
        assert_eq!((url.base_name(), url.authority().as_str()), ("b.raw", "mirror.example:8443"));
        for bad in ["ftp://h/secret", "secret", "http:///secret", "http://h:0/secret", "http://h:x/secret"] {
            let problem = bad.parse::<ImageUrl>().expect_err(bad);
            assert!(!problem.contains("secret"), "{bad}: {problem}");
        }
    }

    #[test]
    fn a_redirect_keeps_the_password_on_its_host_and_never_gives_up_tls() {
        let from = url("https://me:word@a/x/y?q=1");
        assert_eq!(from.redirected("/z").expect("absolute").userinfo(), Some("me:word"));
        let relative = from.redirected("z?k=2").expect("relative");
        assert_eq!((relative.target().as_str(), relative.host()), ("/x/z?k=2", "a"));
        assert_eq!(from.redirected("https://b/z").expect("another host").userinfo(), None);
        assert_eq!(from.redirected("//b/z").expect("same scheme").to_string(), "https://b/z");
        let refused = from.redirected("http://a/z?key=secret").expect_err("plain");
        assert!(refused.contains("http://a/z?******"), "{refused}");
    }

    #[test]
    fn ports_and_addresses() {
        assert_eq!((url("http://h").port(), url("https://h").port()), (80, 443));
        assert_eq!(url("http://[fe80::1]:8/x").ip(), Some("fe80::1".parse().expect("an address")));
        assert_eq!(url("http://h").target(), "/");
    }
}
