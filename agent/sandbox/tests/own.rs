//! A process that confines itself, really: this test, started again as a program of its own. Needs root.

use sandbox::{OwnGrants, confine_this_process};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};

/// Set in the process that confines itself: whether it is granted `/sys`.
const CHILD: &str = "ANNEAL_TEST_OWN";

fn said_by(sysfs: bool) -> String {
    let mut input = tempfile::NamedTempFile::new().unwrap();
    input.write_all(b"its disk").unwrap();
    let output = Command::new("/proc/self/exe")
        .args(["--exact", "confined", "--nocapture"])
        .env(CHILD, sysfs.to_string())
        .stdin(Stdio::from(input.reopen().unwrap()))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What is left, line by line; in the test itself nothing happens.
#[test]
fn confined() {
    let Ok(sysfs) = std::env::var(CHILD) else { return };
    let grants = OwnGrants { sysfs: sysfs == "true", memory_mib: 64, processor_s: Some(10) };
    let open = File::open("/proc/self/status").unwrap();
    confine_this_process(&grants).unwrap();
    let left = |what: &str, worked: bool| println!("{what}: {}", if worked { "yes" } else { "no" });
    let mut input = String::new();
    // SAFETY: descriptor 0 is open, and nothing else in this process uses it.
    let read = unsafe { File::from_raw_fd(0) }.read_to_string(&mut input);
    left("its input", read.is_ok() && input == "its disk");
    left("an older descriptor", open.metadata().is_ok());
    left(
        "a file",
        ["/etc/passwd", "/proc/self/status", "/dev/null"].iter().any(|path| File::open(path).is_ok()),
    );
    left("a new file", ["/x", "/dev/x", "/tmp/x", "/sys/x"].iter().any(|path| File::create(path).is_ok()));
    left("sysfs", fs::read_dir("/sys/block").is_ok());
    left("a socket", UdpSocket::bind("127.0.0.1:0").is_ok() || TcpStream::connect("127.0.0.1:1").is_ok());
    left("a process", Command::new("/proc/self/exe").spawn().is_ok());
    left("a thread", std::thread::Builder::new().spawn(|| ()).is_ok());
    left("a signal", nix::sys::signal::kill(nix::unistd::getppid(), None).is_ok());
    left("much memory", Vec::<u8>::new().try_reserve_exact(65 << 20).is_ok());
    left("root", nix::unistd::geteuid().is_root());
    std::process::exit(0);
}

#[test]
fn nothing_is_left_but_what_was_open_and_what_was_granted() {
    let of = |name: &str, said: &str| said.lines().any(|line| line == format!("{name}: yes"));
    for sysfs in [false, true] {
        let said = said_by(sysfs);
        assert!(of("its input", &said) && of("sysfs", &said) == sysfs, "{said}");
        for wall in [
            "an older descriptor",
            "a file",
            "a new file",
            "a socket",
            "a process",
            "a thread",
            "a signal",
            "much memory",
            "root",
        ] {
            assert!(said.contains(&format!("{wall}: no")), "{wall}: {said}");
        }
    }
}
