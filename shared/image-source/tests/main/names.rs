//! Names and their servers, in a network namespace with an `/etc/resolv.conf` of the test's own.

use crate::authority::Authority;
use crate::mirror::{Mirror, fetched, source, trust};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::net::UdpSocket;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

struct NameServer(Child);

impl NameServer {
    /// Knows mirror.example and nothing else. Answers when this returns.
    fn on(address: &str) -> Self {
        let mut command = Command::new("dnsmasq");
        command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file", "--user=root"]);
        command.args(["--no-resolv", "--no-hosts", "--bind-interfaces"]);
        command.args([
            &format!("--listen-address={address}"),
            "--address=/mirror.example/127.0.0.1",
            "--local=/#/",
        ]);
        let server = Self(command.spawn().expect("dnsmasq (cargo xtask deps)"));
        let asks = UdpSocket::bind((address, 0)).expect("a port");
        asks.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
        // A question for the root: any answer will do.
        let begun = Instant::now();
        while asks.send_to(&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1], (address, 53)).is_err()
            || asks.recv(&mut [0; 512]).is_err()
        {
            assert!(begun.elapsed() < Duration::from_secs(20), "dnsmasq does not answer");
        }
        server
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

/// Runs in a thread of its own: namespaces are a thread's.
fn in_a_namespace(resolv_conf: &str, work: impl FnOnce() + Send + 'static) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), resolv_conf).expect("written");
    let path = file.path().to_owned();
    let inside = move || {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).expect("root");
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
            .expect("private");
        mount(Some(&path), "/etc/resolv.conf", None::<&str>, MsFlags::MS_BIND, None::<&str>).expect("bound");
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip");
        assert!(up.success(), "ip link set lo up");
        work();
    };
    std::thread::spawn(inside).join().expect("no panic");
    drop(file);
}

#[test]
fn a_mirror_is_found_by_its_name_and_a_name_that_no_server_knows_is_named() {
    in_a_namespace("nameserver 127.0.0.77\noptions timeout:1 attempts:1\n", || {
        let _server = NameServer::on("127.0.0.77");
        let ours = Authority::new();
        let mirror = Mirror::good(&ours.signs("mirror.example"), b"an image");
        let asked = |name: &str| {
            let url = format!("https://{name}:{}/a?key=secret", mirror.address.port());
            fetched(&source(&url, trust(Some(&ours.pem), &[])))
        };
        assert_eq!(asked("mirror.example"), Ok(b"an image".to_vec()));
        let said = asked("unknown.example").expect_err("no such name");
        assert!(said.starts_with("https://unknown.example:") && !said.contains("secret"), "{said}");
        let why = "the name unknown.example cannot be resolved: Name or service not known; asked: 127.0.0.77";
        assert!(said.contains(why), "{said}");
        assert_eq!(mirror.seen().len(), 1);
    });
}

#[test]
fn a_name_server_that_is_silent_is_named_in_bounded_time() {
    in_a_namespace("nameserver 127.0.0.78\noptions timeout:20 attempts:3\n", || {
        let silent = UdpSocket::bind("127.0.0.78:53").expect("root");
        let begun = Instant::now();
        let said = fetched(&source("https://mirror.example/a", trust(None, &[]))).expect_err("no answer");
        let why = "the name mirror.example cannot be resolved: no answer within 1 s; asked: 127.0.0.78";
        assert!(said.contains(why), "{said}");
        // Two tries of a second. What the C library still waits for holds nothing up.
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        drop(silent);
    });
}

#[test]
fn a_machine_without_name_servers_says_so() {
    in_a_namespace("", || {
        let said = fetched(&source("http://mirror.example/a", trust(None, &[]))).expect_err("no servers");
        assert!(said.contains("the name mirror.example cannot be resolved: "), "{said}");
        assert!(
            said.contains("no name server is known (in the ramdisk they come from DHCP or [boot] dns)"),
            "{said}"
        );
    });
}
