//! HTTP with a Redfish service: who we are, retries, limits. Knows nothing of systems.
//!
//! ```text
//!   request ─ credentials ─ send ─┬─ 401 with a session ─▶ log in again, once
//!                                 ├─ 502/503/504/429, connection lost ─▶ wait, again (bounded)
//!                                 ├─ 3xx to the same host ─▶ follow (bounded)
//!                                 └─ anything else ─▶ Reply
//! ```

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, ETAG, HeaderMap, IF_MATCH, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::causes::{chain, reason};
use super::config::{AuthType, Endpoint, is_path};
use super::{connections, system};
use crate::secret::Secret;
use crate::{BmcError, ErrorKind};

/// One call of ours with all its retries.
const BUDGET: Duration = Duration::from_secs(75);
/// Waits before the second, third, … attempt.
const BACK_OFF: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
/// A BMC may ask for more; we do not wait longer than this.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(10);
const REDIRECTS: usize = 3;
/// No resource that we read comes near; a BMC must not fill our memory.
const LARGEST_BODY: usize = 4 << 20;
/// A client (and its session on the BMC) is given up when unused for this long.
const IDLE: Duration = Duration::from_secs(600);
/// How often clients that are unused are looked for: each look is at all of them.
const SWEEP: Duration = Duration::from_secs(60);

const TOKEN: &str = "x-auth-token";
const ROOT: &str = "/redfish/v1/";

/// What came back, whatever the status.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) etag: Option<String>,
    /// Path of the `Location` header, when it is on this BMC.
    pub(super) location: Option<String>,
    /// Null when the body was empty.
    pub(super) body: Value,
    token: Option<String>,
    retry_after: Option<Duration>,
}

#[cfg(test)]
impl Reply {
    /// Success with this body.
    pub(super) fn of(body: Value) -> Self {
        Self { status: StatusCode::OK, etag: None, location: None, body, token: None, retry_after: None }
    }
}

#[derive(Debug, Clone)]
enum Auth {
    /// Not tried yet, or the session was refused.
    Unknown,
    /// No credentials are configured, or the request needs none.
    None,
    Basic,
    Session {
        token: Secret,
        location: Option<String>,
    },
}

/// Why one attempt failed, and whether the BMC surely has not acted on it.
struct Failure {
    error: BmcError,
    transient: bool,
    untouched: bool,
}

/// One BMC as one user. Shared by all nodes behind it, so that they share one session.
pub(super) struct Client {
    endpoint: Endpoint,
    /// Made by the first request: what judges the BMC's certificate is read from a file.
    http: OnceCell<reqwest::Client>,
    auth: tokio::sync::Mutex<Auth>,
}

/// The clients, and when each was last asked for.
struct Registry {
    clients: HashMap<Endpoint, (Arc<Client>, Instant)>,
    swept_at: Instant,
}

static CLIENTS: LazyLock<Mutex<Registry>> =
    LazyLock::new(|| Mutex::new(Registry { clients: HashMap::new(), swept_at: Instant::now() }));

/// The client for `endpoint`, shared in this process: BMCs allow few sessions at a time.
pub(super) fn shared(endpoint: &Endpoint) -> Arc<Client> {
    let mut registry = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    if now.duration_since(registry.swept_at) >= SWEEP {
        registry.swept_at = now;
        registry.clients.retain(|_, (_, used)| now.duration_since(*used) < IDLE);
    }
    if let Some((client, used)) = registry.clients.get_mut(endpoint) {
        *used = now;
        return client.clone();
    }
    let client = Arc::new(Client::new(endpoint.clone()));
    registry.clients.insert(endpoint.clone(), (client.clone(), now));
    client
}

impl Client {
    fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, http: OnceCell::new(), auth: tokio::sync::Mutex::new(Auth::Unknown) }
    }

    /// The HTTP client. A file that could not be used is read again by the next request.
    async fn http(&self) -> Result<&reqwest::Client, BmcError> {
        let made = self.http.get_or_try_init(|| async {
            let endpoint = self.endpoint.clone();
            let making = tokio::task::spawn_blocking(move || connections::to(&endpoint)).await;
            making.map_err(|error| error.to_string()).and_then(|made| made)
        });
        made.await
            .map_err(|why| BmcError::new(ErrorKind::Config, self.endpoint.address(), "prepare TLS", why))
    }

    /// An error of this BMC; `message` is made safe to show.
    pub(super) fn error(&self, kind: ErrorKind, action: &str, message: &str) -> BmcError {
        let message = match &self.endpoint.login {
            Some((_, password)) => password.redact(message),
            None => Secret::new(String::new()).redact(message),
        };
        BmcError::new(kind, self.endpoint.address(), action, message)
    }

    /// GET that must succeed with a JSON object.
    pub(super) async fn get(&self, action: &str, path: &str) -> Result<Reply, BmcError> {
        let reply = self.request(action, Method::GET, path, None, None).await?;
        self.succeeded(action, &reply)?;
        if !reply.body.is_object() {
            let message = format!("{path} is not a JSON object");
            return Err(self.error(ErrorKind::Protocol, action, &message));
        }
        Ok(reply)
    }

    /// One request with credentials and retries; any final status is a [`Reply`].
    pub(super) async fn request(
        &self,
        action: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<&str>,
    ) -> Result<Reply, BmcError> {
        let work = self.attempts(action, method, path, body, etag);
        tokio::time::timeout(BUDGET, work).await.unwrap_or_else(|_| {
            let message = format!("not done within {} s", BUDGET.as_secs());
            Err(self.error(ErrorKind::Timeout, action, &message))
        })
    }

    async fn attempts(
        &self,
        action: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<&str>,
    ) -> Result<Reply, BmcError> {
        // A POST starts something: it is repeated only if the BMC surely has not seen it.
        let repeatable = method != Method::POST;
        let mut back_off = BACK_OFF.iter();
        let mut logged_in_again = false;
        loop {
            let auth = self.credentials(action).await?;
            let wait = match self.send(action, &method, path, body, etag, &auth).await {
                Ok(reply) if reply.status == StatusCode::UNAUTHORIZED => {
                    if !matches!(auth, Auth::Session { .. }) || logged_in_again {
                        return Err(self.unauthorized(action));
                    }
                    logged_in_again = true;
                    self.forget(&auth).await;
                    continue;
                }
                Ok(reply) if is_transient(reply.status) => match back_off.next() {
                    Some(wait) => reply.retry_after.unwrap_or(*wait).min(LONGEST_RETRY_AFTER),
                    None => return Ok(reply),
                },
                Ok(reply) => return Ok(reply),
                Err(failure) if failure.transient && (repeatable || failure.untouched) => {
                    match back_off.next() {
                        Some(wait) => *wait,
                        None => return Err(failure.error),
                    }
                }
                Err(failure) => return Err(failure.error),
            };
            tracing::debug!(
                bmc = self.endpoint.address(),
                action,
                ?wait,
                "BMC: transient fault, trying again"
            );
            tokio::time::sleep(wait).await;
        }
    }

    fn unauthorized(&self, action: &str) -> BmcError {
        match &self.endpoint.login {
            Some((user, _)) => {
                self.error(ErrorKind::Auth, action, &format!("it refuses the password of user '{user}'"))
            }
            None => self.error(ErrorKind::Auth, action, "it asks for a user; redfish_username is not set"),
        }
    }

    async fn forget(&self, refused: &Auth) {
        let mut auth = self.auth.lock().await;
        if let (Auth::Session { token: now, .. }, Auth::Session { token: then, .. }) = (&*auth, refused)
            && now == then
        {
            *auth = Auth::Unknown;
        }
    }

    /// The credentials to send to this BMC; logs in if there is no session yet. Other calls wait meanwhile,
    /// so that a burst of calls makes one session.
    async fn credentials(&self, action: &str) -> Result<Auth, BmcError> {
        let mut auth = self.auth.lock().await;
        if matches!(*auth, Auth::Unknown) {
            *auth = match (&self.endpoint.login, self.endpoint.auth) {
                (None, _) => Auth::None,
                (Some(_), AuthType::Basic) => Auth::Basic,
                (Some((user, password)), kind) => match self.log_in(action, user, password).await? {
                    Some(session) => session,
                    None if kind == AuthType::Auto => Auth::Basic,
                    None => {
                        return Err(self.error(ErrorKind::Unsupported, action, "it offers no sessions"));
                    }
                },
            };
        }
        Ok(auth.clone())
    }

    /// A session; `None` when the service offers none.
    async fn log_in(&self, action: &str, user: &str, password: &Secret) -> Result<Option<Auth>, BmcError> {
        let root = self.retrying(action, &Method::GET, ROOT, None).await?;
        self.succeeded(action, &root)?;
        let Some(sessions) = system::link(root.body.get("Links").and_then(|links| links.get("Sessions")))
        else {
            return Ok(None);
        };
        let body = json!({"UserName": user, "Password": password.expose()});
        let reply = self.retrying(action, &Method::POST, sessions, Some(&body)).await?;
        match reply.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.unauthorized(action)),
            status if status.is_success() => Ok(reply
                .token
                .map(|token| Auth::Session { token: Secret::new(token), location: reply.location })),
            // Busy, or out of sessions: no reason to send the password with each request.
            status if is_transient(status) => self.succeeded(action, &reply).map(|()| None),
            status => {
                tracing::debug!(bmc = self.endpoint.address(), %status, "BMC: no session, using basic auth");
                Ok(None)
            }
        }
    }

    /// Without credentials, repeated on transient faults (a second session does no harm).
    async fn retrying(
        &self,
        action: &str,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, BmcError> {
        let mut back_off = BACK_OFF.iter();
        loop {
            let outcome = self.send(action, method, path, body, None, &Auth::None).await;
            let transient = match &outcome {
                Ok(reply) => is_transient(reply.status),
                Err(failure) => failure.transient,
            };
            match back_off.next().filter(|_| transient) {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => return outcome.map_err(|failure| failure.error),
            }
        }
    }

    /// One exchange, redirects followed on the same host only.
    async fn send(
        &self,
        action: &str,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<&str>,
        auth: &Auth,
    ) -> Result<Reply, Failure> {
        let protocol = |message: &str| Failure {
            error: self.error(ErrorKind::Protocol, action, message),
            transient: false,
            untouched: false,
        };
        let http = self.http().await.map_err(|error| Failure { error, transient: false, untouched: true })?;
        let mut url = self.endpoint.base.join(path).map_err(|_| protocol("a link is not a path"))?;
        for _ in 0..=REDIRECTS {
            let mut request = http.request(method.clone(), url.clone()).header(ACCEPT, "application/json");
            request = request.header("OData-Version", "4.0");
            request = match (auth, &self.endpoint.login) {
                (Auth::Basic, Some((user, password))) => request.basic_auth(user, Some(password.expose())),
                (Auth::Session { token, .. }, _) => request.header(TOKEN, token.expose()),
                _ => request,
            };
            if let Some(etag) = etag {
                request = request.header(IF_MATCH, etag);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            let response = request.send().await.map_err(|error| self.failure(action, &error))?;
            if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED {
                url = self.redirected(&url, response.headers()).map_err(|why| protocol(&why))?;
                continue;
            }
            return self.read(action, method, response).await;
        }
        Err(protocol("it redirects in a circle"))
    }

    fn redirected(&self, from: &Url, headers: &HeaderMap) -> Result<Url, String> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|location| from.join(location).ok()).ok_or("it redirects to nowhere")?;
        let upgrade = from.scheme() == "http" && to.scheme() == "https";
        let same_port = from.port_or_known_default() == to.port_or_known_default();
        if to.host() != from.host() || !(upgrade || (to.scheme() == from.scheme() && same_port)) {
            return Err(format!("it redirects to another service, {}", to.origin().ascii_serialization()));
        }
        Ok(to)
    }

    async fn read(
        &self,
        action: &str,
        method: &Method,
        mut response: reqwest::Response,
    ) -> Result<Reply, Failure> {
        let status = response.status();
        let text = |name| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let etag = text(ETAG);
        let location = text(LOCATION).and_then(|location| {
            let url = self.endpoint.base.join(&location).ok()?;
            (url.host() == self.endpoint.base.host() && is_path(url.path())).then(|| url.path().to_owned())
        });
        let token = response.headers().get(TOKEN).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let retry_after = text(RETRY_AFTER).and_then(|text| text.parse().ok()).map(Duration::from_secs);

        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > LARGEST_BODY => {
                    let message = format!("its answer is larger than {LARGEST_BODY} bytes");
                    let error = self.error(ErrorKind::Protocol, action, &message);
                    return Err(Failure { error, transient: false, untouched: false });
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(self.failure(action, &error)),
            }
        }
        let body = match serde_json::from_slice(&bytes) {
            Ok(body) => body,
            // Only a GET lives by its body; errors and accepted actions may come with HTML or nothing.
            Err(error) if method == Method::GET && status == StatusCode::OK => {
                let message = format!("its answer is not JSON: {error}");
                let error = self.error(ErrorKind::Protocol, action, &message).with_retryable(true);
                return Err(Failure { error, transient: true, untouched: false });
            }
            Err(_) => Value::Null,
        };
        Ok(Reply { status, etag, location, body, token, retry_after })
    }

    fn failure(&self, action: &str, error: &reqwest::Error) -> Failure {
        let untouched = error.is_connect();
        let tls = chain(error).any(|cause| cause.is::<rustls::Error>());
        let (kind, message) = if error.is_connect() && error.is_timeout() {
            (ErrorKind::Unreachable, format!("no connection within {} s", connections::CONNECT.as_secs()))
        } else if error.is_connect() {
            (ErrorKind::Unreachable, reason(error))
        } else if error.is_timeout() {
            (
                ErrorKind::Timeout,
                format!("no answer within {} s", self.endpoint.settings.request_timeout().as_secs()),
            )
        } else if error.is_builder() {
            (ErrorKind::Config, reason(error))
        } else {
            (ErrorKind::Protocol, format!("the connection broke: {}", reason(error)))
        };
        let transient = !error.is_timeout() && !error.is_builder() && !tls;
        let error = self.error(kind, action, &message).with_retryable(!tls && !error.is_builder());
        Failure { error, transient, untouched }
    }

    /// Turns an error status into an error with the BMC's own words.
    pub(super) fn succeeded(&self, action: &str, reply: &Reply) -> Result<(), BmcError> {
        let status = reply.status;
        if status.is_success() {
            return Ok(());
        }
        let kind = match status {
            StatusCode::UNAUTHORIZED => return Err(self.unauthorized(action)),
            StatusCode::FORBIDDEN => ErrorKind::Auth,
            StatusCode::CONFLICT
            | StatusCode::LOCKED
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::TOO_MANY_REQUESTS => ErrorKind::Conflict,
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => ErrorKind::Unsupported,
            _ => ErrorKind::Protocol,
        };
        let words = system::error_text(&reply.body).unwrap_or_default();
        let separator = if words.is_empty() { "" } else { ": " };
        let error = self.error(kind, action, &format!("it answered {status}{separator}{words}"));
        let retryable = error.is_retryable() || (status.is_server_error() && kind == ErrorKind::Protocol);
        Err(error.with_retryable(retryable))
    }
}

impl Drop for Client {
    /// Gives the session back, as BMCs have few; without a runtime it is left to time out.
    fn drop(&mut self) {
        let Auth::Session { token, location: Some(path) } = self.auth.get_mut().clone() else { return };
        let runtime = tokio::runtime::Handle::try_current();
        let (Ok(runtime), Ok(url), Some(http)) = (runtime, self.endpoint.base.join(&path), self.http.get())
        else {
            return;
        };
        let request = http.delete(url).header(TOKEN, token.expose());
        runtime.spawn(async move {
            if let Err(error) = request.send().await {
                tracing::debug!(error = reason(&error), "BMC: session not closed, it will time out");
            }
        });
    }
}

/// Whether another answer may come later, or to another user.
pub(super) fn is_passing(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) || is_transient(status)
}

fn is_transient(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
    )
}
