//! One file of the page.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

/// All of them; see `build.rs`.
pub const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The file for every place in the page.
const INDEX: &str = "index.html";
/// What comes below this is a place in the page, whatever its name looks like: nodes may be called `n1.example`.
const NODES: &str = "nodes/";

/// A file of the page.
pub struct File {
    /// Its path below `assets/`.
    path: &'static str,
    plain: &'static [u8],
    /// The same by gzip.
    packed: &'static [u8],
    /// Its `ETag`.
    tag: &'static str,
}

impl File {
    /// The file of this path; for a path that names no file, the page itself. `None`: a file that is not there.
    pub fn of(path: &str) -> Option<&'static Self> {
        let named = |path: &str| FILES.iter().find(|file| file.path == path);
        let last = path.rsplit('/').next().unwrap_or_default();
        let is_place = path.starts_with(NODES) || !last.contains('.');
        named(path).or_else(|| named(INDEX).filter(|_| is_place))
    }

    /// Bytes that a browser gets.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.packed.len().min(self.plain.len())
    }

    /// The answer to a request with these headers.
    pub fn answer(&self, asked: &HeaderMap) -> Response<Body> {
        let is_known = values(asked, header::IF_NONE_MATCH).any(|tag| tag == self.tag || tag == "*");
        let packs = self.packed.len() < self.plain.len() && takes_gzip(asked);
        let bytes = match (is_known, packs) {
            (true, _) => &[][..],
            (false, true) => self.packed,
            (false, false) => self.plain,
        };
        let mut response = Response::new(Body::from(bytes));
        let headers = response.headers_mut();
        headers.insert(header::ETAG, HeaderValue::from_static(self.tag));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media(self.path)));
        if packs {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// The values of a header that is a list.
fn values(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let texts = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    values(headers, header::ACCEPT_ENCODING).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0_f32));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

fn media(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
