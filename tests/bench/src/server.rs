//! The HTTP API of a simulated agent, as far as cleaning needs it.

use crate::agent::Agent;
use anyhow::Result;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use room::Call;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

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

/// A connection that breaks is the controller's to notice.
async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, agent: Arc<Agent>) -> Result<()> {
    stream.set_nodelay(true)?;
    match tls {
        Some(tls) => serve(tls.accept(stream).await?, agent).await,
        None => serve(stream, agent).await,
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, agent: Arc<Agent>) -> Result<()> {
    let service = service_fn(|request| answer(&agent, request));
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

async fn answer(agent: &Agent, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
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
