//! What the kernel says about devices that come (netlink, NETLINK_KOBJECT_UEVENT).

use super::modules::Loader;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, setsockopt, socket,
    sockopt,
};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel's multicast group (2 is udev's).
const KERNEL_GROUP: u32 = 1;
const MESSAGE_BYTES: usize = 8192;
/// A storm of events while drivers load must fit.
const SOCKET_BYTES: usize = 4 << 20;

/// Events seen so far; [`super::storage`] waits until it stands still.
pub static SEEN: AtomicU64 = AtomicU64::new(0);

/// Load modules for devices that appear from now on, on a thread of its own that never ends.
pub fn watch(loader: Arc<Loader>) {
    let socket = match open() {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "no uevents: devices that appear late get no driver");
            return;
        }
    };
    std::thread::spawn(move || {
        let mut message = [0; MESSAGE_BYTES];
        loop {
            match recv(socket.as_raw_fd(), &mut message, MsgFlags::empty()) {
                Ok(length) => {
                    SEEN.fetch_add(1, Ordering::Relaxed);
                    if let Some(modalias) = modalias(&message[..length]) {
                        loader.load(modalias);
                    }
                }
                // ENOBUFS: some were lost. Look at everything.
                Err(error) => {
                    tracing::debug!(%error, "uevents");
                    loader.load_all();
                }
            }
        }
    });
}

fn open() -> nix::Result<OwnedFd> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkKObjectUEvent,
    )?;
    setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BYTES)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, KERNEL_GROUP))?;
    Ok(socket)
}

/// `add@/devices/…`, then `KEY=value`, each ended by a zero byte.
fn modalias(message: &[u8]) -> Option<&str> {
    let mut fields =
        message.split(|&byte| byte == 0).map(|field| std::str::from_utf8(field).unwrap_or_default());
    fields.next().filter(|head| head.starts_with("add@"))?;
    fields.find_map(|field| field.strip_prefix("MODALIAS=")).filter(|modalias| !modalias.is_empty())
}

#[cfg(test)]
mod tests {
    use super::modalias;

    #[test]
    fn only_devices_that_come_are_heard() {
        let message = |action: &str| {
            format!(
                "{action}@/devices/pci0000:00/0000:00:04.0\0ACTION={action}\0MODALIAS=pci:v1d2\0SEQNUM=7\0"
            )
        };
        assert_eq!(modalias(message("add").as_bytes()), Some("pci:v1d2"));
        assert_eq!(modalias(message("remove").as_bytes()), None);
        assert_eq!(modalias(b""), None);
        assert_eq!(modalias(b"\xff\0\xfe"), None);
    }
}
