//! Network namespaces, bridges, taps and cables, made by `ip` and removed on drop.

use std::fs::File;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use nix::sched::{CloneFlags, setns};

/// A network namespace of our own. Removed on drop; the kernel keeps it until its last process ends.
#[derive(Debug)]
pub struct Netns {
    name: String,
}

impl Netns {
    /// Makes a namespace with this name (`ip netns`) and its loopback up.
    ///
    /// # Errors
    /// When we are not root, `ip` is missing, or the name is taken.
    pub fn create(name: &str) -> Result<Self> {
        ip(&["netns", "add", name]).context("a network namespace needs root")?;
        let netns = Self { name: name.to_owned() };
        netns.run(|| ip(&["link", "set", "lo", "up"]))?;
        Ok(netns)
    }

    /// Its name, for `ip netns exec NAME …`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` with these words in the namespace, such as `route add local 10.64.0.0/10 dev lo`.
    ///
    /// # Errors
    /// When `ip` fails; its own words are in the error.
    pub fn ip(&self, words: &[&str]) -> Result<()> {
        ip(&[&["-n", self.name()], words].concat())
    }

    /// Runs `work` on a thread inside the namespace. Threads and processes started from there are inside
    /// too, so an async runtime has to be built by `work` itself.
    ///
    /// # Errors
    /// When the namespace cannot be entered, `work` fails, or `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let path = format!("/run/netns/{}", self.name);
        let inside = File::open(&path).with_context(|| format!("cannot open {path}"))?;
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(&inside, CloneFlags::CLONE_NEWNET)
                    .with_context(|| format!("cannot enter the network namespace {}", self.name))?;
                work()
            });
            thread.join().unwrap_or_else(|panic| {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied());
                Err(anyhow!("panicked in {}: {}", self.name, text.unwrap_or("(no message)")))
            })
        })
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if let Err(error) = ip(&["netns", "delete", &self.name]) {
            tracing::warn!(%error, name = self.name, "network namespace not removed");
        }
    }
}

/// One end of a [`Cable`].
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// Where it is.
    pub netns: &'a Netns,
    /// Name of its interface, at most 15 characters.
    pub interface: &'a str,
    /// Its address with the length of its network, such as `10.99.1.2/24`.
    pub address: &'a str,
}

/// A cable between two namespaces, which can be cut. It goes away with either of them.
#[derive(Debug)]
pub struct Cable {
    ends: [CableEnd; 2],
}

/// What an end sees of the other one.
#[derive(Debug)]
struct CableEnd {
    netns: String,
    interface: String,
    /// Address of the other end.
    peer: String,
}

/// A MAC address that no interface has.
const UNUSED_MAC: &str = "02:00:00:00:00:00";

impl Cable {
    /// Connects two namespaces.
    ///
    /// # Errors
    /// When `ip` fails, for example because an interface has the name.
    pub fn plug(one: End<'_>, other: End<'_>) -> Result<Self> {
        let (a, b) = (one.interface, other.interface);
        one.netns.ip(&["link", "add", a, "type", "veth", "peer", "name", b, "netns", other.netns.name()])?;
        for End { netns, interface, address } in [one, other] {
            netns.ip(&["address", "add", address, "dev", interface])?;
            netns.ip(&["link", "set", "dev", interface, "up"])?;
        }
        let seen = |end: End<'_>, peer: End<'_>| CableEnd {
            netns: end.netns.name().to_owned(),
            interface: end.interface.to_owned(),
            peer: peer.address.split('/').next().unwrap_or_default().to_owned(),
        };
        Ok(Self { ends: [seen(one, other), seen(other, one)] })
    }

    /// From here on all that either end sends is lost: it goes to a MAC address that no interface has. Neither end gets an error, and TCP
    /// counts its probes as lost in the network. (What the end's own queue drops, it takes for congestion of this machine: it
    /// sends probes without limit, and an idle connection never ends.)
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn cut(&self) -> Result<()> {
        self.each(|end| {
            ip(&[
                "-n",
                &end.netns,
                "neigh",
                "replace",
                &end.peer,
                "lladdr",
                UNUSED_MAC,
                "nud",
                "permanent",
                "dev",
                &end.interface,
            ])
        })
    }

    /// Undoes [`Cable::cut`].
    ///
    /// # Errors
    /// When `ip` fails, for example because it is not cut.
    pub fn join(&self) -> Result<()> {
        self.each(|end| ip(&["-n", &end.netns, "neigh", "delete", &end.peer, "dev", &end.interface]))
    }

    fn each(&self, does: impl Fn(&CableEnd) -> Result<()>) -> Result<()> {
        self.ends.iter().try_for_each(does)
    }
}

/// A bridge in the current namespace. It goes away with the namespace.
#[derive(Debug, Clone)]
pub struct Bridge {
    name: String,
}

impl Bridge {
    /// Makes a bridge that forwards at once (no spanning tree) and has `address`, such as
    /// `172.22.0.1/24`.
    ///
    /// # Errors
    /// When `ip` fails; its own words are in the error.
    pub fn create(name: &str, address: &str) -> Result<Self> {
        ip(&["link", "add", name, "type", "bridge", "stp_state", "0", "forward_delay", "0"])?;
        ip(&["address", "add", address, "dev", name])?;
        ip(&["link", "set", name, "up"])?;
        Ok(Self { name: name.to_owned() })
    }

    /// The bridge of this name, which is there.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned() }
    }

    /// Makes a bridge that has no address.
    ///
    /// # Errors
    /// As [`Bridge::create`].
    pub fn plain(name: &str) -> Result<Self> {
        ip(&["link", "add", name, "type", "bridge", "stp_state", "0", "forward_delay", "0"])?;
        ip(&["link", "set", name, "up"])?;
        Ok(Self { name: name.to_owned() })
    }

    /// Connects the bridge with another namespace, where the other end is an interface of this name with `address`.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn connect(&self, to: &Netns, name: &str, address: &str) -> Result<()> {
        let own = format!("{name}-b");
        ip(&["link", "add", &own, "type", "veth", "peer", "name", name, "netns", to.name()])?;
        ip(&["link", "set", &own, "master", &self.name, "up"])?;
        to.run(|| {
            ip(&["address", "add", address, "dev", name])?;
            ip(&["link", "set", name, "up"])
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the bridge another address, such as `172.22.0.66/24`.
    ///
    /// # Errors
    /// When `ip` fails, for example because the bridge has it.
    pub fn add_address(&self, address: &str) -> Result<()> {
        ip(&["address", "add", address, "dev", &self.name])
    }

    /// Gives the bridge another address of IPv6, which can be used at once: no other host is asked whether it has it.
    ///
    /// # Errors
    /// As [`Bridge::add_address`].
    pub fn add_address_at_once(&self, address: &str) -> Result<()> {
        ip(&["address", "add", address, "dev", &self.name, "nodad"])
    }

    /// Makes a tap on the bridge for a machine's NIC.
    ///
    /// # Errors
    /// When `ip` fails, for example because the name is taken.
    pub fn tap(&self, name: &str) -> Result<()> {
        ip(&["tuntap", "add", name, "mode", "tap"])?;
        ip(&["link", "set", name, "master", &self.name, "up"])
    }
}

/// Routes what is for a network through a router.
///
/// # Errors
/// When `ip` fails.
pub fn route(network: &str, router: &str) -> Result<()> {
    ip(&["route", "add", network, "via", router])
}

/// Lets the current namespace forward packets of IPv4.
///
/// # Errors
/// When it may not.
pub fn forward() -> Result<()> {
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("cannot switch forwarding on")
}

/// The same of IPv6.
///
/// # Errors
/// As [`forward`].
pub fn forward_ipv6() -> Result<()> {
    std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").context("cannot switch forwarding on")
}

/// Local ports of the current namespace's UDP sockets.
///
/// # Errors
/// When they cannot be read.
pub fn udp_ports() -> Result<Vec<u16>> {
    let mut ports = Vec::new();
    for file in ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"] {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        // sl local_address rem_address …: 12: 0100007F:0035 00000000:0000 …
        let local = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
        ports.extend(local.filter_map(|at| u16::from_str_radix(at.rsplit(':').next()?, 16).ok()));
    }
    Ok(ports)
}

/// The MAC address that the current namespace knows for an IPv4 address, lower case with colons.
///
/// # Errors
/// When `ip` fails.
pub fn mac_of(address: &str) -> Result<Option<String>> {
    let out = Command::new("ip").args(["-4", "neighbour", "show", address]).output();
    let out = out.context("cannot start ip (iproute2)")?;
    let text = String::from_utf8_lossy(&out.stdout);
    // 172.22.0.100 dev br0 lladdr 52:54:00:00:00:01 REACHABLE
    let mut words = text.split_whitespace().skip_while(|word| *word != "lladdr").skip(1);
    Ok(words.next().map(str::to_owned))
}

/// Runs `ip` with these words.
fn ip(words: &[&str]) -> Result<()> {
    run("ip", words)
}

fn run(program: &str, words: &[&str]) -> Result<()> {
    let out = Command::new(program).args(words).output();
    let out = out.with_context(|| format!("cannot start {program} (iproute2)"))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        bail!("{program} {}: {}", words.join(" "), said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{setsockopt, sockopt};
    use std::io::{ErrorKind, Read};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    #[ignore = "root: cargo xtask test"]
    fn a_namespace_is_separate_and_removed() {
        let name = format!("an-lab-net-{}", std::process::id());
        let netns = Netns::create(&name).unwrap();
        netns
            .run(|| {
                let bridge = Bridge::create("br0", "172.22.0.1/24")?;
                bridge.tap("tap0")?;
                let error = bridge.tap("tap0").unwrap_err();
                assert!(error.to_string().contains("tap0"), "{error}");
                Ok(())
            })
            .unwrap();
        let outside = Command::new("ip").args(["link", "show", "tap0"]).output().unwrap();
        assert!(!outside.status.success(), "the tap leaked out of the namespace");
        let panicked = netns.run(|| -> Result<()> { panic!("with a reason") }).unwrap_err();
        assert!(panicked.to_string().contains("with a reason"), "{panicked}");
        drop(netns);
        assert!(!std::path::Path::new("/run/netns").join(&name).exists());
    }

    #[test]
    #[ignore = "root: cargo xtask test"]
    fn a_cable_that_is_cut_drops_what_either_end_sends_without_an_error() {
        let name = |end: &str| format!("an-lab-{end}-{}", std::process::id());
        let (near, far) = (Netns::create(&name("near")).unwrap(), Netns::create(&name("far")).unwrap());
        let end = |netns, interface, address| End { netns, interface, address };
        let cable =
            Cable::plug(end(&near, "to-far", "10.99.1.1/24"), end(&far, "up", "10.99.1.2/24")).unwrap();
        let listener = far.run(|| Ok(TcpListener::bind("10.99.1.2:0")?)).unwrap();
        let address = listener.local_addr().unwrap();
        let limit = Duration::from_millis(500);
        let connect = || near.run(|| Ok(TcpStream::connect_timeout(&address, limit)?));
        let mut kept = connect().unwrap();
        setsockopt(&kept, sockopt::KeepAlive, &true).unwrap();
        setsockopt(&kept, sockopt::TcpKeepIdle, &1).unwrap();
        setsockopt(&kept, sockopt::TcpKeepInterval, &1).unwrap();
        setsockopt(&kept, sockopt::TcpKeepCount, &1).unwrap();
        kept.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        cable.cut().unwrap();
        let error = connect().unwrap_err();
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        assert_eq!(kind, Some(ErrorKind::TimedOut), "{error:#}");
        // A probe of TCP that was sent and not answered ends the connection.
        assert_eq!(kept.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
        cable.join().unwrap();
        connect().unwrap();
    }
}
