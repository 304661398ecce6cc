//! What is to be done to confine a program: pure, from what it is granted and what the host is.
//!
//! # Capabilities
//!
//! A program has none, but for devices that it may write:
//!
//! - `CAP_SYS_RAWIO`: SCSI and ATA commands beyond the kernel's list of harmless ones (sg, bsg, HBA nodes) need it.
//!   What else it opens has no node here (`/dev/mem`, MSRs, `/proc/kcore`) or is filtered (iopl, ioperm).
//! - `CAP_SYS_ADMIN`, only with an NVMe node: the kernel asks it for every NVMe admin command that matters. What else
//!   it opens is filtered (mount, namespaces, bpf, swap, quota, keyrings …). It lifts `RLIMIT_NPROC`, so a program
//!   with it is refused where no cgroup bounds its processes.

use crate::cgroup;
use crate::error::Error;
use crate::filter;
use crate::grants::{DeviceNode, Grants, NodeKind};
use crate::host::{Entry, EntryKind, Host};
use crate::op::Op;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `CAP_SYS_RAWIO` of linux/capability.h.
pub(crate) const CAP_SYS_RAWIO: u32 = 17;
/// `CAP_SYS_ADMIN` of linux/capability.h.
pub(crate) const CAP_SYS_ADMIN: u32 = 21;

/// Entries of `/scratch`; each costs the kernel about 1 KiB.
const SCRATCH_FILES: u32 = 16_384;
/// Names at the top of a root that are the sandbox's.
const OURS: [&str; 6] = ["dev", "fetched", "proc", "scratch", "sys", "tmp"];
/// Nodes that every program has: name, major and minor of character devices.
const NODES: [(&str, u32, u32); 5] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9)];

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Names its cgroup and its messages: letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// The directory that becomes its `/`.
    pub root: PathBuf,
    /// Absolute path in that root, and arguments. Not empty.
    pub argv: Vec<String>,
    /// Its environment, in addition to `PATH`, `HOME`, `TMPDIR` and `LANG`.
    pub environment: Vec<(String, String)>,
}

/// How the root is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootChange {
    /// pivot_root(2).
    Pivot,
    /// Move and chroot.
    Move,
}

/// Everything that the child does, in order, and what it then is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Done one by one as root of the host, in the new namespaces.
    pub operations: Vec<Op>,
    /// `CLONE_NEW*`.
    pub namespaces: u64,
    /// Resource and limit, setrlimit(2).
    pub limits: Vec<(u32, u64)>,
    /// Bit set of the capabilities it keeps.
    pub capabilities: u64,
    /// User and group it becomes.
    pub user: u32,
    /// Its cgroup, if there are any.
    pub cgroup: Option<cgroup::Wanted>,
    /// seccomp.
    pub filter: Vec<libc::sock_filter>,
    /// Program and arguments.
    pub argv: Vec<CString>,
    /// Environment.
    pub environment: Vec<CString>,
    /// What is not bounded as it should be, a sentence each.
    pub notes: Vec<String>,
}

/// Decide. `root` is absolute and without links; `entries` are what is in it.
///
/// # Errors
/// [`Error::Refused`] when a grant makes no sense or cannot be bounded on this host.
pub fn plan(
    program: &Program,
    grants: &Grants,
    root: &Path,
    entries: &[Entry],
    host: &Host,
) -> Result<Plan, Error> {
    let refused = |what: String| Err(Error::Refused(format!("{}: {what}", program.name)));
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if program.name.is_empty() || !program.name.chars().all(plain) || program.name.starts_with('.') {
        return Err(Error::Refused(format!(
            "{:?} cannot name a program: letters, digits, _, - and . only",
            program.name
        )));
    }
    if !program.argv.first().is_some_and(|entry| entry.starts_with('/')) {
        return refused("its first argument must be an absolute path in its root".into());
    }
    if grants.scratch_mib == 0 || grants.memory_mib == 0 || grants.pids == 0 {
        return refused("scratch, memory and pids must be at least 1".into());
    }
    if !root.is_absolute() || root == Path::new("/") {
        return refused("its root must be a directory of its own".into());
    }
    let capabilities = capabilities(&grants.devices);
    let cgroup = cgroup::wanted(&program.name, grants, host);
    let bounded = |controller: &str| cgroup.as_ref().is_some_and(|cgroup| cgroup.has(controller));
    if capabilities & (1 << CAP_SYS_ADMIN) != 0 && !bounded("pids") {
        return refused(
            "it is granted an NVMe device, which needs CAP_SYS_ADMIN, which lifts the limit of processes, and there \
             is no cgroup v2 with the pids controller to bound them"
                .into(),
        );
    }
    let mut namespaces = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    if !grants.network {
        namespaces |= libc::CLONE_NEWNET;
    }
    let change = if host.root_is_rootfs { RootChange::Move } else { RootChange::Pivot };
    Ok(Plan {
        operations: operations(grants, root, entries, host.user, change)?,
        namespaces: namespaces.unsigned_abs().into(),
        limits: limits(grants, bounded("memory")),
        capabilities,
        user: host.user,
        filter: filter::compile(grants.network),
        argv: program.argv.iter().map(|word| c(word.as_bytes())).collect::<Result<_, _>>()?,
        environment: environment(program)?,
        notes: ["memory", "pids", "cpu"]
            .into_iter()
            .filter(|controller| !bounded(controller))
            .map(|controller| note(&program.name, controller))
            .collect(),
        cgroup,
    })
}

fn note(name: &str, controller: &str) -> String {
    let instead = match controller {
        "memory" => "each of its processes is bounded (RLIMIT_DATA), not their sum",
        "pids" => "its processes are bounded by RLIMIT_NPROC",
        _ => "its processor time is not bounded",
    };
    format!("{name}: no cgroup v2 with the controller {controller}: {instead}")
}

fn capabilities(devices: &[DeviceNode]) -> u64 {
    let mut set = 0;
    for device in devices.iter().filter(|device| device.writable) {
        set |= 1 << CAP_SYS_RAWIO;
        if device.name.starts_with("nvme") || device.name.starts_with("ng") {
            set |= 1 << CAP_SYS_ADMIN;
        }
    }
    set
}

fn limits(grants: &Grants, memory_is_bounded: bool) -> Vec<(u32, u64)> {
    let mib = |count: u32| u64::from(count) << 20;
    let mut limits = vec![
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_NOFILE, 1024),
        (libc::RLIMIT_NPROC, grants.pids.into()),
        // A little more than fits: a full disk is an error, a file too long is a signal that kills.
        (libc::RLIMIT_FSIZE, mib(grants.scratch_mib + 1)),
        (libc::RLIMIT_MEMLOCK, 1 << 16),
        (libc::RLIMIT_MSGQUEUE, 0),
    ];
    if !memory_is_bounded {
        limits.push((libc::RLIMIT_DATA, mib(grants.memory_mib)));
    }
    limits
}

fn environment(program: &Program) -> Result<Vec<CString>, Error> {
    let ours = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/scratch"),
        ("TMPDIR", "/scratch"),
        ("LANG", "C.UTF-8"),
    ];
    let given = program.environment.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    ours.into_iter().chain(given).map(|(key, value)| c(format!("{key}={value}").as_bytes())).collect()
}

fn c(bytes: &[u8]) -> Result<CString, Error> {
    CString::new(bytes)
        .map_err(|_| Error::Refused(format!("{:?} has a zero byte in it", String::from_utf8_lossy(bytes))))
}

/// A tmpfs is put over the root's directory, and what the root has is bound into it from the working directory,
/// which still is the directory below; so a root needs no mount points of ours.
fn operations(
    grants: &Grants,
    root: &Path,
    entries: &[Entry],
    user: u32,
    change: RootChange,
) -> Result<Vec<Op>, Error> {
    let at = |name: &str| c(root.join(name).as_os_str().as_bytes());
    let here = c(root.as_os_str().as_bytes())?;
    let locked = libc::MS_NOSUID | libc::MS_NODEV;
    let mut ops = vec![
        Op::HostName(c(b"anneal")?),
        mount(None, c(b"/")?, None, libc::MS_REC | libc::MS_PRIVATE, None),
        Op::Enter(here.clone()),
        mount(None, here.clone(), Some(c(b"tmpfs")?), locked, Some(c(b"mode=755,size=64k,nr_inodes=512")?)),
    ];
    for entry in entries.iter().filter(|entry| !OURS.contains(&entry.name.as_str())) {
        let (source, target) = (c(entry.name.as_bytes())?, at(&entry.name)?);
        match &entry.kind {
            EntryKind::Link(to) => {
                ops.push(Op::Link { to: c(to.as_os_str().as_bytes())?, path: target });
                continue;
            }
            EntryKind::Directory => ops.push(Op::Directory(target.clone())),
            EntryKind::File => ops.push(Op::File(target.clone())),
        }
        ops.push(mount(Some(source), target.clone(), None, libc::MS_BIND, None));
        ops.push(read_only(target, locked));
    }
    device_operations(&mut ops, grants, root, user)?;
    let quiet = locked | libc::MS_NOEXEC;
    let proc = Some(c(b"subset=pid")?);
    ops.extend([Op::Directory(at("proc")?), mount(None, at("proc")?, Some(c(b"proc")?), quiet, proc)]);
    let size = grants.scratch_mib;
    let options = format!("size={size}m,mode=700,uid={user},gid={user},nr_inodes={SCRATCH_FILES}");
    ops.extend([
        Op::Directory(at("scratch")?),
        mount(None, at("scratch")?, Some(c(b"tmpfs")?), locked, Some(c(options.as_bytes())?)),
        Op::Link { to: c(b"scratch")?, path: at("tmp")? },
    ]);
    if grants.sysfs {
        let flags = quiet | libc::MS_RDONLY;
        ops.extend([Op::Directory(at("sys")?), mount(None, at("sys")?, Some(c(b"sysfs")?), flags, None)]);
    }
    if let Some(fetched) = &grants.fetched {
        let target = at("fetched")?;
        let source = Some(c(fetched.as_os_str().as_bytes())?);
        ops.extend([
            Op::Directory(target.clone()),
            mount(source, target.clone(), None, libc::MS_BIND, None),
            read_only(target, quiet),
        ]);
    }
    ops.extend([
        read_only(here.clone(), locked),
        Op::Enter(here),
        match change {
            RootChange::Pivot => Op::PivotHere,
            RootChange::Move => Op::MoveHere,
        },
        Op::Enter(c(b"/scratch")?),
    ]);
    Ok(ops)
}

fn device_operations(ops: &mut Vec<Op>, grants: &Grants, root: &Path, user: u32) -> Result<(), Error> {
    let dev = root.join("dev");
    let at = |name: &str| c(dev.join(name).as_os_str().as_bytes());
    let target = c(dev.as_os_str().as_bytes())?;
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    let options = Some(c(b"mode=755,size=64k,nr_inodes=4096")?);
    ops.extend([
        Op::Directory(target.clone()),
        mount(None, target.clone(), Some(c(b"tmpfs")?), flags, options),
    ]);
    for (name, major, minor) in NODES {
        let (mode, device) = (libc::S_IFCHR | 0o666, libc::makedev(major, minor));
        ops.push(Op::Node { path: at(name)?, mode, device, user: 0 });
    }
    for (name, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("shm", "/scratch"),
    ] {
        ops.push(Op::Link { to: c(to.as_bytes())?, path: at(name)? });
    }
    let mut made = std::collections::BTreeSet::new();
    for node in &grants.devices {
        let parts: Vec<&str> = node.name.split('/').collect();
        let strange = |part: &&str| part.is_empty() || *part == "." || *part == "..";
        let taken = NODES.iter().any(|(name, ..)| *name == node.name) || !made.insert(node.name.clone());
        if parts.iter().any(strange) || taken {
            return Err(Error::Refused(format!("{:?} cannot be a device node of its own", node.name)));
        }
        for depth in 1..parts.len() {
            let directory = parts[..depth].join("/");
            if made.insert(directory.clone()) {
                ops.push(Op::Directory(at(&directory)?));
            }
        }
        let kind = match node.kind {
            NodeKind::Block => libc::S_IFBLK,
            NodeKind::Character => libc::S_IFCHR,
        };
        let mode = kind | if node.writable { 0o600 } else { 0o400 };
        ops.push(Op::Node {
            path: at(&node.name)?,
            mode,
            device: libc::makedev(node.major, node.minor),
            user,
        });
    }
    ops.push(read_only(target, flags));
    Ok(())
}

pub(crate) fn mount(
    source: Option<CString>,
    target: CString,
    kind: Option<CString>,
    flags: u64,
    data: Option<CString>,
) -> Op {
    Op::Mount { source, target, kind, flags, data }
}

/// Make the mount at `target` read-only, with `flags` in addition.
pub(crate) fn read_only(target: CString, flags: u64) -> Op {
    mount(None, target, None, libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | flags, None)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
