//! Rejects what a web page makes a browser send to the operators' API on loopback. A browser on the operator's machine
//! reaches that port, for any page that it shows; and a page whose name resolves to 127.0.0.1 is of the same origin.

use crate::error::ApiError;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri, header};
use std::net::IpAddr;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names under which an address on loopback may be called, besides IP addresses and `localhost`.
#[derive(Debug, Clone, Default)]
pub struct OriginCheck {
    names: Vec<String>,
}

impl OriginCheck {
    /// With these names, and the host of the public endpoint if there is one.
    pub fn new(names: &[String], public_endpoint: &str) -> Self {
        let public = public_endpoint.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        let names = names.iter().cloned().chain(public).map(|name| name.to_ascii_lowercase());
        Self { names: names.collect() }
    }

    /// 403 for a request that comes from another site, or for a name that is not this controller's.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        let refused = |why: String| Err(ApiError::client(403, why));
        if headers.get_all(SEC_FETCH_SITE).iter().any(|site| site != "same-origin" && site != "none") {
            return refused("Requests from other sites are rejected (Sec-Fetch-Site).".into());
        }
        let mut hosts: Vec<Option<Authority>> = values(headers, &header::HOST);
        hosts.extend(uri.authority().cloned().map(Some));
        for host in &hosts {
            if !host.as_ref().is_some_and(|host| self.is_ours(host.host())) {
                return refused(format!(
                    "Host {:?} is neither an IP address nor localhost, nor listed in [api] allowed_hosts.",
                    host.as_ref().map_or("", Authority::host)
                ));
            }
        }
        let own = |origin: &str| {
            let origin = origin.split_once("://").and_then(|(_, origin)| origin.parse::<Authority>().ok());
            origin.is_some_and(|origin| hosts.iter().flatten().any(|host| same(host, &origin)))
        };
        let origins = headers.get_all(header::ORIGIN);
        if origins.iter().any(|origin| !origin.to_str().is_ok_and(own)) {
            return refused("Requests from pages of another origin are rejected (Origin).".into());
        }
        Ok(())
    }

    fn is_ours(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        literal || host == "localhost" || self.names.contains(&host)
    }
}

/// The values of a header as authorities; `None` for what is none.
fn values(headers: &HeaderMap, name: &HeaderName) -> Vec<Option<Authority>> {
    headers.get_all(name).iter().map(|value| Authority::try_from(value.as_bytes()).ok()).collect()
}

fn same(one: &Authority, other: &Authority) -> bool {
    one.host().eq_ignore_ascii_case(other.host()) && one.port_u16() == other.port_u16()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &[(&str, &str)]) -> u16 {
        let site = OriginCheck::new(&["Bmc.Example".to_owned()], "https://api.example:6385/x");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        site.check(&map, &Uri::from_static("/v1")).map_or_else(|error| error.status, |()| 200)
    }

    #[test]
    fn only_the_controllers_own_names_are_served() {
        for host in [
            "127.0.0.1:6385",
            "[::1]:6385",
            "192.0.2.1",
            "localhost:6385",
            "LOCALHOST.",
            "bmc.example:6385",
            "API.example",
        ] {
            assert_eq!(status(&[("host", host)]), 200, "{host}");
        }
        for host in ["rebind.evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b"] {
            assert_eq!(status(&[("host", host)]), 403, "{host}");
            assert_eq!(status(&[("host", "localhost"), ("host", host)]), 403, "{host}");
        }
        // A client without the header is no browser.
        assert_eq!(status(&[]), 200);
        let absolute = Uri::from_static("http://rebind.evil.example/v1");
        assert!(OriginCheck::default().check(&HeaderMap::new(), &absolute).is_err());
    }

    #[test]
    fn requests_from_other_sites_are_rejected() {
        let host = ("host", "localhost:6385");
        for (origin, expected) in [
            ("http://localhost:6385", 200),
            ("https://evil.example", 403),
            ("http://localhost:8080", 403),
            ("http://localhost", 403),
            ("null", 403),
            ("", 403),
        ] {
            assert_eq!(status(&[host, ("origin", origin)]), expected, "{origin}");
        }
        for (site, expected) in [("same-origin", 200), ("none", 200), ("cross-site", 403), ("same-site", 403)]
        {
            assert_eq!(status(&[host, ("sec-fetch-site", site)]), expected, "{site}");
        }
    }
}
