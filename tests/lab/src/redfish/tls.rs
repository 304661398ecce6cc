//! HTTPS for the BMC, with a self-signed certificate as BMCs have them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client that connects and says nothing is dropped after this long.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Listens with TLS, and returns the certificate in PEM.
pub fn listener(inner: TcpListener, address: IpAddr) -> Result<(TlsListener, String)> {
    let made =
        rcgen::generate_simple_self_signed([address.to_string()]).context("cannot make a certificate")?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok((TlsListener { inner, acceptor: Arc::new(config).into() }, made.cert.pem()))
}

/// Accepts one handshake at a time, which is as much as a BMC can do.
pub struct TlsListener {
    inner: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.inner).await;
            match tokio::time::timeout(HANDSHAKE_LIMIT, self.acceptor.accept(stream)).await {
                Ok(Ok(stream)) => return (stream, address),
                Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake"),
                Err(_) => tracing::debug!(%address, "TLS handshake took too long"),
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}
