//! The socket of a server: TCP, or a Unix socket of this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A socket that accepts connections.
pub enum Listener {
    /// An address and a port.
    Tcp(TcpListener),
    /// A path of this machine.
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// The user id of the process at the other end of a Unix socket, among the request's extensions. The kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalUser(pub u32);

/// A connection.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// The next connection, the address it is counted under, and its user if the kernel reports one.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, IpAddr, Option<LocalUser>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((Stream::Tcp(stream), address.ip(), None))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = LocalUser(stream.peer_cred()?.uid());
                Ok((Stream::Unix(stream), IpAddr::V4(Ipv4Addr::LOCALHOST), Some(user)))
            }
        }
    }
}
