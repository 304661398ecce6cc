//! Ports of a switch that carry one VLAN tagged: between the NICs of an emulated server and a bridge whose kernel needs to know
//! nothing of VLANs.
//!
//! ```text
//!  NICs of the server ── UDP ── tags off, tags on ── UDP ── QEMU without a machine ── tap ── bridge
//! ```

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use tokio::net::UdpSocket;
use tokio_util::task::AbortOnDropHandle;

use crate::process::{Daemon, leashed};

/// What stands in a frame before the number of its VLAN (IEEE 802.1Q).
const TAGGED: [u8; 2] = [0x81, 0x00];
/// Destination and sender.
const ADDRESSES: usize = 12;
/// The number of the VLAN in what follows [`TAGGED`].
const NUMBER: u16 = 0x0fff;
/// Larger than any frame.
const FRAME: usize = 16 * 1024;
/// Port of the bridge's side of QEMU, and the first ones of the NICs.
const BRIDGE_PORT: u16 = 21_000;
/// As much behind them, our ports.
const OUR_PORTS: u16 = 1_000;

/// A NIC of a server at such a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrunkNic {
    /// Its MAC address.
    pub mac: String,
    /// Where QEMU receives its frames, on loopback.
    pub port: u16,
}

impl TrunkNic {
    /// The NICs of the one server of a network namespace.
    #[must_use]
    pub fn all(macs: &[&str]) -> Vec<Self> {
        let ports = BRIDGE_PORT + 1..;
        macs.iter().zip(ports).map(|(mac, port)| Self { mac: (*mac).to_owned(), port }).collect()
    }

    /// QEMU's description of the cable.
    #[must_use]
    pub fn netdev(&self, id: &str) -> String {
        cable(id, self.port)
    }
}

/// The ports of one server. They end when this is dropped.
#[derive(Debug)]
pub struct Trunk {
    frames: Arc<[AtomicU64]>,
    _tasks: Vec<AbortOnDropHandle<()>>,
    _bridge: Daemon,
}

impl Trunk {
    /// Connects these NICs with a tap, which is on a bridge. Frames that leave a NIC without the tag of `vlan` are dropped. What
    /// is for the server goes to the NIC that was heard last, and to all before one was heard.
    ///
    /// # Errors
    /// When a port is taken or QEMU does not start.
    pub async fn start(dir: &Path, tap: &str, vlan: u16, nics: &[TrunkNic]) -> Result<Self> {
        let bridge = Arc::new(connected(BRIDGE_PORT).await?);
        let mut sockets = Vec::new();
        for nic in nics {
            sockets.push(Arc::new(connected(nic.port).await?));
        }
        let frames: Arc<[AtomicU64]> = nics.iter().map(|_| AtomicU64::new(0)).collect();
        let heard = Arc::new(AtomicUsize::new(usize::MAX));
        let mut tasks = Vec::new();
        for (at, socket) in sockets.iter().cloned().enumerate() {
            let (frames, heard, bridge) = (frames.clone(), heard.clone(), bridge.clone());
            tasks.push(forward(socket, move |frame| {
                let plain = untagged(frame, vlan)?;
                frames[at].fetch_add(1, Ordering::Relaxed);
                heard.store(at, Ordering::Relaxed);
                Some((plain, vec![bridge.clone()]))
            }));
        }
        tasks.push(forward(bridge, move |frame| {
            let to = sockets.get(heard.load(Ordering::Relaxed));
            let to = to.map_or_else(|| sockets.clone(), |one| vec![one.clone()]);
            Some((tagged(frame, vlan)?, to))
        }));
        let mut command = leashed("qemu-system-x86_64");
        command.args(["-machine", "none", "-nodefaults", "-no-user-config", "-display", "none"]);
        command.args(["-netdev", &format!("tap,id=tap,ifname={tap},script=no,downscript=no")]);
        command.args(["-netdev", &cable("trunk", BRIDGE_PORT)]);
        for netdev in ["tap", "trunk"] {
            command.args(["-netdev", &format!("hubport,id=hub-{netdev},hubid=0,netdev={netdev}")]);
        }
        let log = dir.join("trunk.log");
        let bridge = Daemon::start("QEMU of the trunk", command, &log)?;
        Ok(Self { frames, _tasks: tasks, _bridge: bridge })
    }

    /// Frames with the tag that each NIC has sent.
    #[must_use]
    pub fn frames(&self) -> Vec<u64> {
        self.frames.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

fn cable(id: &str, port: u16) -> String {
    format!("socket,id={id},udp=127.0.0.1:{},localaddr=127.0.0.1:{port}", port + OUR_PORTS)
}

/// Our end of the cable to this port.
async fn connected(port: u16) -> Result<UdpSocket> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let socket = UdpSocket::bind(at(port + OUR_PORTS)).await.with_context(|| format!("UDP port {port}"))?;
    socket.connect(at(port)).await?;
    Ok(socket)
}

/// Sends on what `pass` makes of each frame, for as long as this lives.
fn forward(
    from: Arc<UdpSocket>,
    pass: impl Fn(&[u8]) -> Option<(Vec<u8>, Vec<Arc<UdpSocket>>)> + Send + 'static,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut frame = vec![0; FRAME];
        loop {
            // There is no other end while the machine is off.
            let Ok(length) = from.recv(&mut frame).await else { continue };
            let Some((passed, to)) = pass(&frame[..length]) else { continue };
            for socket in to {
                let _ = socket.send(&passed).await;
            }
        }
    }))
}

/// A frame without its tag, if that is the tag of this VLAN.
fn untagged(frame: &[u8], vlan: u16) -> Option<Vec<u8>> {
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    let rest = rest.strip_prefix(&TAGGED)?;
    let (tag, rest) = rest.split_first_chunk()?;
    (u16::from_be_bytes(*tag) & NUMBER == vlan).then(|| [addresses, rest].concat())
}

/// A frame with the tag of this VLAN.
fn tagged(frame: &[u8], vlan: u16) -> Option<Vec<u8>> {
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    Some([addresses, &TAGGED, &vlan.to_be_bytes(), rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_put_on_and_taken_off() {
        let plain: Vec<u8> = (0..60).collect();
        let with = tagged(&plain, 7).unwrap();
        assert_eq!(with[12..16], [0x81, 0, 0, 7]);
        assert_eq!(untagged(&with, 7), Some(plain.clone()));
        assert_eq!(untagged(&with, 8), None);
        assert_eq!(untagged(&plain, 7), None);
        assert_eq!(untagged(&with[..15], 7), None);
        assert_eq!(tagged(&plain[..11], 7), None);
        // The priority is no part of the number.
        let mut urgent = with;
        urgent[14] |= 0xe0;
        assert_eq!(untagged(&urgent, 7), Some(plain));
    }
}
