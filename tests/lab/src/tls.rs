//! HTTPS for BMCs and mirrors.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::serve::Listener;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client that connects and says nothing is dropped after this long.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Listens with TLS and a certificate that signs itself, as BMCs have them, and returns the certificate in PEM.
///
/// # Errors
/// When no certificate can be made.
pub fn self_signed(inner: TcpListener, address: IpAddr) -> Result<(TlsListener, String)> {
    let made =
        rcgen::generate_simple_self_signed([address.to_string()]).context("cannot make a certificate")?;
    Ok((listener(inner, made.cert.der().clone(), &made.signing_key)?, made.cert.pem()))
}

/// The DER in a PEM file with one certificate.
///
/// # Errors
/// When it cannot be read or holds none.
pub fn der(file: &Path) -> Result<Vec<u8>> {
    let pem = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    der_of(&pem).with_context(|| file.display().to_string())
}

/// The DER in a PEM text with one certificate.
///
/// # Errors
/// When it holds none.
pub fn der_of(pem: &str) -> Result<Vec<u8>> {
    let body: String = pem.lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(body).context("it is no PEM")
}

/// A certificate as PEM.
#[must_use]
pub fn pem(der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let (mut rest, mut text) = (body.as_str(), "-----BEGIN CERTIFICATE-----\n".to_owned());
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.len().min(64));
        text.extend([line, "\n"]);
        rest = behind;
    }
    text + "-----END CERTIFICATE-----\n"
}

/// An authority that signs certificates of servers.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// A fresh one.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key).context("cannot make a certificate")?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    /// Its own certificate.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Listens with TLS and a certificate for `name`.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn listener(&self, inner: TcpListener, name: &str) -> Result<TlsListener> {
        let key = KeyPair::generate()?;
        let params = CertificateParams::new(vec![name.to_owned()])?;
        let made = params.signed_by(&key, &self.issuer).context("cannot make a certificate")?;
        listener(inner, made.der().clone(), &key)
    }
}

fn listener(inner: TcpListener, certificate: CertificateDer<'static>, key: &KeyPair) -> Result<TlsListener> {
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok(TlsListener { inner, acceptor: Arc::new(config).into() })
}

/// Accepts one handshake at a time, which is as much as a BMC can do.
pub struct TlsListener {
    inner: TcpListener,
    acceptor: TlsAcceptor,
}

impl std::fmt::Debug for TlsListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsListener").field("inner", &self.inner).finish_non_exhaustive()
    }
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
