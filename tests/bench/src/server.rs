//! The HTTP API of a simulated agent, as far as cleaning needs it.

use crate::agent::{Agent, Refusal};
use anyhow::Result;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
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
    let service = service_fn(|request| {
        let agent = agent.clone();
        async move { Ok::<_, Infallible>(answer(&agent, request).await) }
    });
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

async fn answer(agent: &Agent, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = match reply(agent, request).await {
        Ok(body) => (200, body),
        Err(Refusal(status, text)) => (status, json!({ "faultcode": "Client", "faultstring": text })),
    };
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

async fn reply(agent: &Agent, request: Request<Incoming>) -> Result<Value, Refusal> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    let token = query.split('&').find_map(|pair| pair.strip_prefix("agent_token="));
    if !agent.admits(token) {
        return Err(Refusal(401, "Invalid agent token."));
    }
    let path = head.uri.path();
    match (head.method, path.strip_prefix("/v1/commands").map(|rest| rest.trim_matches('/'))) {
        (Method::POST, Some("")) => {
            let body = body.collect().await.map_err(|_| Refusal(400, "the body broke off"))?.to_bytes();
            let request = serde_json::from_slice(&body).map_err(|_| Refusal(400, "not a command"))?;
            Ok(json!(agent.submit(request)?))
        }
        (Method::GET, Some("")) => Ok(json!(agent.commands())),
        (Method::GET, Some(id)) => agent.command(id).map(|one| json!(one)).ok_or(Refusal(404, "Not found")),
        _ => Err(Refusal(404, "Not found")),
    }
}
