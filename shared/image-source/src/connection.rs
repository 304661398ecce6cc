//! One request and its answer, redirects followed.

use crate::error::SourceError;
use crate::names;
use crate::source::Source;
use crate::url::ImageUrl;
use crate::verifier::sentence;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Redirects that are followed.
const REDIRECTS: usize = 5;
/// Bytes that hyper reads at once.
const READ_BYTES: usize = 256 * 1024;

/// Why there is no answer.
pub(super) enum Problem {
    /// Another try may help.
    Again(String),
    /// It would be the same.
    Final(SourceError),
}

/// An answer that was begun, and the task that drives its connection.
pub(super) struct Answer {
    pub(super) url: ImageUrl,
    pub(super) response: Response<Incoming>,
    pub(super) driver: Driver,
}

/// Ends the connection when dropped.
pub(super) struct Driver(tokio::task::JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The answer to GET of one of the source's places with these headers, after at most [`REDIRECTS`] redirects.
pub(super) async fn get(
    source: &Source,
    place: &ImageUrl,
    connector: &TlsConnector,
    headers: &HeaderMap,
) -> Result<Answer, Problem> {
    let mut url = place.clone();
    for _ in 0..=REDIRECTS {
        let asked = tokio::time::timeout(2 * source.limits.connect, ask(source, connector, &url, headers));
        let answer = match asked.await {
            Ok(answer) => answer?,
            Err(_) => {
                return Err(Problem::Again(format!(
                    "no answer within {} s",
                    2 * source.limits.connect.as_secs()
                )));
            }
        };
        if !matches!(answer.response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(answer);
        }
        let location = answer.response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let next = location.ok_or_else(|| "a redirect without a place".to_owned());
        let refused = |problem| Problem::Final(SourceError::Fetch { url: place.masked(), problem });
        url = next.and_then(|location| url.redirected(location)).map_err(refused)?;
    }
    let problem = format!("more than {REDIRECTS} redirects");
    Err(Problem::Final(SourceError::Fetch { url: place.masked(), problem }))
}

async fn ask(
    source: &Source,
    connector: &TlsConnector,
    url: &ImageUrl,
    headers: &HeaderMap,
) -> Result<Answer, Problem> {
    let again = |problem: String| Problem::Again(problem);
    let mut request = Request::builder()
        .uri(url.target())
        .header(HOST, url.authority())
        .header(USER_AGENT, concat!("anneal/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close");
    if let Some(userinfo) = url.userinfo() {
        let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(decoded(userinfo))))
            .map_err(|_| again("user and password".to_owned()))?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    for (name, value) in headers.iter().chain(source.headers_for(url)) {
        request = request.header(name, value);
    }
    // What hyper would say of a bad request may contain the query.
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|_| Problem::Final(SourceError::Url("it makes no request".to_owned())))?;
    let stream = connect(source, connector, url).await?;
    let mut http = hyper::client::conn::http1::Builder::new();
    http.max_buf_size(READ_BYTES);
    let (mut sender, connection) =
        http.handshake(TokioIo::new(stream)).await.map_err(|error| again(error.to_string()))?;
    let driver = Driver(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await.map_err(|error| again(cause(&error)))?;
    Ok(Answer { url: url.clone(), response, driver })
}

async fn connect(
    source: &Source,
    connector: &TlsConnector,
    url: &ImageUrl,
) -> Result<Box<dyn Stream>, Problem> {
    let again = |problem: String| Problem::Again(problem);
    let address = resolve(source, url).await?;
    source
        .hosts
        .judge(url.host(), address.ip())
        .map_err(|problem| Problem::Final(SourceError::Host { url: url.masked(), problem }))?;
    let stream = tokio::time::timeout(source.limits.connect, TcpStream::connect(address))
        .await
        .map_err(|_| again(format!("no connection to {address}")))?
        .map_err(|error| again(format!("cannot connect to {address}: {error}")))?;
    if !url.is_tls() {
        return Ok(Box::new(stream));
    }
    let host = url.host().trim_end_matches('.');
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| Problem::Final(SourceError::Url(error.to_string())))?;
    match connector.connect(name, stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        // A certificate that is refused is refused again; a connection that broke may not break again.
        Err(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(refused) => {
                let problem = sentence(refused, host, url.port());
                Err(Problem::Final(SourceError::Fetch { url: url.masked(), problem }))
            }
            None => Err(again(format!("TLS with {host}: {error}"))),
        },
    }
}

async fn resolve(source: &Source, url: &ImageUrl) -> Result<SocketAddr, Problem> {
    if let Some(ip) = url.ip() {
        return Ok(SocketAddr::new(ip, url.port()));
    }
    names::resolve(url.host(), url.port(), source.limits.connect).await.map_err(Problem::Again)
}

/// An error of hyper with its cause: by itself it says only where it happened.
pub(super) fn cause(error: &hyper::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// User and password without percent-encoding.
fn decoded(userinfo: &str) -> Vec<u8> {
    let bytes = userinfo.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[at], pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}
