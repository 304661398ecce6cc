//! A small HTTP/1.1 client: one connection a request, plain or TLS, no proxy, no redirects.
//!
//! One connection a request because Ironic closes idle ones after 10 s, and the agent's next
//! request is usually later than that.

use crate::tls::{self, TlsError, Trust};
use crate::token::Token;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// From connecting to the last byte of the answer.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// For a connection: a controller whose machine is off answers nothing.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Longest answer taken.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Base URL of a controller's API, or the URL of one thing in it: `http[s]://host[:port][/prefix]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiUrl {
    tls: bool,
    host: String,
    port: u16,
    prefix: String,
}

impl ApiUrl {
    /// Whether it needs a [`Trust`].
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The URL of `path`, which begins with a slash, below this one.
    pub fn below(&self, path: &str) -> Self {
        Self { prefix: format!("{}{path}", self.prefix), ..self.clone() }
    }

    /// The IP address in the URL, when the host is one.
    pub fn ip(&self) -> Option<IpAddr> {
        if self.host == "localhost" {
            return Some(IpAddr::from([127, 0, 0, 1]));
        }
        self.host.trim_matches(['[', ']']).parse().ok()
    }
}

impl FromStr for ApiUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = |why: &str| format!("{text:?} is not an API URL: {why}");
        let uri: Uri = text.parse().map_err(|error| problem(&format!("{error}")))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(problem("it must begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| problem("no host"))?;
        if authority.as_str().contains('@') {
            return Err("an API URL must not carry a user or password".into());
        }
        if uri.query().is_some() {
            return Err(problem("a query has no place here"));
        }
        let port = match (authority.port(), authority.port_u16()) {
            (None, _) => {
                if tls {
                    443
                } else {
                    80
                }
            }
            (Some(_), Some(port)) if port > 0 => port,
            _ => return Err(problem("bad port")),
        };
        let host = authority.host().to_owned();
        Ok(Self { tls, host, port, prefix: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for ApiUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(formatter, "{scheme}://{}:{}{}", self.host, self.port, self.prefix)
    }
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The name of the host does not resolve.
    #[error("cannot resolve {host:?}: {problem}")]
    Resolve {
        /// The host.
        host: String,
        /// Why.
        problem: String,
    },
    /// No connection.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where to.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The TLS handshake failed; a wrong certificate ends here.
    #[error("TLS with {url}: {source}")]
    Tls {
        /// Where to.
        url: String,
        /// Why.
        source: std::io::Error,
    },
    /// The request broke.
    #[error("HTTP with {url}: {problem}")]
    Http {
        /// Where to.
        url: String,
        /// Why.
        problem: String,
    },
    /// Another answer than was asked for.
    #[error("{url} answered {status}: {text}")]
    Refused {
        /// Where to.
        url: String,
        /// Status code.
        status: u16,
        /// Body, shortened.
        text: String,
    },
    /// Nothing for [`TIME_LIMIT`].
    #[error("no answer from {url} within {} s", TIME_LIMIT.as_secs())]
    Timeout {
        /// Where to.
        url: String,
    },
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Body.
    pub body: Vec<u8>,
    /// Our end of the connection: the address by which the controller can reach us.
    pub local: IpAddr,
}

const REQUEST_ID_HEADER: &str = "X-OpenStack-Request-ID";

/// The client.
#[derive(Clone)]
pub struct Client {
    connector: TlsConnector,
    request_id: Option<String>,
    nonce: Option<Token>,
}

impl Client {
    /// A client with this trust.
    pub fn new(trust: Option<&Trust>) -> Result<Self, TlsError> {
        Ok(Self {
            connector: TlsConnector::from(Arc::new(tls::client(trust)?)),
            request_id: None,
            nonce: None,
        })
    }

    /// With this id in every request, by which the controller finds what belongs together in its logs.
    #[must_use]
    pub fn filed_under(self, request_id: Option<String>) -> Self {
        Self { request_id, ..self }
    }

    /// With the nonce of this boot in every request, by which the controller knows that it booted this machine.
    #[must_use]
    pub fn showing(self, nonce: Option<Token>) -> Self {
        Self { nonce, ..self }
    }

    /// One request to `path` (with its query) below the base, or to the base itself when it is empty.
    /// `microversion` as `1.N`.
    pub async fn send(
        &self,
        method: Method,
        base: &ApiUrl,
        path: &str,
        microversion: Option<&str>,
        body: Vec<u8>,
    ) -> Result<Reply, HttpError> {
        let request = self.exchange(method, base, path, microversion, body);
        match tokio::time::timeout(TIME_LIMIT, request).await {
            Ok(result) => result,
            Err(_) => Err(HttpError::Timeout { url: base.to_string() }),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        base: &ApiUrl,
        path: &str,
        microversion: Option<&str>,
        body: Vec<u8>,
    ) -> Result<Reply, HttpError> {
        let http_error = |problem: String| HttpError::Http { url: base.to_string(), problem };
        let target = format!("{}{path}", base.prefix);
        let mut request = Request::builder()
            .method(method)
            .uri(if base.prefix.is_empty() && path.is_empty() { "/" } else { &target })
            .header(HOST, format!("{}:{}", base.host, base.port))
            .header(USER_AGENT, concat!("anneal-agent/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .header(CONNECTION, "close");
        if let Some(microversion) = microversion {
            request = request.header(agent_protocol::MICROVERSION_HEADER, microversion);
        }
        if let Some(id) = &self.request_id {
            request = request.header(REQUEST_ID_HEADER, id);
        }
        if let Some(nonce) = &self.nonce {
            request = request.header(agent_protocol::NONCE_HEADER, nonce.expose());
        }
        let request =
            request.body(Full::new(Bytes::from(body))).map_err(|error| http_error(error.to_string()))?;
        let (stream, local) = self.connect(base).await?;
        let (status, body) = talk(stream, request, whole).await.map_err(http_error)?;
        Ok(Reply { status, body, local })
    }

    /// What is at `path` below the base, given to `take` as it arrives: any number of bytes, but never nothing for
    /// longer than [`TIME_LIMIT`]. The values of `headers` may be secrets. Another answer than 200 is
    /// [`HttpError::Refused`]; an error of `take` ends it.
    pub async fn download(
        &self,
        base: &ApiUrl,
        path: &str,
        headers: &[(&'static str, &str)],
        take: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), HttpError> {
        let http_error = |problem: String| HttpError::Http { url: base.to_string(), problem };
        let mut request = Request::builder()
            .uri(format!("{}{path}", base.prefix))
            .header(HOST, format!("{}:{}", base.host, base.port))
            .header(USER_AGENT, concat!("anneal-agent/", env!("CARGO_PKG_VERSION")))
            .header(CONNECTION, "close");
        for (name, value) in headers {
            let mut value =
                HeaderValue::from_str(value).map_err(|_| http_error(format!("{name}: no header value")))?;
            value.set_sensitive(true);
            request = request.header(*name, value);
        }
        let request = request.body(Full::default()).map_err(|error| http_error(error.to_string()))?;
        let url = || base.to_string();
        let connected = tokio::time::timeout(TIME_LIMIT, self.connect(base)).await;
        let (stream, _) = connected.map_err(|_| HttpError::Timeout { url: url() })??;
        let read = async move |response: Response<Incoming>| match response.status().as_u16() {
            200 => pass_on(response, take).await.map(|()| None),
            _ => whole(response).await.map(Some),
        };
        match talk(stream, request, read).await.map_err(http_error)? {
            (_, None) => Ok(()),
            (status, Some(body)) => Err(HttpError::Refused { url: url(), status, text: shorten(&body) }),
        }
    }

    /// A connection and our end of it.
    async fn connect(&self, base: &ApiUrl) -> Result<(Box<dyn Stream>, IpAddr), HttpError> {
        let address = self.resolve(base).await?;
        let connected = tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(address)).await;
        let stream = connected
            .unwrap_or_else(|elapsed| Err(elapsed.into()))
            .map_err(|source| HttpError::Connect { address, source })?;
        let local = stream.local_addr().map_err(|source| HttpError::Connect { address, source })?.ip();
        if !base.tls {
            return Ok((Box::new(stream), local));
        }
        let host = base.host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host)
            .map_err(|error| HttpError::Http { url: base.to_string(), problem: error.to_string() })?;
        let stream = self
            .connector
            .connect(name, stream)
            .await
            .map_err(|source| HttpError::Tls { url: base.to_string(), source })?;
        Ok((Box::new(stream), local))
    }

    async fn resolve(&self, base: &ApiUrl) -> Result<SocketAddr, HttpError> {
        if let Some(ip) = base.ip() {
            return Ok(SocketAddr::new(ip, base.port));
        }
        let problem = |problem: &str| HttpError::Resolve { host: base.host.clone(), problem: problem.into() };
        let mut found = tokio::net::lookup_host((base.host.as_str(), base.port))
            .await
            .map_err(|error| problem(&error.to_string()))?;
        found.next().ok_or_else(|| problem("no address"))
    }
}

/// Plain or TLS.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Status, and what `read` makes of the answer.
async fn talk<T>(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, String>,
) -> Result<(u16, T), String> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        Ok((status, read(response).await?))
    };
    tokio::pin!(connection);
    tokio::pin!(exchange);
    // Driven here and not in a task: when this future is dropped, so is the connection.
    tokio::select! {
        result = &mut exchange => result,
        ended = &mut connection => match ended {
            Err(error) => Err(error.to_string()),
            Ok(()) => exchange.await,
        },
    }
}

async fn whole(response: Response<Incoming>) -> Result<Vec<u8>, String> {
    let body = Limited::new(response.into_body(), ANSWER_BYTES);
    Ok(body.collect().await.map_err(|error| error.to_string())?.to_bytes().to_vec())
}

async fn pass_on(
    response: Response<Incoming>,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let mut body = response.into_body();
    loop {
        let next = tokio::time::timeout(TIME_LIMIT, body.frame()).await;
        let next = next.map_err(|_| format!("nothing more within {} s", TIME_LIMIT.as_secs()))?;
        let Some(frame) = next else { return Ok(()) };
        if let Ok(data) = frame.map_err(|error| error.to_string())?.into_data() {
            take(&data)?;
        }
    }
}

/// The text of an error body, cut and without control characters, for a log line.
pub fn shorten(body: &[u8]) -> String {
    const LENGTH: usize = 300;
    let text: String = String::from_utf8_lossy(body).chars().take(LENGTH).collect();
    if text.is_empty() { "(no text)".into() } else { text.replace(char::is_control, " ") }
}

#[cfg(test)]
mod tests {
    use super::{ApiUrl, Client};
    use crate::token::Token;
    use hyper::Method;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn every_request_is_filed_under_the_id_that_was_given_and_shows_the_nonce() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base: ApiUrl =
            format!("http://{}", listener.local_addr().expect("bound")).parse().expect("a URL");
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.expect("a request");
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("an answer");
            String::from_utf8_lossy(&request[..length]).to_lowercase()
        });
        let client = Client::new(None).expect("a client").filed_under(Some("req-7".to_owned()));
        let client = client.showing(Token::new(&"0".repeat(64)));
        client.send(Method::GET, &base, "/v1", None, Vec::new()).await.expect("an answer");
        let request = server.await.expect("no panic");
        assert!(request.contains("x-openstack-request-id: req-7\r\n"), "{request}");
        assert!(request.contains(&format!("x-anneal-boot-nonce: {}\r\n", "0".repeat(64))), "{request}");
    }

    #[test]
    fn urls_are_understood_or_refused_by_name() {
        let shown = |text: &str| text.parse::<ApiUrl>().map(|url| url.to_string());
        assert_eq!(shown("https://192.0.2.1:6385").as_deref(), Ok("https://192.0.2.1:6385"));
        assert_eq!(
            shown("http://[fd00::1]:6385/baremetal/").as_deref(),
            Ok("http://[fd00::1]:6385/baremetal")
        );
        assert_eq!(shown("https://192.0.2.1").as_deref(), Ok("https://192.0.2.1:443"));
        assert!("http://[fd00::1]:6385".parse::<ApiUrl>().is_ok_and(|url| url.ip().is_some()));
        for bad in ["", "192.0.2.1:6385", "ftp://192.0.2.1", "http://192.0.2.1:0", "http://a?b=c", "http://"]
        {
            assert!(shown(bad).is_err_and(|why| why.contains("API URL")), "{bad}");
        }
        assert!(shown("http://me:secret@192.0.2.1").is_err_and(|why| !why.contains("secret")));
    }
}
