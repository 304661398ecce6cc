//! Starting by a plan, and what was started.

use crate::cgroup::Cgroup;
use crate::child::{self, Ends, FIRST_STAGE, STAGES};
use crate::error::Error;
use crate::plan::Plan;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Longest that confining may take; it takes a few milliseconds.
const CONFINING: Duration = Duration::from_secs(10);
/// Longest that a killed program may take to be gone; one that hangs in a driver takes longer.
const DYING: Duration = Duration::from_secs(5);
/// The child's descriptors are moved above this, so that they are not in the way of 0 to 3.
const HIGH: RawFd = 16;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// Another part of this process reaped it: as init of the ramdisk the agent reaps all children.
    Reaped,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Killed(signal) => write!(f, "was killed by signal {signal}"),
            Self::Reaped => f.write_str("ended"),
        }
    }
}

/// A program that was started. Dropped, it is killed with all it started.
#[derive(Debug)]
pub struct Confined {
    /// The other end of its descriptor 3.
    pub socket: UnixStream,
    /// Its standard output and error, not blocking. Must be read or closed, or the program blocks.
    pub output: File,
    process: OwnedFd,
    ended: Option<Ended>,
    cgroup: Option<Cgroup>,
}

/// Start by a plan.
///
/// # Errors
/// [`Error::Host`] and [`Error::Confine`]: nothing was started, nothing is left behind.
pub fn spawn(plan: Plan) -> Result<Confined, Error> {
    let (socket, theirs) = UnixStream::pair().map_err(|error| Error::host("socket pair", error))?;
    let (output, output_end) = pipe(OFlag::O_CLOEXEC)?;
    let (mut report, report_end) = pipe(OFlag::O_CLOEXEC)?;
    let input = File::open("/dev/null").map_err(|error| Error::host("/dev/null", error))?;
    fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|error| Error::host("its output", error))?;
    let (input, output_end, theirs, report_end) =
        (high(input)?, high(output_end)?, high(theirs)?, high(report_end)?);
    let cgroup = plan.cgroup.as_ref().map(super::cgroup::Wanted::make).transpose()?;
    let group = cgroup.as_ref().map(Cgroup::open).transpose()?;

    let ends = Ends {
        input: input.as_raw_fd(),
        output: output_end.as_raw_fd(),
        socket: theirs.as_raw_fd(),
        report: report_end.as_raw_fd(),
    };
    let pointers = |strings: &[std::ffi::CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, environment) = (pointers(&plan.argv), pointers(&plan.environment));
    let Some(process) = clone(plan.namespaces, group.as_ref())? else {
        child::run(&plan, &ends, &argv, &environment)
    };
    drop((input, output_end, theirs, report_end, group));

    let mut confined = Confined { socket, output, process, ended: None, cgroup };
    match read_report(&mut report) {
        Ok(None) => Ok(confined),
        Ok(Some((place, errno))) => {
            confined.kill();
            let stage = usize::try_from(place.saturating_sub(FIRST_STAGE)).unwrap_or(0);
            let what = match usize::try_from(place).ok().and_then(|place| plan.operations.get(place)) {
                Some(op) => op.to_string(),
                None => STAGES.get(stage).copied().unwrap_or("unknown").to_owned(),
            };
            Err(Error::Confine { what, source: io::Error::from_raw_os_error(errno) })
        }
        Err(source) => {
            confined.kill();
            Err(Error::Confine { what: "nothing was heard of it".to_owned(), source })
        }
    }
}

/// clone3(2) as fork(2) does it: comes back twice, in the child with `None`.
fn clone(namespaces: u64, group: Option<&File>) -> Result<Option<OwnedFd>, Error> {
    let mut process: RawFd = -1;
    let mut flags = namespaces | libc::CLONE_PIDFD.unsigned_abs() as u64;
    // SAFETY: all fields are integers, for which zero is a value: "none".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    if let Some(group) = group {
        flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = u64::from(group.as_raw_fd().unsigned_abs());
    }
    arguments.flags = flags;
    arguments.pidfd = (&raw mut process).expose_provenance() as u64;
    arguments.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    // SAFETY: no CLONE_VM: the child has a copy of this memory and only makes system calls until it executes
    // another program or exits. The arguments and `process` outlive the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>()) };
    match pid {
        0 => Ok(None),
        -1 => Err(Error::Confine {
            what: "make its process and namespaces".to_owned(),
            source: io::Error::last_os_error(),
        }),
        // SAFETY: CLONE_PIDFD has just made it, and nothing else owns it.
        _ => Ok(Some(unsafe { OwnedFd::from_raw_fd(process) })),
    }
}

/// Of linux/sched.h; libc has it in a type too narrow.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

fn pipe(flags: OFlag) -> Result<(File, OwnedFd), Error> {
    let (read, write) = nix::unistd::pipe2(flags).map_err(|error| Error::host("pipe", error))?;
    Ok((read.into(), write))
}

fn high(descriptor: impl Into<OwnedFd>) -> Result<OwnedFd, Error> {
    let descriptor = descriptor.into();
    let copy = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(HIGH))
        .map_err(|error| Error::host("duplicate a descriptor", error))?;
    // SAFETY: just made, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// What the child reports: nothing when it executed its program.
fn read_report(report: &mut File) -> io::Result<Option<(u32, i32)>> {
    if !readable(report, CONFINING)? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut bytes = [0; 8];
    let mut length = 0;
    while length < bytes.len() {
        match report.read(&mut bytes[length..])? {
            0 => break,
            more => length += more,
        }
    }
    match length {
        0 => Ok(None),
        8 => {
            let [a, b, c, d, e, f, g, h] = bytes;
            Ok(Some((u32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h]))))
        }
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn readable(descriptor: &impl AsFd, within: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)], left) {
            Err(nix::errno::Errno::EINTR) => {}
            result => return Ok(result? > 0),
        }
    }
}

impl Confined {
    /// The process, readable for poll(2) when it has ended.
    pub fn process(&self) -> std::os::fd::BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<Ended> {
        if self.ended.is_none() && readable(&self.process, Duration::ZERO).unwrap_or(false) {
            self.ended = Some(reap(self.process.as_fd().as_raw_fd()));
        }
        self.ended
    }

    /// How it ended, if it does within this time.
    pub fn wait(&mut self, within: Duration) -> Option<Ended> {
        if self.ended.is_none() {
            // A failure to wait is seen by the look that follows.
            let _ = readable(&self.process, within);
        }
        self.ended()
    }

    /// Kill it and all it started at once, and wait until they are gone. `None` when they are not after five
    /// seconds: one hangs in the kernel.
    pub fn kill(&mut self) -> Option<Ended> {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        let process = self.process.as_raw_fd();
        // SAFETY: the descriptor is open; no information is passed. Process 1 of a pid namespace takes all others
        // with it, and is only gone when they are.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                process,
                libc::SIGKILL,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        self.wait(DYING)
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        if self.ended().is_none() && self.kill().is_none() {
            tracing::warn!("a killed program does not end: it hangs in the kernel");
        }
    }
}

fn reap(process: RawFd) -> Ended {
    // SAFETY: all fields are integers or pointers that are not followed.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::__WALL;
    // SAFETY: the kernel writes one siginfo.
    let waited = unsafe { libc::waitid(libc::P_PIDFD, process.unsigned_abs(), &raw mut info, flags) };
    if waited != 0 {
        return Ended::Reaped;
    }
    // SAFETY: waitid filled the fields of SIGCHLD.
    let status = unsafe { info.si_status() };
    if info.si_code == libc::CLD_EXITED { Ended::Exited(status) } else { Ended::Killed(status) }
}
