//! The child between clone and exec. It is a copy of one thread of many, so it only makes system calls: no
//! allocation, no lock, no panic.

use crate::op::check;
use crate::plan::Plan;
use std::os::fd::RawFd;

/// Descriptors of the child, all above 4 and closed by an exec.
pub(crate) struct Ends {
    /// Its standard input.
    pub(crate) input: RawFd,
    /// Its standard output and error.
    pub(crate) output: RawFd,
    /// Its descriptor 3.
    pub(crate) socket: RawFd,
    /// Reports to the parent what failed; when it closes without a report, the exec succeeded.
    pub(crate) report: RawFd,
}

/// Where the child failed, when it was not one of the plan's operations. Numbers of the report above these.
pub(crate) const STAGES: [&str; 9] = [
    "connect its descriptors",
    "make its session",
    "set its limits",
    "drop capabilities from the bounding set",
    "become its user",
    "set its capabilities",
    "set no_new_privs",
    "install the seccomp filter",
    "execute its program",
];
/// First number of [`STAGES`] in a report; smaller ones are operations.
pub(crate) const FIRST_STAGE: u32 = 1 << 16;

/// Last capability that a kernel may know (bits of a `u64`).
const LAST_CAPABILITY: u32 = 63;
/// `_LINUX_CAPABILITY_VERSION_3`.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Do all of the plan and become the program. Comes back only as an exit.
///
/// `argv` and `environment` end with a null pointer; `filter` is the plan's.
pub(crate) fn run(
    plan: &Plan,
    ends: &Ends,
    argv: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> ! {
    let (place, errno) = become_program(plan, ends, argv, environment);
    let mut report = [0_u8; 8];
    report[..4].copy_from_slice(&place.to_ne_bytes());
    report[4..].copy_from_slice(&errno.to_ne_bytes());
    // SAFETY: the buffer is ours, and this descriptor is still open.
    unsafe {
        libc::write(ends.report, report.as_ptr().cast(), report.len());
        libc::_exit(127)
    }
}

fn become_program(
    plan: &Plan,
    ends: &Ends,
    argv: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> (u32, i32) {
    for (place, op) in (0_u32..).zip(&plan.operations) {
        if let Err(errno) = op.perform() {
            return (place, errno);
        }
    }
    let stages: [&dyn Fn() -> Result<(), i32>; 8] = [
        &|| connect(ends, plan.user),
        &session,
        &|| limits(&plan.limits),
        &|| bounding_set(plan.capabilities),
        &|| user(plan.user),
        &|| capabilities(plan.capabilities),
        &no_new_privileges,
        &|| filter(&plan.filter),
    ];
    for (place, stage) in (FIRST_STAGE..).zip(stages) {
        if let Err(errno) = stage() {
            return (place, errno);
        }
    }
    // SAFETY: both lists end with a null pointer and point to strings of the plan.
    let executed = unsafe { libc::execve(argv[0], argv.as_ptr(), environment.as_ptr()) };
    (FIRST_STAGE + 8, check(executed).err().unwrap_or(0))
}

fn connect(ends: &Ends, user: u32) -> Result<(), i32> {
    for (from, to) in [(ends.input, 0), (ends.output, 1), (ends.output, 2), (ends.socket, 3)] {
        // SAFETY: duplicates descriptors of this process, which are all above 3.
        check(unsafe { libc::dup3(from, to, 0) })?;
    }
    // So that the program may open /dev/stdout, which is this pipe.
    // SAFETY: a descriptor of this process.
    check(unsafe { libc::fchown(1, user, user) })?;
    // The report closes itself with the exec.
    let report = ends.report.unsigned_abs();
    for (first, last) in [(4, report - 1), (report + 1, u32::MAX)] {
        // SAFETY: closes what the program is not to have; nothing here uses it afterwards.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
        check(if closed == 0 { 0 } else { -1 })?;
    }
    Ok(())
}

/// Close all descriptors from this one on.
pub(crate) fn close_from(first: u32) -> Result<(), i32> {
    // SAFETY: closes what this process is not to have; the caller uses none of them afterwards.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0_u32) };
    check(if closed == 0 { 0 } else { -1 })
}

fn session() -> Result<(), i32> {
    // The host's dispositions and mask are not the program's: Rust ignores SIGPIPE, and exec keeps that.
    // SAFETY: both calls take pointers to values of this frame, or none.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))?;
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::umask(0o077);
        check(libc::setsid())
    }
}

pub(crate) fn limits(limits: &[(u32, u64)]) -> Result<(), i32> {
    for (resource, limit) in limits {
        let limit = libc::rlimit { rlim_cur: *limit, rlim_max: *limit };
        // SAFETY: the kernel reads one rlimit. By number, since the C libraries differ in the type of `resource`.
        let set = unsafe { libc::syscall(libc::SYS_setrlimit, *resource, &raw const limit) };
        check(if set == 0 { 0 } else { -1 })?;
    }
    Ok(())
}

pub(crate) fn bounding_set(keep: u64) -> Result<(), i32> {
    for capability in (0..=LAST_CAPABILITY).filter(|capability| keep & (1 << capability) == 0) {
        // SAFETY: prctl without pointers.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            // Beyond the last that this kernel has.
            Err(libc::EINVAL) if capability > 0 => return Ok(()),
            result => result?,
        }
    }
    Ok(())
}

pub(crate) fn user(user: u32) -> Result<(), i32> {
    // Raw calls: the C library's versions would signal the threads that the copy does not have.
    // SAFETY: calls without pointers but a null one of length 0.
    unsafe {
        check(libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0))?;
        let groups = libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>());
        check(if groups == 0 { 0 } else { -1 })?;
        let group = libc::syscall(libc::SYS_setresgid, user, user, user);
        check(if group == 0 { 0 } else { -1 })?;
        let user = libc::syscall(libc::SYS_setresuid, user, user, user);
        check(if user == 0 { 0 } else { -1 })
    }
}

pub(crate) fn capabilities(keep: u64) -> Result<(), i32> {
    let halves = keep.to_le_bytes();
    let half = |n: usize| u32::from_le_bytes([halves[n], halves[n + 1], halves[n + 2], halves[n + 3]]);
    let data =
        [half(0), half(4)].map(|set| CapabilityData { effective: set, permitted: set, inheritable: set });
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    // SAFETY: version 3 reads one header and two data structures.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) };
    check(if set == 0 { 0 } else { -1 })?;
    for capability in (0..=LAST_CAPABILITY).filter(|capability| keep & (1 << capability) != 0) {
        // Ambient: kept over the exec of a program that is not root's.
        // SAFETY: prctl without pointers.
        check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, capability, 0, 0) })?;
    }
    Ok(())
}

pub(crate) fn no_new_privileges() -> Result<(), i32> {
    // Last of what changes credentials, which would clear it: the program dies with the thread that started it.
    // SAFETY: prctl without pointers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
    // SAFETY: as above.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

pub(crate) fn filter(filter: &[libc::sock_filter]) -> Result<(), i32> {
    let Ok(len) = u16::try_from(filter.len()) else { return Err(libc::E2BIG) };
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel reads `len` instructions; it writes none.
    let set =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    check(if set == 0 { 0 } else { -1 })
}
