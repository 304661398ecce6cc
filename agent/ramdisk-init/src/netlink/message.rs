//! A request of rtnetlink, and what the kernel answers.

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::os::fd::AsRawFd;

const NLMSG_ERROR: u16 = 2;

/// A request: `struct nlmsghdr` (length, type, flags, sequence, port), header, attributes.
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(header);
        Self(bytes).sealed()
    }

    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        append(&mut self.0, kind, value);
        self.sealed()
    }

    /// An attribute that is made of attributes.
    pub(super) fn nested(self, kind: u16, inside: &Attributes) -> Self {
        self.attribute(kind, &inside.0)
    }

    fn sealed(mut self) -> Self {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What is inside a nested attribute.
#[derive(Default)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        append(&mut self.0, kind, value);
        self
    }

    pub(super) fn nested(self, kind: u16, inside: &Attributes) -> Self {
        self.attribute(kind, &inside.0)
    }
}

/// `struct rtattr`: length, type, value, zeros to a multiple of four.
fn append(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Send a request, and wait for its acknowledgement.
pub(super) fn ask(message: &Message) -> nix::Result<()> {
    let socket =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    sendto(socket.as_raw_fd(), &message.0, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = [0; 4096];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    acknowledged(&answer[..length])
}

/// `struct nlmsgerr`: an error number, negative; 0 is the acknowledgement.
pub(super) fn acknowledged(answer: &[u8]) -> nix::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let error = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, error) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(Errno::from_raw(error.saturating_neg())),
        _ => Err(Errno::EBADMSG),
    }
}
