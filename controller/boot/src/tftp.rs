//! TFTP, read-only, for the loaders only (RFC 1350; blksize, tsize, timeout, windowsize of RFC 2348,
//! 2349, 7440 by async-tftp).
//!
//! Nothing about a request can be trusted, not even its sender: a transfer costs a socket and waits for acknowledgements that
//! may never come. Their number is limited, and a loader is read from the disk once.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use async_tftp::packet;
use async_tftp::server::{Handler, TftpServer, TftpServerBuilder};
use futures_util::io::{AsyncRead, Cursor, Sink};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{BootError, loaders};

/// Most transfers at once; a request above that is refused, and firmware asks again.
const TRANSFERS: usize = 64;
/// Most bytes in a block: a packet has at most 1500 with its headers, since firmware does not reassemble.
const BLOCK: u16 = 1500 - 20 - 8 - 4;
const BLOCK_IPV6: u16 = BLOCK - 20;
/// Largest loader, in bytes.
const LARGEST: u64 = 16 << 20;

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
        let server = TftpServerBuilder::with_handler(Loaders::of(config.loader_dir))
            .bind(config.listen)
            .timeout(Duration::from_secs(1))
            .max_send_retries(8)
            .block_size_limit(if config.listen.is_ipv6() { BLOCK_IPV6 } else { BLOCK })
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
    /// Each file that was served, as it was at that time.
    cache: HashMap<PathBuf, (SystemTime, Arc<[u8]>)>,
    transfers: Arc<Semaphore>,
}

impl Loaders {
    fn of(dir: PathBuf) -> Self {
        Self { dir, cache: HashMap::new(), transfers: Arc::new(Semaphore::new(TRANSFERS)) }
    }

    /// The bytes of a loader, read again when the file has changed.
    async fn bytes(&mut self, file: &Path) -> io::Result<Arc<[u8]>> {
        let metadata = tokio::fs::metadata(file).await?;
        let changed = metadata.modified()?;
        if let Some((at, bytes)) = self.cache.get(file)
            && *at == changed
        {
            return Ok(bytes.clone());
        }
        if metadata.len() > LARGEST {
            return Err(io::Error::other(format!("has {} bytes, more than {LARGEST}", metadata.len())));
        }
        let bytes: Arc<[u8]> = tokio::fs::read(file).await?.into();
        self.cache.insert(file.to_owned(), (changed, bytes.clone()));
        Ok(bytes)
    }
}

/// A loader on its way to a client; holds a place among the transfers until it is dropped.
struct Transfer {
    bytes: Cursor<Arc<[u8]>>,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Transfer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_read(context, buffer)
    }
}

impl Handler for Loaders {
    // The files are small (below 1.2 MB); read whole, an upgrade of the package cannot tear a transfer.
    type Reader = Transfer;
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
        let Ok(place) = self.transfers.clone().try_acquire_owned() else {
            tracing::debug!(%client, "tftp: refused, since {TRANSFERS} transfers are in progress");
            return Err(packet::Error::Msg("busy".to_owned()));
        };
        let bytes = self.bytes(&file).await.map_err(|error| {
            tracing::error!(%client, file = %file.display(), %error, "tftp: cannot read a loader");
            packet::Error::Msg(format!("cannot read {name}"))
        })?;
        tracing::info!(%client, file = %file.display(), bytes = bytes.len(), "tftp: first byte served");
        let size = bytes.len() as u64;
        Ok((Transfer { bytes: Cursor::new(bytes), _place: place }, Some(size)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::AsyncReadExt;

    fn client(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[tokio::test]
    async fn transfers_are_limited_and_give_their_places_back() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("snponly.efi"), "loader").unwrap();
        let mut loaders = Loaders::of(dir.path().to_owned());
        let mut open = Vec::new();
        for port in 0..64 {
            open.push(loaders.read_req_open(&client(port), Path::new("snponly.efi")).await.unwrap().0);
        }
        let refused = loaders.read_req_open(&client(64), Path::new("snponly.efi")).await;
        assert!(matches!(refused, Err(packet::Error::Msg(text)) if text == "busy"));
        // What is not served takes no place.
        let unknown = loaders.read_req_open(&client(65), Path::new("passwd")).await;
        assert!(matches!(unknown, Err(packet::Error::FileNotFound)));
        open.pop();
        let (mut served, size) = loaders.read_req_open(&client(66), Path::new("snponly.efi")).await.unwrap();
        let mut text = String::new();
        served.read_to_string(&mut text).await.unwrap();
        assert_eq!((text.as_str(), size), ("loader", Some(6)));
    }

    #[tokio::test]
    async fn a_loader_is_read_again_only_when_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("snponly.efi");
        std::fs::write(&file, "old").unwrap();
        let mut loaders = Loaders::of(dir.path().to_owned());
        let first = loaders.bytes(&file).await.unwrap();
        assert!(Arc::ptr_eq(&first, &loaders.bytes(&file).await.unwrap()));
        std::fs::write(&file, "new").unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(&*loaders.bytes(&file).await.unwrap(), b"new");
        std::fs::File::create(&file).unwrap().set_len(LARGEST + 1).unwrap();
        assert!(loaders.bytes(&file).await.unwrap_err().to_string().contains("more than"));
    }
}
