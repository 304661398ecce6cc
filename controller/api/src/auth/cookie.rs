//! The cookie of a session, and what comes with it.

use super::session::{LIFETIME, NewSession};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};

/// The header with the token against requests of other sites.
pub(crate) const CSRF_HEADER: HeaderName = HeaderName::from_static("anneal-csrf");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// Begins the name of every cookie of a session.
const NAME: &str = "anneal_session";

/// What a request has of a session, unchecked.
#[derive(Clone, Default)]
pub(crate) struct RequestCookie {
    /// The name that its cookie has or would have.
    name: String,
    /// The value of the cookie. A secret.
    pub value: Option<String>,
    /// The token against requests of other sites. A secret.
    pub csrf: Option<String>,
    /// The browser says that a page of another site sent it.
    pub is_foreign: bool,
    /// The caller is the user of its session.
    pub counts: bool,
    by_tls: bool,
}

impl RequestCookie {
    /// What a request has.
    pub fn of(headers: &HeaderMap, uri: &Uri, by_tls: bool) -> Self {
        let name = name(headers, uri, by_tls);
        let texts =
            |name: HeaderName| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs = texts(header::COOKIE).flat_map(|text| text.split(';')).map(str::trim);
        let value = pairs.find_map(|pair| pair.strip_prefix(&name)?.strip_prefix('=').map(str::to_owned));
        let csrf = texts(CSRF_HEADER).next().map(str::to_owned);
        let is_foreign = texts(SEC_FETCH_SITE).any(|site| site != "same-origin" && site != "none");
        Self { name, value, csrf, is_foreign, counts: false, by_tls }
    }

    /// The header that gives a browser a session.
    pub fn given(&self, session: &NewSession) -> Option<HeaderValue> {
        self.set(&session.cookie, LIFETIME.as_secs())
    }

    /// The header that takes it away.
    pub fn taken(&self) -> Option<HeaderValue> {
        self.set("", 0)
    }

    fn set(&self, value: &str, seconds: u64) -> Option<HeaderValue> {
        let secure = if self.by_tls { "; Secure" } else { "" };
        let text =
            format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", self.name);
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

/// Whether the script of a page sent a request, and not a person who followed a link: the browser must not ask for a password.
pub(crate) fn is_of_a_script(headers: &HeaderMap) -> bool {
    headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode != "navigate")
}

/// The name of the cookie. It has the port, since the cookies of all ports of a host are in one jar; over TLS it has the prefix that
/// only a server with TLS can set.
fn name(headers: &HeaderMap, uri: &Uri, by_tls: bool) -> String {
    let host = headers.get(header::HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let port = host.as_ref().or_else(|| uri.authority()).and_then(Authority::port_u16);
    let prefix = if by_tls { "__Host-" } else { "" };
    match port {
        Some(port) => format!("{prefix}{NAME}_{port}"),
        None => format!("{prefix}{NAME}"),
    }
}

/// Whether requests of this method change something and need the token.
pub(crate) fn needs_csrf(method: &Method) -> bool {
    super::audit::can_change(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presented(headers: &[(&str, &str)], by_tls: bool) -> RequestCookie {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        RequestCookie::of(&map, &Uri::from_static("/v1"), by_tls)
    }

    #[test]
    fn the_cookie_of_this_port_is_found_among_others() {
        let host = ("host", "127.0.0.1:6385");
        let value = |cookies: &str| presented(&[host, ("cookie", cookies)], false).value;
        assert_eq!(value("a=b; anneal_session_6385=x.y; c=d").as_deref(), Some("x.y"));
        assert_eq!(value("anneal_session_6385="), Some(String::new()));
        for other in [
            "anneal_session=x",
            "anneal_session_63850=x",
            "x_anneal_session_6385=x",
            "__Host-anneal_session_6385=x",
        ] {
            assert_eq!(value(other), None, "{other}");
        }
        let two = presented(&[host, ("cookie", "a=b"), ("cookie", "anneal_session_6385=x")], false);
        assert_eq!(two.value.as_deref(), Some("x"), "HTTP/2 sends a header for each");
        let secure = presented(&[("host", "c.example"), ("cookie", "__Host-anneal_session=x")], true);
        assert_eq!(secure.value.as_deref(), Some("x"));
    }

    #[test]
    fn only_a_browser_says_that_a_request_is_foreign() {
        let site = |site| presented(&[("sec-fetch-site", site)], true).is_foreign;
        assert!(site("cross-site") && site("same-site") && !site("same-origin") && !site("none"));
        assert!(!presented(&[], true).is_foreign);
    }
}
