//! TLS in front of axum. Handshakes run concurrently, each with a deadline and at most [`MOST`] at once, so that silent
//! clients neither hold up others for long nor use up the file descriptors of the process.

use axum::serve::Listener;
use rustls::ServerConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client has this long for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes at once; further connections wait in the kernel's queue.
const MOST: usize = 256;

type Connection = (TlsStream<TcpStream>, SocketAddr);

/// Returns connections whose handshake is done.
pub struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<Option<Connection>>,
}

impl TlsListener {
    /// TLS on a bound listener.
    pub fn new(listener: TcpListener, config: Arc<ServerConfig>) -> Self {
        Self { listener, acceptor: TlsAcceptor::from(config), handshakes: JoinSet::new() }
    }
}

async fn handshake(acceptor: TlsAcceptor, stream: TcpStream, peer: SocketAddr) -> Option<Connection> {
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some((stream, peer)),
        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
    }
    None
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                Some(ended) = self.handshakes.join_next() => {
                    if let Ok(Some(connection)) = ended {
                        return connection;
                    }
                }
                // axum's own listener retries after errors such as too many open files.
                (stream, peer) = Listener::accept(&mut self.listener), if self.handshakes.len() < MOST => {
                    self.handshakes.spawn(handshake(self.acceptor.clone(), stream, peer));
                }
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn listener(listener: TcpListener) -> TlsListener {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = certificate.self_signed(&key).unwrap().der().clone();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(
            vec![certificate],
            rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        );
        TlsListener::new(listener, Arc::new(config.unwrap()))
    }

    /// More clients connect than handshakes may run at once, and none of them says anything.
    #[tokio::test]
    async fn silent_clients_are_bounded_and_disconnected() {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let mut tls = listener(socket);
        let connect = async {
            let mut clients = Vec::new();
            for _ in 0..MOST + 8 {
                clients.push(TcpStream::connect(address).await.unwrap());
            }
            clients
        };
        let mut clients = tokio::select! {
            _ = tls.accept() => panic!("no handshake can be done"),
            clients = connect => clients,
        };
        while tls.handshakes.len() < MOST {
            let accepted = tokio::time::timeout(Duration::from_millis(10), tls.accept()).await;
            assert!(accepted.is_err(), "no handshake can be done");
        }
        let accepted = tokio::time::timeout(Duration::from_millis(100), tls.accept()).await;
        assert!(accepted.is_err() && tls.handshakes.len() == MOST);
        tokio::time::pause();
        tokio::select! {
            _ = tls.accept() => panic!("no handshake can be done"),
            read = clients[0].read_u8() => assert!(read.is_err(), "the first has been disconnected"),
        }
    }
}
