/* Makes the system calls that the sandbox refuses, and says what each answered: "name errno". */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TRY(name, call) (errno = 0, printf(name " %d\n", (call) == -1 ? errno : 0))

int main(void) {
    TRY("mount", mount("none", "/scratch", "tmpfs", 0, 0));
    TRY("umount", umount2("/proc", MNT_DETACH));
    TRY("ptrace", ptrace(PTRACE_TRACEME, 0, 0, 0));
    TRY("unshare", unshare(CLONE_NEWUSER));
    TRY("setns", setns(3, 0));
    TRY("clone", syscall(SYS_clone, CLONE_NEWUSER | 17, 0, 0, 0, 0));
    TRY("chroot", chroot("/scratch"));
    TRY("bpf", syscall(SYS_bpf, 5, 0, 0));
    TRY("io_uring", syscall(SYS_io_uring_setup, 1, 0));
    TRY("init_module", syscall(SYS_init_module, 0, 0, ""));
    TRY("keyctl", syscall(SYS_keyctl, 0, 0));
    TRY("reboot", reboot(RB_DISABLE_CAD));
    TRY("packet", socket(AF_PACKET, SOCK_RAW, 0));
    TRY("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    TRY("mknod", mknod("/scratch/sda", S_IFBLK | 0600, makedev(8, 0)));
    TRY("setuid", setuid(0));
    TRY("harmless", getpid());
    return 0;
}
