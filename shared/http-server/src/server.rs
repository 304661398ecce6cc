//! One listener: accept, handshake, serve, drain.

use crate::activity::Activity;
use crate::listener::{Listener, LocalUser, Stream};
use crate::places::{Full, Place, Places};
use crate::timed_io::TimedIo;
use crate::timeouts::Timeouts;
use crate::tracked_body::TrackedBody;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Connections of a listener that were closed for new ones and still have their file descriptor.
const CLOSING: usize = 16;
/// After a failed accept (no more file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often a connection that found no place looks again.
const PLACE_PAUSE: Duration = Duration::from_millis(50);

/// The address of a request's client, among the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The connection of a request, among the request's extensions.
#[derive(Clone)]
pub struct Peer {
    address: ClientAddress,
    user: Option<LocalUser>,
    place: Arc<Place>,
    operators: Option<Arc<Places>>,
}

impl Peer {
    /// The client is a user who has authenticated: from now on the connection counts among those of operators.
    pub fn authenticated(&self) {
        if let Some(operators) = &self.operators {
            self.place.change_to(operators);
        }
    }
}

/// What limits the clients of a listener.
#[derive(Clone)]
pub struct Clients {
    /// Limits in time.
    pub timeouts: Timeouts,
    /// Where new connections are counted.
    pub places: Arc<Places>,
    /// Where connections are counted after [`Peer::authenticated`]; `None`: they stay.
    pub operators: Option<Arc<Places>>,
}

/// A listener, and what it serves.
pub struct Server {
    /// The socket.
    pub listener: Listener,
    /// `None`: plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// What it serves.
    pub router: Router,
    /// The limits.
    pub clients: Clients,
}

/// What the tasks of a listener share.
#[derive(Clone)]
struct Shared {
    acceptor: Option<TlsAcceptor>,
    router: Router,
    timeouts: Timeouts,
    operators: Option<Arc<Places>>,
    stop: CancellationToken,
}

impl Server {
    /// Serve until `stop`, then let answers go out for at most `drain`. Returns whether all of them did.
    pub async fn run(self, stop: CancellationToken, drain: Duration) -> bool {
        let Self { listener, tls, router, clients: Clients { timeouts, places, operators } } = self;
        let acceptor = tls.map(TlsAcceptor::from);
        let shared = Shared { acceptor, router, timeouts, operators, stop: stop.clone() };
        let most = places.total() + shared.operators.as_ref().map_or(0, |places| places.total()) + CLOSING;
        let mut connections = JoinSet::new();
        let accepting = async {
            loop {
                while connections.try_join_next().is_some() {}
                // Each has a place, or ends at once.
                while connections.len() >= most {
                    connections.join_next().await;
                }
                let (stream, address, user) = accept(&listener).await;
                let (activity, close) = (Arc::new(Activity::new()), CancellationToken::new());
                let Some(place) = place(&places, address, &activity, &close).await else { continue };
                let peer = Peer {
                    address: ClientAddress(address.to_canonical()),
                    user,
                    place: Arc::new(place),
                    operators: shared.operators.clone(),
                };
                let shared = shared.clone();
                connections.spawn(async move {
                    let served = shared.connection(stream, peer, activity);
                    let ended = tokio::select! {
                        ended = served => ended,
                        () = close.cancelled() => Err(io::Error::other("closed for a new connection")),
                    };
                    if let Err(error) = ended {
                        tracing::debug!(%address, %error, "connection");
                    }
                });
            }
        };
        tokio::select! {
            _ = accepting => {}
            () = stop.cancelled() => {}
        }
        drop(listener);
        let all = async { while connections.join_next().await.is_some() {} };
        tokio::time::timeout(drain, all).await.is_ok()
    }
}

async fn accept(listener: &Listener) -> (Stream, IpAddr, Option<LocalUser>) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            // The client is gone already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// A place for a connection; `None` if its address has its most. While all places are busy it waits for one, and
/// further connections wait in the kernel's queue.
async fn place(
    places: &Arc<Places>,
    address: IpAddr,
    activity: &Arc<Activity>,
    close: &CancellationToken,
) -> Option<Place> {
    loop {
        match places.enter(address, activity.clone(), close.clone()) {
            Ok(place) => return Some(place),
            Err(Full::Address) => return None,
            // A connection that becomes idle frees no place and can be closed: look again soon.
            Err(Full::Class) => drop(tokio::time::timeout(PLACE_PAUSE, places.freed()).await),
        }
    }
}

impl Shared {
    async fn connection(self, stream: Stream, peer: Peer, activity: Arc<Activity>) -> io::Result<()> {
        match stream {
            Stream::Tcp(stream) => {
                stream.set_nodelay(true)?;
                self.secured(stream, peer, activity).await
            }
            Stream::Unix(stream) => self.secured(stream, peer, activity).await,
        }
    }

    async fn secured<S>(&self, stream: S, peer: Peer, activity: Arc<Activity>) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match &self.acceptor {
            None => self.serve(stream, peer, activity).await,
            Some(acceptor) => {
                let stream = tokio::time::timeout(self.timeouts.head, acceptor.accept(stream)).await??;
                self.serve(stream, peer, activity).await
            }
        }
    }

    async fn serve<S>(&self, stream: S, peer: Peer, activity: Arc<Activity>) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = TimedIo::new(stream, activity.clone(), self.timeouts);
        let service = service_fn(|request: Request<Incoming>| {
            answer(self.router.clone(), peer.clone(), activity.clone(), request)
        });
        // hyper's own limit for a head also counts the time between two requests.
        let connection = hyper::server::conn::http1::Builder::new()
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let done = tokio::select! {
            done = connection.as_mut() => done,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        done.map_err(io::Error::other)
    }
}

async fn answer(
    router: Router,
    peer: Peer,
    activity: Arc<Activity>,
    request: Request<Incoming>,
) -> Result<Response<TrackedBody<Body>>, Infallible> {
    let mut request = request.map(|body| Body::new(TrackedBody::request(body, activity.clone())));
    request.extensions_mut().insert(peer.address);
    if let Some(user) = peer.user {
        request.extensions_mut().insert(user);
    }
    request.extensions_mut().insert(peer);
    let response = router.oneshot(request).await?;
    Ok(response.map(|body| TrackedBody::response(body, activity)))
}
