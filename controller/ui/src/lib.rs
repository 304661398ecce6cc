//! The web page: the files below `assets/`, in this binary. They are the same for everyone and contain nothing secret; what the
//! page shows it asks the API for.
//!
//! ```text
//!  /ui/app.js      a file                                   ─┐
//!  /ui/nodes/n1    a place in the page: index.html          ─┴▶ policy, ETag, gzip
//!  everything else ─▶ the API
//! ```

mod file;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::middleware::map_response;
use axum::response::Redirect;
use axum::routing::get;
use file::File;

/// Where the page is.
pub const ROOT: &str = "/ui/";

/// What the page may load and do: its own files and requests to its own origin. No inline script or style, no text that becomes
/// a script or HTML, no frame of another page around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of every answer of the page.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    // It may be kept, and is asked for again with its tag: a new controller has a new page.
    (header::CACHE_CONTROL, "no-cache"),
];

/// The page, and behind it the API for every path that is not the page's.
pub fn in_front_of(api: Router) -> Router {
    Router::new()
        .route("/ui", get(|| async { Redirect::permanent(ROOT) }))
        .route(ROOT, get(|headers: HeaderMap| async move { answer("", &headers) }))
        .route(
            "/ui/{*path}",
            get(|Path(path): Path<String>, headers: HeaderMap| async move { answer(&path, &headers) }),
        )
        .layer(map_response(with_headers::<Body>))
        .fallback_service(api)
}

async fn with_headers<B>(mut response: Response<B>) -> Response<B> {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The file for a path below [`ROOT`].
fn answer(path: &str, headers: &HeaderMap) -> Response<Body> {
    match File::of(path) {
        Some(file) => file.answer(headers),
        None => {
            let mut missing = Response::new("The page has no such file.\n".into());
            *missing.status_mut() = StatusCode::NOT_FOUND;
            missing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Bytes, to_bytes};
    use axum::http::{Method, Request};
    use flate2::read::GzDecoder;
    use std::io::Read;
    use tower::ServiceExt;

    /// Budget of the page, compressed.
    const BUDGET: usize = 300_000;

    async fn ask(method: Method, path: &str, sent: &[(&str, &str)]) -> (u16, HeaderMap, Bytes) {
        let api = Router::new().fallback(|| async { "the API" });
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in sent {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let (parts, body) = in_front_of(api).oneshot(request).await.unwrap().into_parts();
        (parts.status.as_u16(), parts.headers, to_bytes(body, usize::MAX).await.unwrap())
    }

    #[tokio::test]
    async fn every_answer_of_the_page_has_its_policy_and_no_answer_of_the_api_has_it() {
        for (path, status) in [("/ui", 308), ("/ui/", 200), ("/ui/nodes/n1", 200), ("/ui/none.js", 404)] {
            let (answered, headers, _) = ask(Method::GET, path, &[]).await;
            assert_eq!(answered, status, "{path}");
            for (name, value) in HEADERS {
                assert_eq!(headers[&name], value, "{path} {name}");
            }
            // Nothing else that runs or is shown can come from elsewhere, or from a text.
            let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
            assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        }
        for path in ["/", "/v1/nodes", "/uix"] {
            let (status, headers, body) = ask(Method::GET, path, &[]).await;
            assert_eq!((status, &body[..]), (200, &b"the API"[..]), "{path}");
            assert!(!headers.contains_key(header::CONTENT_SECURITY_POLICY), "{path}");
        }
        assert_eq!(ask(Method::POST, "/ui/", &[]).await.0, 405);
    }

    #[tokio::test]
    async fn a_file_comes_compressed_and_is_not_sent_twice() {
        let (_, headers, plain) = ask(Method::GET, "/ui/", &[]).await;
        assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[header::VARY], "accept-encoding");
        assert!(!headers.contains_key(header::CONTENT_ENCODING));
        let (_, packed_headers, packed) = ask(Method::GET, "/ui/", &[("accept-encoding", "br, gzip")]).await;
        assert_eq!(packed_headers[header::CONTENT_ENCODING], "gzip");
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain);
        for refused in ["gzip;q=0", "identity", "xgzip"] {
            let (_, headers, body) = ask(Method::GET, "/ui/", &[("accept-encoding", refused)]).await;
            assert!(!headers.contains_key(header::CONTENT_ENCODING) && body == plain, "{refused}");
        }
        let tag = headers[header::ETAG].to_str().unwrap().to_owned();
        let (status, _, body) =
            ask(Method::GET, "/ui/", &[("if-none-match", &format!("\"x\", {tag}"))]).await;
        assert_eq!((status, body.len()), (304, 0));
        assert_eq!(ask(Method::GET, "/ui/", &[("if-none-match", "\"x\"")]).await.0, 200);
        let (status, head, body) = ask(Method::HEAD, "/ui/", &[]).await;
        assert_eq!((status, body.len()), (200, 0));
        assert_eq!(head[header::ETAG], tag.as_str());
    }

    #[tokio::test]
    async fn a_place_in_the_page_is_the_page_and_nothing_else_of_the_machine_is_served() {
        let (_, _, index) = ask(Method::GET, "/ui/", &[]).await;
        for place in ["/ui/fleet", "/ui/nodes/n1.example", "/ui/nodes/a/b"] {
            assert_eq!(ask(Method::GET, place, &[]).await.2, index, "{place}");
        }
        for wrong in ["/ui/../Cargo.toml", "/ui/%2e%2e/Cargo.toml", "/ui//etc/passwd.txt", "/ui/index.htm"] {
            let (status, _, body) = ask(Method::GET, wrong, &[]).await;
            assert_eq!((status, &body[..]), (404, &b"The page has no such file.\n"[..]), "{wrong}");
        }
    }

    #[test]
    fn the_page_is_small() {
        let size = file::FILES.iter().map(File::size).sum::<usize>();
        assert!(size < BUDGET, "{size} bytes compressed, of at most {BUDGET}");
    }
}
