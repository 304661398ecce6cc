//! `/etc/resolv.conf`: the name servers of the leases, or else those of the kernel command line. The C library of the
//! static agent reads this file, and looks at it again before each question.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

/// As many as the C library asks (`MAXNS`).
pub const NAME_SERVERS: usize = 3;
/// With three silent servers an answer is given up after 12 s.
const OPTIONS: &str = "options timeout:2 attempts:2\n";
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// What a lease, or the network of a boot medium, may name.
pub type NameServers<A = IpAddr> = [Option<A>; NAME_SERVERS];

/// Keeps the file as the leases of all interfaces are.
#[derive(Debug)]
pub struct Resolver {
    file: PathBuf,
    fallback: Vec<IpAddr>,
    /// By the index of the interface; 0: those of the boot medium.
    leases: Mutex<BTreeMap<u32, NameServers>>,
}

impl Resolver {
    /// `fallback`: for as long as no lease names a server.
    pub fn new(fallback: &[IpAddr]) -> Self {
        Self::writing(RESOLV_CONF.into(), fallback)
    }

    fn writing(file: PathBuf, fallback: &[IpAddr]) -> Self {
        Self { file, fallback: fallback.to_vec(), leases: Mutex::default() }
    }

    /// The lease of an interface is this one now.
    pub fn leased(&self, interface: u32, servers: NameServers) {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        leases.insert(interface, servers);
        let text = text(leases.values(), &self.fallback);
        // Under the lock, so that the file is that of the newest lease.
        match replace(&self.file, &text) {
            Ok(()) => tracing::info!(text, "name servers"),
            Err(error) => {
                tracing::error!(%error, "{} not written: no name can be resolved", self.file.display())
            }
        }
    }
}

/// The file's content. Pure.
fn text<'a>(leases: impl Iterator<Item = &'a NameServers>, fallback: &[IpAddr]) -> String {
    let mut servers: Vec<IpAddr> = Vec::new();
    for server in leases.flatten().flatten() {
        if !servers.contains(server) {
            servers.push(*server);
        }
    }
    if servers.is_empty() {
        servers.extend(fallback);
    }
    let mut text = String::new();
    for server in servers.iter().take(NAME_SERVERS) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "nameserver {server}");
    }
    text + OPTIONS
}

/// Whole or not at all: the file is read at any moment.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(&new, text)?;
    fs::rename(&new, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
    const C: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 4));
    const D: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5));

    #[test]
    fn leases_come_before_the_command_line() {
        let with = |leases: &[NameServers], fallback: &[IpAddr]| {
            let text = text(leases.iter(), fallback);
            let servers = text.strip_suffix(OPTIONS).expect("options");
            servers.replace("nameserver ", "").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let lease = |servers: &[IpAddr]| std::array::from_fn(|at| servers.get(at).copied());
        assert_eq!(with(&[], &[A]), ["10.0.0.2"]);
        assert_eq!(with(&[lease(&[B])], &[A]), ["10.0.0.3"]);
        assert_eq!(
            with(&[lease(&[]), lease(&[B, C]), lease(&[C, A])], &[]),
            ["10.0.0.3", "10.0.0.4", "10.0.0.2"]
        );
        assert_eq!(with(&[lease(&[A, B]), lease(&[C, D])], &[]).len(), 3);
        assert_eq!(with(&[lease(&[D])], &[A]), ["2001:db8::5"]);
        assert!(with(&[lease(&[])], &[]).is_empty());
    }

    #[test]
    fn the_file_follows_the_leases() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("etc/resolv.conf");
        let resolver = Resolver::writing(file.clone(), &[C]);
        let read = || fs::read_to_string(&file).expect("written");
        resolver.leased(2, [None; 3]);
        assert_eq!(read(), "nameserver 10.0.0.4\noptions timeout:2 attempts:2\n");
        resolver.leased(2, [Some(A), None, None]);
        resolver.leased(3, [Some(B), None, None]);
        assert_eq!(read(), "nameserver 10.0.0.2\nnameserver 10.0.0.3\noptions timeout:2 attempts:2\n");
        resolver.leased(2, [None; 3]);
        assert_eq!(read(), "nameserver 10.0.0.3\noptions timeout:2 attempts:2\n");
        assert_eq!(fs::read_dir(dir.path().join("etc")).expect("there").count(), 1);
    }
}
