//! Microversions: negotiation, and the version that introduced each verb. [`crate::fields`] has that of each field.

use crate::error::ApiError;
use axum::http::HeaderMap;

/// Smallest minor version served.
pub const MIN: u16 = 1;
/// Largest minor version served: Ironic 39's.
pub const MAX: u16 = 115;

/// Ironic's own header.
pub const HEADER: &str = "x-openstack-ironic-api-version";
/// Header of every answer: the smallest version served.
pub const MIN_HEADER: &str = "x-openstack-ironic-api-minimum-version";
/// Header of every answer: the largest version served.
pub const MAX_HEADER: &str = "x-openstack-ironic-api-maximum-version";
/// The header of all OpenStack services: `OpenStack-API-Version: baremetal 1.90`.
const COMMON_HEADER: &str = "openstack-api-version";

/// The minor part of the microversion of a request; the major part is always 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u16);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

impl Version {
    /// Whether something that exists since 1.`minor` exists for this request.
    pub fn has(self, minor: u16) -> bool {
        self.0 >= minor
    }

    /// 406 unless [`Version::has`].
    pub fn needs(self, minor: u16) -> Result<(), ApiError> {
        if self.has(minor) { Ok(()) } else { Err(ApiError::not_acceptable()) }
    }

    /// 404 unless [`Version::has`]: Ironic's answer on paths that are too new.
    pub fn has_path(self, minor: u16) -> Result<(), ApiError> {
        if self.has(minor) { Ok(()) } else { Err(ApiError::plain(404, "")) }
    }

    /// 406 that names the version, unless [`Version::has`]: Ironic's answer to filters that are too new.
    pub fn needs_for_filter(self, minor: u16) -> Result<(), ApiError> {
        if self.has(minor) {
            return Ok(());
        }
        Err(ApiError::client(
            406,
            format!("Request not acceptable. The minimal required API version should be 1.{minor}"),
        ))
    }
}

/// The version a request asks for; 1.1 when it asks for none.
///
/// The common header wins over Ironic's own, as in Ironic. Errors are 406 with Ironic's texts.
pub fn negotiate(headers: &HeaderMap) -> Result<Version, ApiError> {
    let Some(asked) = asked(headers)? else { return Ok(Version(MIN)) };
    let asked = asked.trim();
    if asked.eq_ignore_ascii_case("latest") {
        return Ok(Version(MAX));
    }
    let range = format!("The supported version range is: [1.{MIN}, 1.{MAX}].");
    let (major, minor) = parse(asked).ok_or_else(invalid_header)?;
    if major != 1 {
        return Err(ApiError::plain(
            406,
            format!(
                "Mutually exclusive versions requested. Version {major}.{minor} requested but not supported by \
                 this service. {range}"
            ),
        ));
    }
    u16::try_from(minor).ok().filter(|minor| (MIN..=MAX).contains(minor)).map(Version).ok_or_else(|| {
        ApiError::plain(
            406,
            format!(
                "Version 1.{minor} was requested but the minor version is not supported by this service. {range}"
            ),
        )
    })
}

fn invalid_header() -> ApiError {
    ApiError::plain(406, "Invalid value for X-OpenStack-Ironic-API-Version header".to_owned())
}

/// The text of the version asked for.
fn asked(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut found = None;
    for value in headers.get_all(COMMON_HEADER) {
        let text = value.to_str().map_err(|_| invalid_header())?;
        for part in text.split(',') {
            if let Some((service, version)) = part.trim().split_once(' ')
                && service.eq_ignore_ascii_case("baremetal")
            {
                found = Some(version.to_owned());
            }
        }
    }
    if found.is_none()
        && let Some(value) = headers.get(HEADER)
    {
        found = Some(value.to_str().map_err(|_| invalid_header())?.to_owned());
    }
    Ok(found)
}

fn parse(text: &str) -> Option<(u64, u64)> {
    let (major, minor) = text.split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(major) || !digits(minor) {
        return None;
    }
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The minor version since which a `target` of `PUT …/states/provision` exists.
pub fn target_since(target: &str) -> u16 {
    match target {
        "manage" | "provide" => 4,
        "inspect" => 6,
        "abort" => 13,
        "clean" => 15,
        "adopt" => 17,
        "rescue" | "unrescue" => 38,
        "deploy" | "undeploy" => 73,
        "unhold" => 85,
        "service" => 87,
        _ => MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pairs: &[(&'static str, &str)]) -> Result<Version, ApiError> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        negotiate(&headers)
    }

    #[test]
    fn both_headers_latest_and_default() {
        assert_eq!(ask(&[]).unwrap(), Version(1));
        assert_eq!(ask(&[(HEADER, "1.62")]).unwrap(), Version(62));
        assert_eq!(ask(&[(HEADER, "latest")]).unwrap(), Version(115));
        assert_eq!(ask(&[(HEADER, "1.5"), (COMMON_HEADER, "baremetal 1.90")]).unwrap(), Version(90));
        assert_eq!(
            ask(&[(COMMON_HEADER, "compute 2.1, baremetal latest"), (HEADER, "1.2")]).unwrap(),
            Version(115)
        );
        assert_eq!(ask(&[(COMMON_HEADER, "compute 2.1"), (HEADER, "1.2")]).unwrap(), Version(2));
    }

    #[test]
    fn what_is_not_served_is_406_and_named() {
        for (text, says) in [
            ("1.116", "Version 1.116 was requested"),
            ("1.0", "Version 1.0 was requested"),
            ("1.99999999", "Version 1.99999999 was requested"),
            ("2.1", "Version 2.1 requested but not supported"),
            ("1", "Invalid value for X-OpenStack-Ironic-API-Version"),
            ("1.-5", "Invalid value"),
            ("1.99999999999999999999", "Invalid value"),
            ("", "Invalid value"),
        ] {
            let error = ask(&[(HEADER, text)]).unwrap_err();
            assert_eq!(error.status, 406, "{text}");
            assert!(error.message.contains(says), "{text}: {}", error.message);
        }
    }
}
