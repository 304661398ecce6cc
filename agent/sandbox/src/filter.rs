//! The seccomp filter: which system calls a program may make.
//!
//! A list of what ordinary programs use, among them Python, Go, and vendors' command-line tools. What is not in it
//! gets `EPERM`; a call that is newer than this list, and clone3 whose flags a filter cannot see, get `ENOSYS`, on
//! which C libraries fall back to what is older. A foreign architecture's calls kill the program.
//!
//! Absent, each for a reason: mount, umount2, pivot_root, chroot, the new mount API, setns, unshare (and clone with
//! a namespace): the walls · ptrace, process_vm_*, kcmp, pidfd_getfd, userfaultfd, perf_event_open: other processes
//! and the kernel's inside · bpf, io_uring_* (works around filters), init_module, kexec_load, reboot, swapon, acct,
//! quotactl, fanotify_*, iopl, ioperm, settimeofday, clock_settime, clock_adjtime, syslog, lookup_dcookie,
//! open_by_handle_at, vhangup: the machine · keyctl, add_key, request_key: keyrings have no namespace · sync (flushes
//! every disk of the host), personality.

use libc::sock_filter;

/// `AUDIT_ARCH_*` of linux/audit.h for this target.
#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the list of system calls knows x86_64 and aarch64");

/// The newest call that this list has an opinion on: mseal of Linux 6.10.
const NEWEST: u32 = 462;
/// Numbers of the x32 ABI begin here (x86_64).
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`: number, architecture, low halves of the first two arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST: u32 = 16;
const SECOND: u32 = 24;

/// `SECCOMP_RET_*` of linux/seccomp.h.
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Any of these in clone's flags makes a namespace.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// The filter. With `network`, sockets of family netlink too, which tools of network cards speak.
pub(crate) fn compile(network: bool) -> Vec<sock_filter> {
    let mut code = vec![load(ARCHITECTURE), equal(ARCH, 1, 0), answer(KILL), load(NUMBER)];
    code.extend([at_least(X32, 0, 1), answer(ENOSYS)]);
    code.extend([equal(number(libc::SYS_clone3), 0, 1), answer(ENOSYS)]);
    code.extend([equal(number(libc::SYS_clone), 0, 4), load(FIRST), any(NAMESPACES, 0, 1)]);
    code.extend([answer(EPERM), answer(ALLOW)]);
    let mut families = vec![libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    families.extend(network.then_some(libc::AF_NETLINK));
    let count = u8::try_from(families.len()).unwrap_or(u8::MAX);
    code.extend([equal(number(libc::SYS_socket), 0, 2 * count + 2), load(FIRST)]);
    for family in families {
        code.extend([equal(family.unsigned_abs(), 0, 1), answer(ALLOW)]);
    }
    code.push(answer(EPERM));
    for call in ORDINARY.iter().chain(OF_THIS_ARCHITECTURE) {
        code.extend([equal(number(*call), 0, 1), answer(ALLOW)]);
    }
    code.extend([at_least(NEWEST + 1, 0, 1), answer(ENOSYS), answer(EPERM)]);
    code
}

/// The filter of a process that confines itself: what reads, asks what a descriptor is, writes an answer and asks for
/// memory. No new process, no socket, and of a device only its size and kind.
pub(crate) fn compile_own() -> Vec<sock_filter> {
    let mut code = vec![load(ARCHITECTURE), equal(ARCH, 1, 0), answer(KILL), load(NUMBER)];
    let count = u8::try_from(REQUESTS.len()).unwrap_or(u8::MAX);
    code.extend([equal(number(libc::SYS_ioctl), 0, 2 * count + 2), load(SECOND)]);
    for request in REQUESTS {
        code.extend([equal(*request, 0, 1), answer(ALLOW)]);
    }
    code.push(answer(EPERM));
    for call in OWN.iter().chain(OWN_OF_THIS_ARCHITECTURE) {
        code.extend([equal(number(*call), 0, 1), answer(ALLOW)]);
    }
    code.push(answer(EPERM));
    code
}

/// `BLKGETSIZE64`, `BLKSSZGET`, `BLKPBSZGET`, `BLKGETZONESZ` of linux/fs.h and linux/blkzoned.h; `CDROM_GET_CAPABILITY` and
/// `CDROM_LAST_WRITTEN` of linux/cdrom.h.
const REQUESTS: &[u32] = &[0x8008_1272, 0x1268, 0x127b, 0x8004_1284, 0x5331, 0x5395];

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    #[expect(clippy::cast_possible_truncation, reason = "BPF codes are 16 bits wide")]
    let code = code as u16;
    sock_filter { code, jt, jf, k }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

fn equal(value: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value)
}

fn at_least(value: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, yes, no, value)
}

fn any(bits: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, yes, no, bits)
}

fn answer(value: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

macro_rules! calls {
    ($($name:ident)*) => { &[$(libc::$name),*] };
}

#[rustfmt::skip]
const ORDINARY: &[libc::c_long] = calls![
    SYS_accept SYS_accept4 SYS_bind SYS_brk SYS_capget SYS_capset SYS_chdir SYS_clock_getres SYS_clock_gettime
    SYS_clock_nanosleep SYS_close SYS_close_range SYS_connect SYS_copy_file_range SYS_dup SYS_dup3
    SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2 SYS_execve SYS_execveat SYS_exit
    SYS_exit_group SYS_faccessat SYS_faccessat2 SYS_fadvise64 SYS_fallocate SYS_fchdir SYS_fchmod SYS_fchmodat
    SYS_fchown SYS_fchownat SYS_fcntl SYS_fdatasync SYS_fgetxattr SYS_flistxattr SYS_flock SYS_fstat SYS_fstatfs
    SYS_fsync SYS_ftruncate SYS_futex SYS_futex_waitv SYS_get_robust_list SYS_getcpu SYS_getcwd SYS_getdents64
    SYS_getegid SYS_geteuid SYS_getgid SYS_getgroups SYS_getitimer SYS_getpeername SYS_getpgid SYS_getpid
    SYS_getppid SYS_getpriority SYS_getrandom SYS_getresgid SYS_getresuid SYS_getrlimit SYS_getrusage SYS_getsid
    SYS_getsockname SYS_getsockopt SYS_gettid SYS_gettimeofday SYS_getuid SYS_getxattr SYS_get_mempolicy
    SYS_inotify_add_watch SYS_inotify_init1 SYS_inotify_rm_watch SYS_ioctl SYS_ioprio_get SYS_ioprio_set SYS_kill
    SYS_lgetxattr SYS_linkat SYS_listen SYS_listxattr SYS_llistxattr SYS_lseek SYS_madvise SYS_membarrier
    SYS_memfd_create SYS_mincore SYS_mkdirat SYS_mknodat SYS_mlock SYS_mlock2 SYS_mlockall SYS_mmap SYS_mprotect
    SYS_mremap SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_msync SYS_munlock SYS_munlockall SYS_munmap
    SYS_nanosleep SYS_newfstatat SYS_openat SYS_openat2 SYS_pidfd_open SYS_pidfd_send_signal SYS_pipe2 SYS_ppoll
    SYS_prctl SYS_pread64 SYS_preadv SYS_preadv2 SYS_prlimit64 SYS_pselect6 SYS_pwrite64 SYS_pwritev SYS_pwritev2
    SYS_read SYS_readahead SYS_readlinkat SYS_readv SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_renameat2
    SYS_restart_syscall SYS_rseq SYS_rt_sigaction SYS_rt_sigpending SYS_rt_sigprocmask SYS_rt_sigqueueinfo
    SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam SYS_sched_getscheduler
    SYS_sched_rr_get_interval SYS_sched_setaffinity SYS_sched_setattr SYS_sched_setparam SYS_sched_setscheduler
    SYS_sched_yield SYS_semctl SYS_semget SYS_semop SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto
    SYS_set_robust_list SYS_set_tid_address SYS_setgid SYS_setgroups SYS_setitimer SYS_setpgid SYS_setpriority
    SYS_setregid SYS_setresgid SYS_setresuid SYS_setreuid SYS_setrlimit SYS_setsid SYS_setsockopt SYS_setuid
    SYS_shmat SYS_shmctl SYS_shmdt SYS_shmget SYS_shutdown SYS_sigaltstack SYS_signalfd4 SYS_socketpair SYS_splice
    SYS_statfs SYS_statx SYS_symlinkat SYS_sync_file_range SYS_syncfs SYS_sysinfo SYS_tee SYS_tgkill
    SYS_timer_create SYS_timer_delete SYS_timer_getoverrun SYS_timer_gettime SYS_timer_settime SYS_timerfd_create
    SYS_timerfd_gettime SYS_timerfd_settime SYS_times SYS_tkill SYS_truncate SYS_umask SYS_uname SYS_unlinkat
    SYS_utimensat SYS_vmsplice SYS_wait4 SYS_waitid SYS_write SYS_writev
];

/// Calls of a process that confines itself, in addition to ioctl.
#[rustfmt::skip]
const OWN: &[libc::c_long] = calls![
    SYS_brk SYS_clock_gettime SYS_close SYS_exit SYS_exit_group SYS_faccessat SYS_faccessat2 SYS_fadvise64 SYS_fcntl
    SYS_fstat SYS_futex SYS_getdents64 SYS_getpid SYS_getrandom SYS_gettid SYS_lseek SYS_madvise SYS_mmap SYS_mprotect
    SYS_mremap SYS_munmap SYS_newfstatat SYS_openat SYS_pread64 SYS_preadv SYS_read SYS_readlinkat SYS_readv
    SYS_restart_syscall SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack SYS_statx SYS_tgkill
    SYS_write SYS_writev
];
#[cfg(target_arch = "x86_64")]
const OWN_OF_THIS_ARCHITECTURE: &[libc::c_long] = calls![SYS_access SYS_open SYS_readlink SYS_stat SYS_lstat];
#[cfg(target_arch = "aarch64")]
const OWN_OF_THIS_ARCHITECTURE: &[libc::c_long] = &[];

/// Calls that younger architectures left out.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OF_THIS_ARCHITECTURE: &[libc::c_long] = calls![
    SYS_access SYS_alarm SYS_arch_prctl SYS_chmod SYS_chown SYS_creat SYS_dup2 SYS_epoll_create SYS_epoll_wait
    SYS_eventfd SYS_fork SYS_futimesat SYS_getdents SYS_getpgrp SYS_inotify_init SYS_lchown SYS_link SYS_lstat
    SYS_mkdir SYS_mknod SYS_open SYS_pause SYS_pipe SYS_poll SYS_readlink SYS_rename SYS_renameat SYS_rmdir
    SYS_select SYS_signalfd SYS_stat SYS_symlink SYS_time SYS_unlink SYS_utime SYS_utimes SYS_vfork
];
#[cfg(target_arch = "aarch64")]
const OF_THIS_ARCHITECTURE: &[libc::c_long] = calls![SYS_renameat];

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would answer: the instructions that [`compile`] uses, run on one call.
    fn judged(code: &[sock_filter], arch: u32, call: u32, first: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let step = code[at];
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf }) + 1;
            at += match u32::from(step.code) {
                0x20 => {
                    value = match step.k {
                        NUMBER => call,
                        ARCHITECTURE => arch,
                        FIRST | SECOND => first,
                        other => panic!("loads from {other}"),
                    };
                    1
                }
                0x15 => jump(value == step.k),
                0x35 => jump(value >= step.k),
                0x45 => jump(value & step.k != 0),
                0x06 => return step.k,
                other => panic!("unknown instruction {other:#x}"),
            };
        }
    }

    #[test]
    fn what_breaks_walls_is_refused_and_what_programs_need_is_not() {
        let code = compile(false);
        let of = |call: libc::c_long, first: i32| judged(&code, ARCH, number(call), first.cast_unsigned());
        for call in [libc::SYS_read, libc::SYS_execve, libc::SYS_ioctl, libc::SYS_wait4, libc::SYS_writev] {
            assert_eq!(of(call, 0), ALLOW, "{call}");
        }
        let walls = calls![
            SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_setns SYS_unshare SYS_open_tree SYS_move_mount
            SYS_fsopen SYS_fsmount SYS_mount_setattr SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev
            SYS_pidfd_getfd SYS_perf_event_open SYS_bpf SYS_io_uring_setup SYS_io_uring_enter SYS_init_module
            SYS_finit_module SYS_delete_module SYS_kexec_load SYS_kexec_file_load SYS_reboot SYS_swapon SYS_acct
            SYS_quotactl SYS_fanotify_init SYS_settimeofday SYS_clock_settime SYS_adjtimex SYS_syslog
            SYS_open_by_handle_at SYS_keyctl SYS_add_key SYS_request_key SYS_userfaultfd SYS_sethostname
            SYS_personality SYS_sync SYS_vhangup
        ];
        for call in walls {
            assert_eq!(of(*call, 0), EPERM, "{call}");
        }
        assert_eq!(of(libc::SYS_clone, libc::SIGCHLD), ALLOW);
        for namespace in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWPID] {
            assert_eq!(of(libc::SYS_clone, namespace | libc::SIGCHLD), EPERM);
        }
        assert_eq!(of(libc::SYS_clone3, 0), ENOSYS);
        assert_eq!(judged(&code, ARCH, NEWEST + 1, 0), ENOSYS);
        assert_eq!(judged(&code, ARCH, X32 + 1, 0), ENOSYS);
        assert_eq!(judged(&code, 0x4000_0003, 1, 0), KILL, "a 32-bit call");
    }

    #[test]
    fn a_process_that_confines_itself_only_reads_writes_and_asks_for_memory() {
        let code = compile_own();
        let of = |call: libc::c_long, second: u32| judged(&code, ARCH, number(call), second);
        for call in [libc::SYS_read, libc::SYS_pread64, libc::SYS_write, libc::SYS_mmap, libc::SYS_exit_group]
        {
            assert_eq!(of(call, 0), ALLOW, "{call}");
        }
        assert_eq!(of(libc::SYS_ioctl, 0x8008_1272), ALLOW, "the size of a disk");
        for request in [0x1277_u32, 0x125f, 0x2285, 0xc048_4e41] {
            assert_eq!(
                of(libc::SYS_ioctl, request),
                EPERM,
                "BLKDISCARD, BLKRRPART, SG_IO, NVME_IOCTL_ADMIN_CMD"
            );
        }
        let others = calls![
            SYS_socket SYS_clone SYS_clone3 SYS_fork SYS_execve SYS_execveat SYS_ptrace SYS_mount SYS_unshare
            SYS_setuid SYS_kill SYS_pwrite64 SYS_unlinkat SYS_memfd_create SYS_bpf SYS_process_vm_readv SYS_chroot
            SYS_pidfd_getfd SYS_prctl SYS_prlimit64
        ];
        for call in others {
            assert_eq!(of(*call, 0), EPERM, "{call}");
        }
        assert_eq!(judged(&code, 0x4000_0003, 1, 0), KILL, "a 32-bit call");
        assert_eq!(of(i64::from(X32) + libc::SYS_read, 0), EPERM, "the x32 ABI");
    }

    #[test]
    fn netlink_goes_with_the_network_and_odd_families_never() {
        for network in [false, true] {
            let code = compile(network);
            let of = |family: i32| judged(&code, ARCH, number(libc::SYS_socket), family.unsigned_abs());
            for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
                assert_eq!(of(family), ALLOW, "{family}");
            }
            assert_eq!(of(libc::AF_NETLINK), if network { ALLOW } else { EPERM });
            for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, libc::AF_BLUETOOTH] {
                assert_eq!(of(family), EPERM, "{family}");
            }
        }
    }
}
