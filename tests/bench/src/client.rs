//! An agent's calls to its controller: one connection a request, as the real agent makes them.

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// The microversion that our agent and ironic-python-agent heartbeat with.
const VERSION: &str = "1.68";
/// From connecting to the last byte of the answer, as the real agent's.
const LIMIT: Duration = Duration::from_secs(30);

/// Status and body of an answer.
pub type Answer = (u16, Bytes);

/// Sends a request to the API at `address`.
///
/// # Errors
/// When there is no whole answer within 30 s.
pub async fn send(address: SocketAddr, method: Method, path: &str, body: Vec<u8>) -> Result<Answer> {
    let what = format!("{method} {}", path.split('?').next().unwrap_or_default());
    tokio::time::timeout(LIMIT, exchange(address, method, path, body))
        .await
        .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {LIMIT:?}")))
        .context(what)
}

async fn exchange(address: SocketAddr, method: Method, path: &str, body: Vec<u8>) -> Result<Answer> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.to_string())
        .header(header::CONNECTION, "close")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .header("x-openstack-ironic-api-version", VERSION)
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
