//! An agent's calls to its controller: one connection a request, as the real agent makes them.

use agent_protocol::NONCE_HEADER;
use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use pinned_tls::{Accept, client_config};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;

/// The microversion that our agent and ironic-python-agent heartbeat with.
const VERSION: &str = "1.68";
/// From connecting to the last byte of the answer, as the real agent's.
const LIMIT: Duration = Duration::from_secs(30);

/// Status and body of an answer.
pub type Answer = (u16, Bytes);

/// How a client reaches a server: where it is, from which address of this machine, and how it is encrypted.
#[derive(Clone)]
pub struct Route {
    /// The server's address.
    pub to: SocketAddr,
    /// The client's address.
    pub from: Ipv4Addr,
    /// What encrypts the connection; `None`: plain.
    pub tls: Option<TlsConnector>,
    /// The nonce of the boot, which every request shows.
    pub nonce: Option<String>,
}

/// A connection, encrypted or not.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

impl Route {
    /// From this address, with TLS, whatever certificate the server has.
    ///
    /// # Errors
    /// When rustls refuses its own defaults.
    pub fn encrypted(to: SocketAddr, from: Ipv4Addr) -> Result<Self> {
        let config = client_config("the controller", Accept::Any)?;
        Ok(Self { to, from, tls: Some(TlsConnector::from(Arc::new(config))), nonce: None })
    }

    /// From 127.0.0.1, plain.
    pub fn plain(to: SocketAddr) -> Self {
        Self { to, from: Ipv4Addr::LOCALHOST, tls: None, nonce: None }
    }

    /// Connects.
    ///
    /// # Errors
    /// When the server does not accept the connection.
    pub async fn connect(&self) -> Result<Box<dyn Connection>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.from, 0).into())?;
        let stream = socket.connect(self.to).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        Ok(Box::new(tls.connect(self.to.ip().into(), stream).await?))
    }
}

/// Sends a request to the API.
///
/// # Errors
/// When there is no whole answer within 30 s.
pub async fn send(route: &Route, method: Method, path: &str, body: Vec<u8>) -> Result<Answer> {
    send_at(route, VERSION, method, path, body).await
}

/// The same in this microversion.
///
/// # Errors
/// When there is no whole answer within 30 s.
pub async fn send_at(
    route: &Route,
    version: &str,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<Answer> {
    let what = format!("{method} {}", path.split('?').next().unwrap_or_default());
    tokio::time::timeout(LIMIT, exchange(route, version, method, path, body))
        .await
        .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {LIMIT:?}")))
        .context(what)
}

async fn exchange(route: &Route, version: &str, method: Method, path: &str, body: Vec<u8>) -> Result<Answer> {
    let stream = route.connect().await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let nonce = route.nonce.iter().map(|nonce| (NONCE_HEADER, nonce));
    let request = nonce
        .fold(Request::builder(), |request, (name, value)| request.header(name, value))
        .method(method)
        .uri(path)
        .header(header::HOST, route.to.to_string())
        .header(header::CONNECTION, "close")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .header("x-openstack-ironic-api-version", version)
        .body(Full::new(Bytes::from(body)))?;
    let exchange = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((status, body))
    };
    tokio::pin!(exchange, connection);
    tokio::select! {
        done = &mut exchange => done,
        ended = &mut connection => {
            ended?;
            exchange.await
        }
    }
}
