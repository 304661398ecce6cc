//! Listening for neighbours.

use super::frame::{Tlv, tlvs};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{LinkAddr, recvfrom};
use ramdisk_init::netlink;
use rustix::net::{AddressFamily, SocketFlags, SocketType, eth, socket_with};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// A link that was down has so long to come up; one that is still down then is not waited for.
const LINK_TIME: Duration = Duration::from_secs(8);
/// Interval between checks whether every interface has heard its neighbour.
const LOOK: Duration = Duration::from_millis(500);
/// A frame of the largest ordinary Ethernet.
const FRAME: usize = 9216;

/// How to listen.
#[derive(Debug, Clone, Copy)]
pub struct Listening {
    /// At most so long; less when all have been heard.
    pub time: Duration,
    /// Bring interfaces up that are down.
    pub bring_up: bool,
}

/// An interface, and the TLVs of the first LLDP frame that it received.
struct Listener {
    name: String,
    heard: Option<Vec<Tlv>>,
}

/// What was heard on each of these interfaces; an empty list for an interface without a neighbour.
///
/// # Errors
/// When there is no socket for it, which takes CAP_NET_RAW.
pub fn listen(interfaces: &[String], listening: Listening) -> io::Result<BTreeMap<String, Vec<Tlv>>> {
    // Of one protocol and of no interface in particular: frames of all of them come, each with where from.
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, Some(eth::LLDP))?;
    let mut listeners: BTreeMap<u32, Listener> =
        interfaces.iter().map(String::as_str).filter_map(listener).collect();
    let _open: Vec<Open> =
        listeners.iter().filter_map(|(index, listener)| open(*index, listener, listening.bring_up)).collect();
    let began = Instant::now();
    while began.elapsed() < listening.time
        && listeners.values().any(|listener| waited_for(listener, began.elapsed()))
    {
        let left = listening.time.saturating_sub(began.elapsed()).min(LOOK);
        if !readable(&socket, left)? {
            continue;
        }
        let mut frame = [0; FRAME];
        let (length, from) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut frame)?;
        let index = from.and_then(|from| u32::try_from(from.ifindex()).ok());
        if let Some(listener) = index.and_then(|index| listeners.get_mut(&index))
            && let Some(tlvs) = frame.get(..length).and_then(tlvs)
        {
            listener.heard.get_or_insert(tlvs);
        }
    }
    Ok(listeners.into_values().map(|listener| (listener.name, listener.heard.unwrap_or_default())).collect())
}

fn listener(name: &str) -> Option<(u32, Listener)> {
    let index = read(name, "ifindex")?.parse().ok()?;
    Some((index, Listener { name: name.to_owned(), heard: None }))
}

fn waited_for(listener: &Listener, elapsed: Duration) -> bool {
    listener.heard.is_none()
        && (elapsed < LINK_TIME || read(&listener.name, "carrier").as_deref() == Some("1"))
}

fn read(name: &str, file: &str) -> Option<String> {
    let text = fs::read_to_string(Path::new("/sys/class/net").join(name).join(file)).ok()?;
    Some(text.trim().to_owned())
}

fn readable(socket: &OwnedFd, time: Duration) -> io::Result<bool> {
    let mut sockets = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
    match poll(&mut sockets, time) {
        Ok(count) => Ok(count > 0),
        Err(nix::errno::Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// An interface that accepts all multicast until this is dropped: its hardware filter would drop frames addressed to
/// bridges.
struct Open(u32);

impl Drop for Open {
    fn drop(&mut self) {
        if let Err(error) = netlink::all_multicast(self.0, false) {
            tracing::warn!(index = self.0, %error, "an interface still accepts all multicast");
        }
    }
}

fn open(index: u32, listener: &Listener, bring_up: bool) -> Option<Open> {
    let up = if bring_up { netlink::link_up(index) } else { Ok(()) };
    match up.and_then(|()| netlink::all_multicast(index, true)) {
        Ok(()) => Some(Open(index)),
        Err(error) => {
            tracing::warn!(interface = listener.name, %error, "cannot be opened for LLDP");
            None
        }
    }
}
