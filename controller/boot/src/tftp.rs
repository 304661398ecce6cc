//! TFTP, read-only, for the loaders only (RFC 1350; blksize, tsize, timeout, windowsize of RFC 2348,
//! 2349, 7440 by async-tftp).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_tftp::packet;
use async_tftp::server::{Handler, TftpServer, TftpServerBuilder};
use futures_util::io::{Cursor, Sink};
use tokio_util::sync::CancellationToken;

use crate::{BootError, loaders};

/// Where to listen, and what to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TftpConfig {
    /// Address and port (69). Answers leave from this address: with 0.0.0.0 on a host of several
    /// addresses a client may see another one and refuse it.
    pub listen: SocketAddr,
    /// Directory of the loaders; see [`loaders::NAMES`].
    pub loader_dir: PathBuf,
}

/// A server with its socket open.
pub struct Tftp {
    server: TftpServer<Loaders>,
    address: SocketAddr,
}

impl Tftp {
    /// Open the socket.
    ///
    /// # Errors
    /// The address is in use or not ours.
    pub async fn bind(config: TftpConfig) -> Result<Self, BootError> {
        let action = format!("listen on {}", config.listen);
        let error = |source: async_tftp::Error| BootError::Io {
            service: "tftp",
            action: action.clone(),
            source: std::io::Error::other(source),
        };
        let server = TftpServerBuilder::with_handler(Loaders { dir: config.loader_dir })
            .bind(config.listen)
            .timeout(Duration::from_secs(1))
            .max_send_retries(8)
            // A datagram of at most 1500 bytes with its headers: firmware does not reassemble.
            .block_size_limit(1468)
            .window_size_limit(16)
            .build()
            .await
            .map_err(error)?;
        let address = server.listen_addr().map_err(error)?;
        Ok(Self { server, address })
    }

    /// Where it listens, with the port the system chose for port 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serve until `shutdown`; transfers going on then are dropped.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), BootError> {
        tracing::info!(address = %self.address, "tftp: listening");
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            ended = self.server.serve() => ended.map_err(|source| BootError::Io {
                service: "tftp",
                action: format!("receive on {}", self.address),
                source: std::io::Error::other(source),
            }),
        }
    }
}

/// [`Tftp::bind`] and [`Tftp::run`].
///
/// # Errors
/// As those.
pub async fn serve(config: TftpConfig, shutdown: CancellationToken) -> Result<(), BootError> {
    Tftp::bind(config).await?.run(shutdown).await
}

struct Loaders {
    dir: PathBuf,
}

impl Handler for Loaders {
    // The files are small (below 1.2 MB); read whole, an upgrade of the package cannot tear a transfer.
    type Reader = Cursor<Vec<u8>>;
    type Writer = Sink;

    async fn read_req_open(
        &mut self,
        client: &SocketAddr,
        path: &Path,
    ) -> Result<(Self::Reader, Option<u64>), packet::Error> {
        let name = path.to_string_lossy();
        let Some(file) = loaders::file(&self.dir, &name) else {
            tracing::debug!(%client, name = %name.escape_debug(), "tftp: no such file");
            return Err(packet::Error::FileNotFound);
        };
        let bytes = std::fs::read(&file).map_err(|error| {
            tracing::error!(%client, file = %file.display(), %error, "tftp: cannot read a loader");
            packet::Error::Msg(format!("cannot read {name}"))
        })?;
        tracing::info!(%client, file = %file.display(), bytes = bytes.len(), "tftp: first byte served");
        let size = bytes.len() as u64;
        Ok((Cursor::new(bytes), Some(size)))
    }

    async fn write_req_open(
        &mut self,
        _client: &SocketAddr,
        _path: &Path,
        _size: Option<u64>,
    ) -> Result<Self::Writer, packet::Error> {
        Err(packet::Error::PermissionDenied)
    }
}
