//! One request.

use axum::body::Body;
use axum::http::Request;

/// One request, as it goes out.
#[derive(Clone)]
pub struct TestRequest {
    pub method: &'static str,
    pub uri: String,
    /// None: none is asked for.
    pub version: Option<String>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl TestRequest {
    /// None for what no client can put on the wire.
    pub fn request(&self) -> Option<Request<Body>> {
        let mut request = Request::builder().method(self.method).uri(&self.uri);
        if let Some(version) = &self.version {
            request = request.header("X-OpenStack-Ironic-API-Version", version);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value.as_bytes());
        }
        request.body(Body::from(self.body.clone())).ok()
    }

    /// Whether nothing may change by it, whatever the answer.
    pub fn reads(&self) -> bool {
        match self.method {
            "HEAD" | "OPTIONS" => true,
            "GET" => !self.uri.contains("lookup"),
            _ => false,
        }
    }
}

impl std::fmt::Debug for TestRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        let body: String = body.chars().take(2000).collect();
        write!(f, "{} {:?} {:?} {:?} {body:?}", self.method, self.uri, self.version, self.headers)
    }
}
