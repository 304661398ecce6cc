//! Serves the API: a bounded number of connections, each with time limits, drained at the end.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Connections served at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// For the TLS handshake, and for the head of each request.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// For answers on their way when the agent ends.
const DRAIN_TIME: Duration = Duration::from_secs(3);
/// After a failed accept (no more file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serve until `stop`, then let answers go out for at most [`DRAIN_TIME`].
pub async fn run(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    stop: CancellationToken,
) {
    let router = router.layer(axum::middleware::map_response(sign));
    let acceptor = tls.map(TlsAcceptor::from);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = stop.cancelled() => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        connections.spawn(async move {
            let _place = place;
            if let Err(error) = connection(stream, acceptor, router, stop).await {
                tracing::debug!(%error, "connection");
            }
        });
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIME, all).await.is_err() {
        tracing::warn!("some answers did not go out in time");
    }
}

async fn sign(mut response: Response) -> Response {
    response.headers_mut().insert(header::SERVER, HeaderValue::from_static("anneal-agent"));
    response
}

async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match acceptor {
        None => serve(stream, router, stop).await,
        Some(acceptor) => {
            let stream = tokio::time::timeout(HEAD_TIME, acceptor.accept(stream)).await??;
            serve(stream, router, stop).await
        }
    }
}

async fn serve<S>(stream: S, router: Router, stop: CancellationToken) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let done = tokio::select! {
        done = connection.as_mut() => done,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    done.map_err(io::Error::other)
}
