//! The HTTP API of a simulated agent, as far as its commands need it.

use crate::agent::Agent;
use anyhow::Result;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use room::{Call, Reply};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What answers the calls of a controller.
pub trait Answer: Send + Sync {
    /// The answer to a call.
    fn answer(&self, call: &Call) -> Reply;
}

impl Answer for Agent {
    fn answer(&self, call: &Call) -> Reply {
        Self::answer(self, call)
    }
}

/// Serves `agent` until it is dropped.
pub async fn run(listener: TcpListener, tls: Option<TlsAcceptor>, agent: Arc<Agent>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(connection(stream, tls.clone(), agent.clone()))),
            Err(error) => eprintln!("agent {}: accept: {error}", agent.mac),
        }
    }
}

/// Serves one connection to its end. One that breaks is the controller's to notice.
///
/// # Errors
/// When it breaks.
pub async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, agent: Arc<impl Answer>) -> Result<()> {
    stream.set_nodelay(true)?;
    match tls {
        Some(tls) => serve(tls.accept(stream).await?, agent).await,
        None => serve(stream, agent).await,
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, agent: Arc<impl Answer>) -> Result<()> {
    let service = service_fn(|request| answer(&*agent, request));
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

async fn answer(
    agent: &impl Answer,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = match head.method {
        Method::POST => Some(body.collect().await?.to_bytes().to_vec()),
        _ => None,
    };
    let (status, body) = agent.answer(&Call::new(head.uri.path(), head.uri.query(), body));
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}
