//! HTTP to the controller: microversion negotiated, errors as Ironic words them, locked nodes retried.

use crate::credentials::{Credentials, is_loopback};
use crate::failure::Failure;
use crate::operator_token;
use crate::tls::Trust;
use pinned_tls::chain;
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Minor version asked for first; a controller that knows less says so and gets what it knows.
const MICROVERSION: u32 = 115;
const VERSION_HEADER: &str = agent_protocol::MICROVERSION_HEADER;
const MAX_VERSION_HEADER: &str = "x-openstack-ironic-api-maximum-version";
/// With a 202 of a list of steps: seconds until it is worth asking again, -1 if that is unknown.
const RETRY_HEADER: &str = "retry-request-after";
/// Retries while a node is locked, one a second: the same as Ironic's own client makes.
const LOCKED_RETRIES: u32 = 5;
const LOCKED_PAUSE: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A file of hundreds of MiB over a slow line, and the controller's look at it.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(3600);

/// A connection to one controller.
pub struct Client {
    http: reqwest::Client,
    endpoint: Url,
    /// From the environment, or found when the controller asked for its operator token.
    credentials: OnceLock<Credentials>,
    minor: AtomicU32,
}

/// An answer that is not an error.
#[derive(Debug, Clone)]
pub struct Reply {
    /// HTTP status, 2xx.
    pub status: StatusCode,
    /// The body; `Null` when there is none.
    pub body: Value,
    /// In how many seconds the controller says to ask again.
    pub retry_after: Option<u64>,
}

impl Client {
    /// A client of the controller at `endpoint`, through a Unix socket if one is given.
    pub fn new(
        endpoint: Url,
        socket: Option<PathBuf>,
        trust: Trust,
        credentials: Option<Credentials>,
    ) -> Result<Self, Failure> {
        let usage = |error: &dyn std::error::Error| Failure::Usage(chain(error));
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            // A proxy of the environment must not come between an operator and a controller on loopback.
            .no_proxy();
        if let Some(config) = trust.client_config().map_err(|error| usage(&error))? {
            builder = builder.tls_backend_preconfigured(config);
        } else if endpoint.scheme() == "http" {
            // A machine without CA certificates can use a controller on loopback.
            builder = builder.tls_certs_only([]);
        }
        if let Some(socket) = socket {
            builder = builder.unix_socket(socket);
        }
        let http = builder.build().map_err(|error| usage(&error))?;
        let credentials = credentials.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Self { http, endpoint, credentials, minor: AtomicU32::new(MICROVERSION) })
    }

    /// The credentials that the controller was last sent.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.get()
    }

    /// The URL of the controller.
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Whether to send a request again, with the operator token that this answer asks for.
    fn found_token(&self, status: StatusCode, headers: &HeaderMap) -> Result<bool, Failure> {
        let asks = status == StatusCode::UNAUTHORIZED && is_loopback(&self.endpoint);
        let Some(file) = operator_token::file_named_by(headers).filter(|_| asks) else { return Ok(false) };
        if self.credentials.get().is_some() {
            return Ok(false);
        }
        Ok(self.credentials.set(operator_token::credentials(&file, &self.endpoint)?).is_ok())
    }

    /// A request with credentials, if there are any.
    fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Failure> {
        let minor = self.minor.load(Ordering::Relaxed);
        let request = self.http.request(method, url).header(VERSION_HEADER, format!("1.{minor}"));
        Ok(match self.credentials.get() {
            Some(credentials) => request.header(AUTHORIZATION, credentials.header_for(&self.endpoint)?),
            None => request,
        })
    }

    /// `GET` of one resource.
    pub async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, Failure> {
        Ok(self.send(Method::GET, path, query, None).await?.body)
    }

    /// Every item of a collection whose body keeps them under `key`, page after page.
    pub async fn get_all(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        key: &str,
    ) -> Result<Vec<Value>, Failure> {
        let mut url = self.url(path, query);
        let mut items = Vec::new();
        loop {
            let mut page = self.exchange(Method::GET, url.clone(), None).await?.body;
            match page.get_mut(key).map(Value::take) {
                Some(Value::Array(more)) => items.extend(more),
                _ => return Err(self.not_ironic(&format!("its answer has no list {key:?}"))),
            }
            let Some(next) = page.get("next").and_then(Value::as_str) else { return Ok(items) };
            // Only the query is taken from the link: the next page is asked for where the first one was.
            let next = self.endpoint.join(next).map_err(|error| self.not_ironic(&error.to_string()))?;
            if next.query() == url.query() {
                return Err(self.not_ironic("its list of pages has no end"));
            }
            url.set_query(next.query());
        }
    }

    /// Any request; `path` is what follows `/v1/`.
    pub async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<Value>,
    ) -> Result<Reply, Failure> {
        self.exchange(method, self.url(path, query), body).await
    }

    /// `POST` of a file as it is, read while it is sent.
    pub async fn upload(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        file: &Path,
    ) -> Result<Value, Failure> {
        let unread = |error: std::io::Error| Failure::Usage(format!("{}: {error}", file.display()));
        if self.credentials.get().is_none() {
            // A controller that asks for the token closes the connection before it has read all of a large file.
            let asked = self.request(Method::GET, self.url(path, &[]))?;
            let asked = asked.send().await.map_err(|error| self.unreachable(error))?;
            self.found_token(asked.status(), asked.headers())?;
        }
        let source = tokio::fs::File::open(file).await.map_err(unread)?;
        let size = source.metadata().await.map_err(unread)?.len();
        let request = self.request(Method::POST, self.url(path, query))?.timeout(UPLOAD_TIMEOUT);
        let request = request
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, size)
            .body(source);
        let answer = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| self.unreachable(error))?;
        if !status.is_success() {
            let message =
                fault(&text).unwrap_or_else(|| status.canonical_reason().unwrap_or("refused").to_owned());
            return Err(Failure::Refused { status: status.as_u16(), message });
        }
        serde_json::from_str(&text)
            .map_err(|error| self.not_ironic(&format!("its answer is not JSON: {error}")))
    }

    fn url(&self, path: &[&str], query: &[(&str, String)]) -> Url {
        let mut url = self.endpoint.clone();
        // The endpoint was checked to be http or https, which can always have a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    async fn exchange(&self, method: Method, url: Url, body: Option<Value>) -> Result<Reply, Failure> {
        let mut locked = 0;
        loop {
            let minor = self.minor.load(Ordering::Relaxed);
            let mut request = self.request(method.clone(), url.clone())?;
            if let Some(body) = &body {
                request = request.json(body);
            }
            let answer = request.send().await.map_err(|error| self.unreachable(error))?;
            let status = answer.status();
            if self.found_token(status, answer.headers())? {
                continue;
            }
            let header = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
            let known = header(MAX_VERSION_HEADER).and_then(minor_of);
            let retry_after = header(RETRY_HEADER).and_then(|seconds| seconds.trim().parse().ok());
            let text = answer.text().await.map_err(|error| self.unreachable(error))?;
            if status == StatusCode::NOT_ACCEPTABLE
                && let Some(known) = known
                && known < minor
            {
                self.minor.store(known, Ordering::Relaxed);
                continue;
            }
            if status.is_success() {
                let body = if text.trim().is_empty() {
                    Value::Null
                } else {
                    serde_json::from_str(&text)
                        .map_err(|error| self.not_ironic(&format!("its answer is not JSON: {error}")))?
                };
                return Ok(Reply { status, body, retry_after });
            }
            let message =
                fault(&text).unwrap_or_else(|| status.canonical_reason().unwrap_or("refused").to_owned());
            if status == StatusCode::CONFLICT && is_locked(&message) && locked < LOCKED_RETRIES {
                locked += 1;
                eprintln!("{message} Trying again ({locked} of {LOCKED_RETRIES}).");
                tokio::time::sleep(LOCKED_PAUSE).await;
                continue;
            }
            return Err(Failure::Refused { status: status.as_u16(), message });
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        Failure::Unreachable { endpoint: self.endpoint.to_string(), reason: chain(&error.without_url()) }
    }

    fn not_ironic(&self, reason: &str) -> Failure {
        Failure::Unreachable { endpoint: self.endpoint.to_string(), reason: reason.to_owned() }
    }
}

/// `N` of `1.N`.
fn minor_of(version: &str) -> Option<u32> {
    version.trim().strip_prefix("1.")?.parse().ok()
}

/// The sentence in an error body. Ironic puts a JSON text into a string of a JSON object; an object in its
/// place is understood as well.
fn fault(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    // What stands before the API and asks for a password words it in another way.
    if let Some(message) = body.pointer("/error/message").and_then(Value::as_str) {
        return Some(message.to_owned());
    }
    let message = body.get("error_message").unwrap_or(&body);
    let inner = match message {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner) => inner,
            Err(_) => return Some(text.clone()),
        },
        other => other.clone(),
    };
    inner.get("faultstring")?.as_str().map(str::to_owned)
}

/// Whether a 409 passes by itself. Others, a duplicate MAC say, do not.
fn is_locked(message: &str) -> bool {
    message.contains("is locked") || message.contains("please retry")
}

#[cfg(test)]
mod tests {
    use super::{fault, is_locked, minor_of};

    #[test]
    fn faults_are_found_in_every_shape() {
        let double = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Node x could not be found.\", \"debuginfo\": null}"}"#;
        assert_eq!(fault(double).as_deref(), Some("Node x could not be found."));
        assert_eq!(fault(r#"{"error_message": {"faultstring": "f"}}"#).as_deref(), Some("f"));
        assert_eq!(fault(r#"{"error_message": "plain"}"#).as_deref(), Some("plain"));
        assert_eq!(fault(r#"{"faultstring": "f"}"#).as_deref(), Some("f"));
        let unknown = r#"{"error": {"message": "Authorization required", "code": 401}}"#;
        assert_eq!(fault(unknown).as_deref(), Some("Authorization required"));
        assert_eq!(fault("<html>"), None);
        assert_eq!(fault("{}"), None);
    }

    #[test]
    fn only_locks_pass_by_themselves() {
        assert!(is_locked(
            "Node n1 is locked by host h, please retry after the current operation is completed."
        ));
        assert!(!is_locked("A port with MAC address 52:54:00:aa:bb:01 already exists."));
    }

    #[test]
    fn microversions() {
        assert_eq!(minor_of("1.81"), Some(81));
        assert_eq!(minor_of("2.0"), None);
    }
}
