//! A process that confines itself before it reads what it must not be harmed by: this program, started again for one
//! task. Unlike a vendor's program it needs no root of its own, since it is executed before it is confined.

use crate::child;
use crate::error::Error;
use crate::filter;
use crate::host::Host;
use crate::op::{Op, check};
use crate::plan::{mount, read_only};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// What a process that confines itself keeps in addition to its descriptors 0, 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnGrants {
    /// `/sys`, read-only; nothing else is in its root.
    pub sysfs: bool,
    /// Memory in MiB that it may have in addition to its program.
    pub memory_mib: u32,
    /// Seconds of processor time, or no limit.
    pub processor_s: Option<u32>,
}

/// Where the empty root is mounted first: every system has it.
const PLACE: &str = "/dev";
/// Descriptors that it may have open at once.
const DESCRIPTORS: u64 = 32;

/// Confine this process for the rest of its life: no other descriptors, an empty root, no network, a user of its own without
/// capabilities, no new process, and only system calls that read, write and ask for memory. Call it before any second
/// thread is started. Needs root.
///
/// # Errors
/// The first step that failed. The process is then confined in part and must end.
pub fn confine_this_process(grants: &OwnGrants) -> Result<(), Error> {
    let host = Host::look();
    step("close descriptors", child::close_from(3))?;
    let namespaces = libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    // SAFETY: no pointers. It concerns this thread, which is the only one.
    step("make its namespaces", check(unsafe { libc::unshare(namespaces) }))?;
    for op in empty_root(grants, &host)? {
        op.perform().map_err(|errno| confine(op.to_string(), errno))?;
    }
    step("set its limits", child::limits(&bounds(grants)))?;
    step("drop capabilities from the bounding set", child::bounding_set(0))?;
    step("become its user", child::user(host.user))?;
    step("set its capabilities", child::capabilities(0))?;
    step("set no_new_privs", child::no_new_privileges())?;
    step("install the seccomp filter", child::filter(&filter::compile_own()))
}

fn step(what: &str, result: Result<(), i32>) -> Result<(), Error> {
    result.map_err(|errno| confine(what.to_owned(), errno))
}

fn confine(what: String, errno: i32) -> Error {
    Error::Confine { what, source: io::Error::from_raw_os_error(errno) }
}

fn empty_root(grants: &OwnGrants, host: &Host) -> Result<Vec<Op>, Error> {
    let c = |text: &str| CString::new(text).map_err(|error| Error::host(text, error));
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let options = Some(c("mode=755,size=64k,nr_inodes=8")?);
    let mut ops = vec![mount(None, c("/")?, None, libc::MS_REC | libc::MS_PRIVATE, None)];
    if host.root_is_rootfs {
        // The old root stays below the new one. A file system that stayed mounted there would keep its disk busy.
        for point in &host.mount_points {
            let point = CString::new(point.as_os_str().as_bytes())
                .map_err(|error| Error::host(point.to_string_lossy(), error))?;
            ops.push(Op::Unmount(point));
        }
    }
    ops.push(mount(None, c(PLACE)?, Some(c("tmpfs")?), quiet, options));
    if grants.sysfs {
        let at = || c(&format!("{PLACE}/sys"));
        ops.push(Op::Directory(at()?));
        ops.push(mount(None, at()?, Some(c("sysfs")?), quiet | libc::MS_RDONLY, None));
    }
    let change = if host.root_is_rootfs { Op::MoveHere } else { Op::PivotHere };
    ops.extend([read_only(c(PLACE)?, quiet), Op::Enter(c(PLACE)?), change]);
    Ok(ops)
}

fn bounds(grants: &OwnGrants) -> Vec<(u32, u64)> {
    let mut limits = vec![
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_NOFILE, DESCRIPTORS),
        (libc::RLIMIT_NPROC, 0),
        (libc::RLIMIT_FSIZE, 0),
        (libc::RLIMIT_MEMLOCK, 0),
        (libc::RLIMIT_MSGQUEUE, 0),
        (libc::RLIMIT_DATA, u64::from(grants.memory_mib) << 20),
    ];
    limits.extend(grants.processor_s.map(|seconds| (libc::RLIMIT_CPU, seconds.into())));
    limits
}
