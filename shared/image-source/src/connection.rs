//! One request and its answer, redirects followed.

use crate::credentials::basic;
use crate::error::SourceError;
use crate::names;
use crate::proxy::Proxy;
use crate::source::Source;
use crate::url::ImageUrl;
use crate::verifier::sentence;
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, HOST, HeaderMap, LOCATION, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::upgrade::{self, Upgraded};
use hyper::{Method, Request, Response};
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
    let proxy = source.proxies.of(url);
    let asks_proxy = proxy.filter(|_| !url.is_tls());
    let target = match asks_proxy {
        Some(_) => format!("http://{}{}", url.authority(), url.target()),
        None => url.target(),
    };
    let mut request = Request::builder()
        .uri(target)
        .header(HOST, url.authority())
        .header(USER_AGENT, concat!("anneal/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close");
    if let Some(userinfo) = url.userinfo() {
        request = request.header(AUTHORIZATION, basic(userinfo).map_err(again)?);
    }
    if let Some(value) = asks_proxy.and_then(Proxy::authorization) {
        request = request.header(PROXY_AUTHORIZATION, value);
    }
    for (name, value) in headers.iter().chain(source.headers_for(url)) {
        request = request.header(name, value);
    }
    // What hyper would say of a bad request may contain the query.
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|_| Problem::Final(SourceError::Url("it makes no request".to_owned())))?;
    let stream = match proxy {
        Some(proxy) => through(source, url, proxy).await?,
        None => direct(source, url).await?,
    };
    let stream = if url.is_tls() { encrypted(connector, url, stream).await? } else { stream };
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

/// A connection to the mirror.
async fn direct(source: &Source, url: &ImageUrl) -> Result<Box<dyn Stream>, Problem> {
    let address = resolve(source, url).await?;
    source
        .hosts
        .judge(url.host(), address.ip())
        .map_err(|problem| Problem::Final(SourceError::Host { url: url.masked(), problem }))?;
    Ok(Box::new(connect(source, address).await?))
}

/// A connection to a proxy; for TLS, one through it to the mirror. Where the proxy is, is the operator's word.
async fn through(source: &Source, url: &ImageUrl, proxy: &Proxy) -> Result<Box<dyn Stream>, Problem> {
    source
        .hosts
        .judge_for_proxy(url.host())
        .map_err(|problem| Problem::Final(SourceError::Host { url: url.masked(), problem }))?;
    let of_proxy = |problem: Problem| match problem {
        Problem::Again(problem) => Problem::Again(format!("proxy {}: {problem}", proxy.url())),
        problem @ Problem::Final(_) => problem,
    };
    let address = resolve(source, proxy.url()).await.map_err(of_proxy)?;
    let stream = connect(source, address).await.map_err(of_proxy)?;
    match url.is_tls() {
        true => Ok(Box::new(tunnel(stream, url, proxy).await.map_err(of_proxy)?)),
        false => Ok(Box::new(stream)),
    }
}

/// The way through a proxy (RFC 9110, section 9.3.6).
async fn tunnel(stream: TcpStream, url: &ImageUrl, proxy: &Proxy) -> Result<TokioIo<Upgraded>, Problem> {
    let again = |problem: String| Problem::Again(problem);
    let mut request =
        Request::builder().method(Method::CONNECT).uri(url.authority()).header(HOST, url.authority());
    if let Some(value) = proxy.authorization() {
        request = request.header(PROXY_AUTHORIZATION, value);
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|_| Problem::Final(SourceError::Url("it makes no request to a proxy".to_owned())))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| again(error.to_string()))?;
    // It ends with the tunnel, or with the sender where there is none.
    tokio::spawn(connection.with_upgrades());
    let response = sender.send_request(request).await.map_err(|error| again(cause(&error)))?;
    if !response.status().is_success() {
        let status = response.status();
        // What it refuses it refuses again; what it does not reach it may reach later.
        if !status.is_client_error() {
            return Err(again(format!("it answered {}", status.as_u16())));
        }
        let problem = format!("the proxy {} answered {}", proxy.url(), status.as_u16());
        return Err(Problem::Final(SourceError::Fetch { url: url.masked(), problem }));
    }
    let upgraded = upgrade::on(response).await.map_err(|error| again(cause(&error)))?;
    Ok(TokioIo::new(upgraded))
}

async fn connect(source: &Source, address: SocketAddr) -> Result<TcpStream, Problem> {
    tokio::time::timeout(source.limits.connect, TcpStream::connect(address))
        .await
        .map_err(|_| Problem::Again(format!("no connection to {address}")))?
        .map_err(|error| Problem::Again(format!("cannot connect to {address}: {error}")))
}

async fn encrypted(
    connector: &TlsConnector,
    url: &ImageUrl,
    stream: Box<dyn Stream>,
) -> Result<Box<dyn Stream>, Problem> {
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
            None => Err(Problem::Again(format!("TLS with {host}: {error}"))),
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
