//! Starts a program that sees and can do only what it was granted.
//!
//! ```text
//!   Grants + Host + the root's entries ──plan (pure)──▶ Plan ──spawn──▶ Confined
//!                                                        │               ├ socket   its descriptor 3
//!      mounts, nodes, limits, capabilities, filter  ◀────┘               ├ output   its stdout and stderr
//!      as data, done one by one by the child                             └ kill, wait
//! ```
//!
//! Between clone and exec the child is the copy of one thread of many: it may not allocate, lock or unwind. So
//! everything it is to do is decided before, as [`Op`]s and numbers, and it does them one by one ([`child`]). It
//! reports the first that fails to the parent, by its place in the list, and the program is not started.
//!
//! What holds for every program started here:
//!
//! - Its own mount, pid, net, ipc and uts namespaces, session and process group. It is process 1 of its pid
//!   namespace: when it ends or is killed, the kernel kills and reaps whatever it started. It dies with the *thread*
//!   that started it.
//! - Its root is its own directory, read-only, without device nodes and set-user-id programs of its own; `/dev` has
//!   `null`, `zero`, `full`, `urandom`, `random` and the granted nodes; `/proc` is that of its namespace, with
//!   processes alone (`subset=pid`: no `/proc/sys`, no `sysrq-trigger`); `/scratch` (also `/tmp`, `/dev/shm`) is
//!   the only place it can write, as large as granted. `/sys` is there, read-only, only when granted.
//! - The network is the host's only when granted; otherwise there is none, not even a loopback that is up.
//! - It is a user of its own and not root, since `RLIMIT_NPROC` does not hold root. Its capabilities are those that
//!   the ioctls of a granted device need and no others ([`capabilities`](plan)); `no_new_privs`.
//! - A seccomp filter lets ordinary system calls through ([`filter`]): no mount, no ptrace, no module, no kexec, no
//!   reboot, no bpf, no keyring, no new namespace, no io_uring.
//! - cgroup v2 bounds memory, processes and processor time where it is mounted with these controllers; else the
//!   limits of setrlimit(2) do it alone, and [`Plan::notes`] says what is not bounded.
//!
//! There is no switch that leaves a namespace out, on purpose. Where one cannot be made, the program is refused
//! ([`Error`]).

mod cgroup;
mod child;
mod error;
mod filter;
mod grants;
mod host;
mod op;
mod output_buffer;
mod own;
mod plan;
mod spawn;

pub use error::Error;
pub use grants::{DeviceNode, Grants, NodeKind};
pub use host::{Entry, EntryKind, Host};
pub use op::Op;
pub use output_buffer::OutputBuffer;
pub use own::{OwnGrants, confine_this_process};
pub use plan::{Plan, Program, RootChange, plan};
pub use spawn::{Confined, Ended, spawn};

use std::path::{Path, PathBuf};

/// Look at the host and at the root, plan, and start.
///
/// # Errors
/// See [`Error`]; the program was not started.
pub fn start(program: &Program, grants: &Grants) -> Result<(Confined, Vec<String>), Error> {
    let host = Host::look();
    let root: PathBuf = canonical(&program.root)?;
    let entries = host::entries(&root)?;
    let plan = plan(program, grants, &root, &entries, &host)?;
    let notes = plan.notes.clone();
    Ok((spawn(plan)?, notes))
}

fn canonical(root: &Path) -> Result<PathBuf, Error> {
    root.canonicalize().map_err(|error| Error::host(format!("root {}", root.display()), error))
}
