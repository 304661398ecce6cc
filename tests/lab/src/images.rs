//! A web server with the images of a directory, on the nodes' network.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::{Path as Name, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::tls::Authority;

/// Serves files; stops when dropped.
#[derive(Debug)]
pub struct ImageServer {
    base: String,
    directory: Arc<PathBuf>,
    _server: AbortOnDropHandle<()>,
}

impl ImageServer {
    /// Serves what is in `directory`.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub async fn start(host: Ipv4Addr, directory: &Path) -> Result<Self> {
        let listener = Self::listen(host).await?;
        let base = format!("http://{}", listener.local_addr()?);
        Ok(Self::over(listener, base, directory))
    }

    /// By HTTPS, as the host `name`, with a certificate of this authority.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub async fn start_tls(
        host: Ipv4Addr,
        directory: &Path,
        name: &str,
        authority: &Authority,
    ) -> Result<Self> {
        let listener = Self::listen(host).await?;
        let base = format!("https://{name}:{}", listener.local_addr()?.port());
        Ok(Self::over(authority.listener(listener, name)?, base, directory))
    }

    async fn listen(host: Ipv4Addr) -> Result<TcpListener> {
        TcpListener::bind((host, 0)).await.context("the server of the images")
    }

    fn over<L>(listener: L, base: String, directory: &Path) -> Self
    where
        L: Listener<Addr = SocketAddr>,
    {
        let directory = Arc::new(directory.to_owned());
        let app = Router::new().route("/{name}", get(file)).with_state(directory.clone());
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!("the server of the images ended: {error}");
            }
        });
        Self { base, directory, _server: AbortOnDropHandle::new(server) }
    }

    /// URL of a file.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// SHA-256 digest of a file, by `sha256sum`.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn sha256(&self, name: &str) -> Result<String> {
        let output = Command::new("sha256sum").arg(self.directory.join(name)).output()?;
        ensure!(output.status.success(), "sha256sum: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        text.split_whitespace().next().map(str::to_owned).context("the output of sha256sum")
    }
}

/// The file, or from an offset on (`Range: bytes=N-`).
async fn file(
    State(directory): State<Arc<PathBuf>>,
    Name(name): Name<String>,
    headers: HeaderMap,
) -> Response {
    let Ok(bytes) = tokio::fs::read(directory.join(name)).await else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let from = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    match from.filter(|from| *from < bytes.len()) {
        None => bytes.into_response(),
        Some(from) => {
            let length = bytes.len();
            let content = format!("bytes {from}-{}/{length}", length - 1);
            (StatusCode::PARTIAL_CONTENT, [(header::CONTENT_RANGE, content)], bytes[from..].to_vec())
                .into_response()
        }
    }
}
