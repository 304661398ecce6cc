//! Neighbours on real links: pairs of veth in a network namespace of the test's own.

use agentd::lldp::{Listening, Tlv, listen};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// Sends through the interface of the first argument, ten times a second: a frame of another protocol, one that is cut
/// off, and one of a switch. It begins when the interface of the second argument takes all multicast.
const SWITCH: &str = r#"
import socket, struct, sys, time
to, listener = sys.argv[1:]
while not int(open(f"/sys/class/net/{listener}/flags").read(), 16) & 0x200:
    time.sleep(0.02)
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((to, 0))
tlv = lambda kind, value: struct.pack("!H", kind << 9 | len(value)) + value
header = bytes.fromhex("0180c200000e020000000001")
lldp = (tlv(1, bytes.fromhex("04020000000001")) + tlv(2, b"\x05Ethernet1/7") + tlv(3, b"\0\x78")
        + tlv(5, b"leaf-3") + tlv(127, bytes.fromhex("0080c2010064")) + tlv(0, b""))
while True:
    wire.send(header + b"\x88\xcd" + lldp)
    wire.send(header + b"\x88\xcc" + lldp[:20])
    wire.send(header + b"\x88\xcc" + lldp.ljust(46, b"\0"))
    time.sleep(0.1)
"#;

struct Switch(Child);

impl Switch {
    fn on(to: &str, listener: &str) -> Self {
        Self(Command::new("python3").args(["-c", SWITCH, to, listener]).spawn().expect("python3"))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("ip");
    assert!(status.success(), "ip {arguments}");
}

fn takes_all_multicast(name: &str) -> bool {
    let flags = fs::read_to_string(format!("/sys/class/net/{name}/flags")).expect("flags");
    u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).expect("a number") & 0x200 != 0
}

/// Runs in a thread of its own: namespaces are a thread's.
fn in_a_namespace(work: impl FnOnce() + Send + 'static) {
    let inside = move || {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).expect("root");
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
            .expect("private");
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>).expect("sysfs");
        work();
    };
    thread::spawn(inside).join().expect("no panic");
}

#[test]
fn a_neighbour_is_heard_on_its_link_and_a_silent_link_has_none() {
    in_a_namespace(|| {
        for (near, far) in [("near0", "far0"), ("near1", "far1"), ("near2", "far2")] {
            ip(&format!("link add {near} type veth peer name {far}"));
            ip(&format!("link set {far} up"));
        }
        let tlv = |kind, value: &[u8]| Tlv { kind, value: value.to_owned() };
        let heard = [
            tlv(1, &[4, 2, 0, 0, 0, 0, 1]),
            tlv(2, b"\x05Ethernet1/7"),
            tlv(3, &[0, 0x78]),
            tlv(5, b"leaf-3"),
            tlv(127, &[0, 0x80, 0xc2, 1, 0, 0x64]),
        ];
        let _switch = Switch::on("far0", "near0");

        // All that are waited for were heard: it ends long before its time. The links were down.
        let began = Instant::now();
        let found = listen(&["near0".into()], Listening { time: Duration::from_secs(60), bring_up: true });
        let found = found.expect("root");
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert_eq!(found["near0"], heard);
        assert!(!takes_all_multicast("near0"), "it is left as it was");

        // One never speaks, one is not there, one is not listened on.
        let names = ["near0", "near1", "gone"].map(str::to_owned);
        let began = Instant::now();
        let found = listen(&names, Listening { time: Duration::from_secs(2), bring_up: true }).expect("root");
        assert!((2..20).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        let reported: Vec<(&str, usize)> =
            found.iter().map(|(name, tlvs)| (name.as_str(), tlvs.len())).collect();
        assert_eq!(reported, [("near0", 5), ("near1", 0)]);
    });
}
