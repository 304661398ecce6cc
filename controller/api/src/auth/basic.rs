//! The header of HTTP basic authentication, and Ironic's answers when it is missing or wrong.

use crate::error::{Shaped, python_json};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Why a caller is rejected. The texts are Ironic's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BasicAuthError {
    /// There is no header.
    Missing,
    /// User or password is wrong; the answer does not say which.
    WrongCredentials,
    /// The header cannot be understood.
    Malformed(String),
    /// Too many passwords are tried, from this address or at all: again after this many seconds.
    TooMany(u64),
}

/// A user's name and password.
pub type Credentials = (String, Vec<u8>);

/// The credentials in the header.
pub fn credentials(headers: &HeaderMap) -> Result<Credentials, BasicAuthError> {
    let value = headers.get(header::AUTHORIZATION).ok_or(BasicAuthError::Missing)?;
    let unclear = |what: &str| BasicAuthError::Malformed(what.to_owned());
    let no_header = || unclear("Could not parse Authorization header");
    let value = value.to_str().map_err(|_| no_header())?.trim();
    let (kind, token) = value.split_once(char::is_whitespace).ok_or_else(no_header)?;
    if !kind.eq_ignore_ascii_case("basic") {
        let kind: String = kind.chars().take(32).collect();
        return Err(BasicAuthError::Malformed(format!("Unsupported authorization type \"{kind}\"")));
    }
    let no_token = || unclear("Could not decode authorization token");
    let pair = STANDARD.decode(token.trim_start()).map_err(|_| no_token())?;
    let colon = pair.iter().position(|byte| *byte == b':').ok_or_else(no_token)?;
    let user = std::str::from_utf8(&pair[..colon]).map_err(|_| no_token())?.to_owned();
    Ok((user, pair[colon + 1..].to_vec()))
}

impl BasicAuthError {
    /// Status and sentence of the answer.
    pub(crate) fn answer(&self) -> (StatusCode, String) {
        match self {
            Self::TooMany(seconds) => (
                StatusCode::TOO_MANY_REQUESTS,
                format!("Too many passwords are being verified; try again in {seconds} s"),
            ),
            Self::Missing => (StatusCode::UNAUTHORIZED, "Authorization required".to_owned()),
            Self::WrongCredentials => (StatusCode::UNAUTHORIZED, "Incorrect username or password".to_owned()),
            Self::Malformed(message) => (StatusCode::BAD_REQUEST, message.clone()),
        }
    }

    /// Seconds after which another try is looked at, where it is not looked at now.
    pub(crate) fn wait(&self) -> Option<u64> {
        match self {
            Self::TooMany(seconds) => Some(*seconds),
            _ => None,
        }
    }
}

impl IntoResponse for BasicAuthError {
    fn into_response(self) -> Response<Body> {
        let (status, message) = self.answer();
        let body = json!({"error": {"message": message, "code": status.as_u16()}});
        let mut response = Response::new(Body::from(python_json(&body)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if status == StatusCode::UNAUTHORIZED {
            let realm = HeaderValue::from_static("Basic realm=\"Baremetal API\"");
            headers.insert(header::WWW_AUTHENTICATE, realm);
        }
        if let Some(seconds) = self.wait() {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(Shaped);
        response
    }
}
