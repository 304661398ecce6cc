//! The socket that the agent left open for this program.

use crate::protocol::FD;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::io::{self, Read, Write};

/// A socket by its number. It is open as long as the program is, so nothing owns it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor(i32);

impl Descriptor {
    /// The one that the agent opened.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn inherited() -> io::Result<Self> {
        match recv(FD, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) {
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(Self(FD)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Descriptor {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        recv(self.0, bytes, MsgFlags::empty()).map_err(Into::into)
    }
}

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Without a signal when the agent is gone.
        send(self.0, bytes, MsgFlags::MSG_NOSIGNAL).map_err(Into::into)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
