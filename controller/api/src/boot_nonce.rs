//! The nonce of a boot, as a request shows it. Anneal's agent sends a header. ironic-python-agent sends what its URLs begin
//! with: it appends `/v1/lookup` and the like to `ipa-api-url`.

use agent_protocol::NONCE_HEADER;
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{Extensions, Uri};
use model::boot::BootNonce;

/// What the path of a request begins with that shows a nonce: this, the nonce, then the path itself.
pub const NONCE_PATH: &str = "/boot-nonce/";

/// Longest nonce that is read, in bytes.
const LENGTH_MAX: usize = 128;

/// The nonce that a request shows.
#[derive(Clone)]
struct ShownNonce(BootNonce);

/// Take the nonce out of the request's path, so that no route, log or message contains it, or out of its header.
pub fn take(request: &mut Request) {
    let header = request.headers_mut().remove(NONCE_HEADER);
    let mut shown = header.and_then(|value| value.to_str().ok().map(str::to_owned));
    if let Some((nonce, rest)) = split(request.uri()) {
        *request.uri_mut() = rest;
        shown = Some(nonce);
    }
    if let Some(nonce) = shown.filter(|nonce| (1..=LENGTH_MAX).contains(&nonce.len())) {
        request.extensions_mut().insert(ShownNonce(BootNonce::shown(&nonce)));
    }
}

/// The nonce that [`take`] found.
pub fn of(extensions: &Extensions) -> Option<BootNonce> {
    extensions.get::<ShownNonce>().map(|shown| shown.0.clone())
}

/// The nonce in a path, and the URI without it.
fn split(uri: &Uri) -> Option<(String, Uri)> {
    let (nonce, path) = uri.path().strip_prefix(NONCE_PATH)?.split_once('/')?;
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("/{path}{query}")).ok()?);
    Some((nonce.to_owned(), Uri::from_parts(parts).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn taken(uri: &str, header: Option<&str>) -> (Option<String>, String) {
        let mut request = Request::builder().uri(uri);
        if let Some(value) = header {
            request = request.header(NONCE_HEADER, value);
        }
        let mut request = request.body(Body::empty()).unwrap();
        take(&mut request);
        assert!(!request.headers().contains_key(NONCE_HEADER));
        (of(request.extensions()).map(|nonce| nonce.expose().to_owned()), request.uri().to_string())
    }

    #[test]
    fn a_nonce_is_taken_out_of_the_path_or_the_header() {
        let shown = |nonce: &str, uri: &str| (Some(nonce.to_owned()), uri.to_owned());
        assert_eq!(taken("/boot-nonce/abc/", None), shown("abc", "/"));
        assert_eq!(
            taken("/boot-nonce/abc/v1/lookup?addresses=a", None),
            shown("abc", "/v1/lookup?addresses=a")
        );
        assert_eq!(taken("/v1/lookup", Some("abc")), shown("abc", "/v1/lookup"));
        assert_eq!(taken("/v1/lookup", None), (None, "/v1/lookup".to_owned()));
        assert_eq!(taken("/boot-nonce//v1/lookup", None).0, None);
        let long = "x".repeat(LENGTH_MAX + 1);
        assert_eq!(taken(&format!("/boot-nonce/{long}/v1/lookup"), None), (None, "/v1/lookup".to_owned()));
    }
}
