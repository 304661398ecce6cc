//! DHCP, TFTP and router advertisements with real clients (busybox) in network namespaces of their own.
//!
//! Needs root, iproute2 and busybox; without them the tests fail.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use boot::dhcp::{Dhcp, DhcpConfig, Mode, Pool};
use boot::dhcp6::{Dhcp6, Dhcp6Config};
use boot::ra::RouterAdvertiser;
use boot::tftp::{Tftp, TftpConfig};
use boot::{BootError, CancellationToken};
use dhcproto::v4::{Architecture, DhcpOption, Message, MessageType};
use dhcproto::{Decodable, Decoder, Encodable};
use nix::sched::{CloneFlags, setns};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const URL: &str = "http://10.9.0.1:8080";

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn ip(words: &str) {
    let output = run(Command::new("ip").args(words.split(' ')));
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two namespaces with a cable between: `s0` with 10.9.0.1 in one, `c0` in the other.
struct Net {
    name: String,
    dir: tempfile::TempDir,
    shutdown: CancellationToken,
    services: Vec<JoinHandle<Result<(), BootError>>>,
}

impl Net {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("an-boot-{}-{number}", std::process::id());
        let dir = tempfile::tempdir().unwrap();
        let net = Self { name: name.clone(), dir, shutdown: CancellationToken::new(), services: Vec::new() };
        ip(&format!("netns add {name}-s"));
        ip(&format!("netns add {name}-c"));
        ip(&format!("-n {name}-s link add s0 type veth peer name c0 netns {name}-c"));
        ip(&format!("-n {name}-s addr add {SERVER}/24 dev s0"));
        ip(&format!("-n {name}-s link set s0 up"));
        ip(&format!("-n {name}-c link set c0 address 52:54:00:ab:cd:01 up"));
        net
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a service in the server's namespace, on a thread of its own; returns when its sockets are
    /// open.
    fn start<S, B, R>(&mut self, bind: B, run: R)
    where
        B: AsyncFnOnce() -> Result<S, BootError> + Send + 'static,
        R: AsyncFnOnce(S, CancellationToken) -> Result<(), BootError> + Send + 'static,
    {
        let (namespace, shutdown) = (format!("{}-s", self.name), self.shutdown.clone());
        let (ready, wait) = std::sync::mpsc::channel();
        self.services.push(std::thread::spawn(move || {
            enter(&namespace);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let service = bind().await;
                ready.send(service.as_ref().err().map(ToString::to_string)).unwrap();
                run(service?, shutdown).await
            })
        }));
        let fault = wait.recv().unwrap();
        assert_eq!(fault, None);
    }

    fn start_dhcp(&mut self, mode: Mode) {
        let config = dhcp_config(mode);
        self.start(async || Dhcp::bind(config).await, async |dhcp, shutdown| dhcp.run(shutdown).await);
    }

    /// A command in the client's namespace.
    fn client(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}-c", self.name), program]);
        command
    }

    /// Does something on a thread in the client's namespace.
    fn as_client<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let namespace = format!("{}-c", self.name);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&namespace);
                act()
            });
            thread.join().unwrap()
        })
    }

    /// What busybox' DHCP client is given when it says these things of itself.
    fn lease(&self, arguments: &[&str]) -> String {
        let (script, out) = (self.path("udhcpc.sh"), self.path("lease"));
        fs::write(&script, format!("#!/bin/sh\n[ \"$1\" = bound ] && env > {}\nexit 0\n", out.display()))
            .unwrap();
        run(Command::new("chmod").arg("755").arg(&script));
        let _ = fs::remove_file(&out);
        let mut command = self.client("busybox");
        command.args(["udhcpc", "-i", "c0", "-n", "-q", "-f", "-t", "5", "-T", "1", "-s"]).arg(&script);
        let output = run(command.args(arguments));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        fs::read_to_string(&out).unwrap()
    }
}

impl Net {
    /// What dhclient is given by DHCPv6 when it sends this too.
    fn lease6(&self, sends: &str) -> String {
        let (script, out, settings) =
            (self.path("dhclient.sh"), self.path("lease6"), self.path("dhclient.conf"));
        // Whole, as soon as it is there.
        let keeps = format!("env > {0}.part && mv {0}.part {0}", out.display());
        fs::write(&script, format!("#!/bin/sh\n[ \"$reason\" = BOUND6 ] && {keeps}\nexit 0\n")).unwrap();
        run(Command::new("chmod").arg("755").arg(&script));
        // It does not send the class under its own name.
        let options =
            "option dhcp6.class code 15 = string;\nrequest dhcp6.bootfile-url, dhcp6.name-servers;\n";
        fs::write(&settings, format!("{options}{sends}\n")).unwrap();
        // It asks as if it had never had a lease.
        for file in [&out, &self.path("leases6")] {
            let _ = fs::remove_file(file);
        }
        let mut command = self.client("dhclient");
        command.args(["-6", "-1", "-d", "-D", "LL", "-cf"]).arg(&settings).arg("-sf").arg(&script);
        command.arg("-lf").arg(self.path("leases6")).arg("-pf").arg(self.path("pid6")).arg("c0");
        let mut client = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !out.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        client.kill().unwrap();
        let said = client.wait_with_output().unwrap().stderr;
        assert!(out.exists(), "{}", String::from_utf8_lossy(&said));
        // It writes a backslash before what means something to a shell.
        fs::read_to_string(&out).unwrap().replace('\\', "")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.shutdown.cancel();
        for service in self.services.drain(..) {
            let ended = service.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
        for side in ["s", "c"] {
            run(Command::new("ip").args(["netns", "del", &format!("{}-{side}", self.name)]));
        }
    }
}

fn enter(namespace: &str) {
    let file = fs::File::open(Path::new("/run/netns").join(namespace)).unwrap();
    setns(file, CloneFlags::CLONE_NEWNET).unwrap();
}

fn dhcp_config(mode: Mode) -> DhcpConfig {
    DhcpConfig { interface: "s0".to_owned(), server: SERVER, boot_url: URL.to_owned(), mode }
}

fn pool() -> Pool {
    Pool {
        first: Ipv4Addr::new(10, 9, 0, 100),
        last: Ipv4Addr::new(10, 9, 0, 120),
        prefix: 24,
        router: Some(SERVER),
        dns: vec![SERVER],
        lease: Duration::from_secs(600),
    }
}

#[test]
fn a_real_client_gets_an_address_and_its_boot_file() {
    let mut net = Net::new();
    net.start_dhcp(Mode::Server(pool()));
    let plain = net.lease(&[]);
    for line in ["subnet=255.255.255.0", "router=10.9.0.1", "dns=10.9.0.1", "lease=600", "serverid=10.9.0.1"]
    {
        assert!(plain.lines().any(|known| known == line), "{line} in {plain}");
    }
    let address = |lease: &str| lease.lines().find_map(|line| line.strip_prefix("ip=")).unwrap().to_owned();
    assert!(address(&plain).starts_with("10.9.0.1"), "{plain}");
    assert!(!plain.contains("boot_file"), "{plain}");

    let cases: [(&[&str], &str); 4] = [
        (&["-V", "PXEClient:Arch:00000:UNDI:002001", "-x", "0x5d:0000"], "undionly.kpxe"),
        (&["-V", "PXEClient:Arch:00007:UNDI:003001", "-x", "0x5d:0007"], "snponly.efi"),
        (
            &["-V", "HTTPClient:Arch:00016:UNDI:003001", "-x", "0x5d:0010"],
            "http://10.9.0.1:8080/boot/snponly.efi",
        ),
        (
            &["-V", "PXEClient:Arch:00007:UNDI:003010", "-x", "0x5d:0007", "-x", "0x4d:69505845"],
            "http://10.9.0.1:8080/boot/ipxe?mac=52:54:00:ab:cd:01",
        ),
    ];
    for (arguments, file) in cases {
        let lease = net.lease(arguments);
        assert!(lease.lines().any(|line| line == format!("boot_file={file}")), "{file} in {lease}");
        assert!(lease.lines().any(|line| line == "siaddr=10.9.0.1"), "{lease}");
        assert_eq!(address(&lease), address(&plain), "the same node, the same address");
    }
}

/// The DHCP client's port. A child that another test is just starting holds what was open here until its exec,
/// so a port that was closed a moment ago may still be taken.
fn client_port() -> UdpSocket {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 68)) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::yield_now();
            }
            bound => return bound.unwrap(),
        }
    }
}

/// Broadcasts a packet from port 68 until an answer comes; `None` when none does within the time.
fn exchange(asked: &Message, to: (Ipv4Addr, u16), patience: Duration) -> Option<Message> {
    let socket = client_port();
    socket.set_broadcast(true).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let deadline = Instant::now() + patience;
    let mut buffer = [0; 2048];
    while Instant::now() < deadline {
        socket.send_to(&asked.to_vec().unwrap(), to).unwrap();
        if let Ok((length, _)) = socket.recv_from(&mut buffer) {
            return Some(Message::decode(&mut Decoder::new(&buffer[..length])).unwrap());
        }
    }
    None
}

#[test]
fn a_proxy_answers_pxe_clients_on_both_ports_and_no_other_client() {
    let mut net = Net::new();
    net.start_dhcp(Mode::Proxy);
    ip(&format!("-n {}-c addr add 10.9.0.50/24 dev c0", net.name));
    ip(&format!("-n {}-c route add default dev c0", net.name));
    let mut asked = Message::default();
    asked
        .set_chaddr(&[0x52, 0x54, 0, 0xab, 0xcd, 1])
        .opts_mut()
        .insert(DhcpOption::MessageType(MessageType::Discover));
    let plain = asked.clone();
    asked.opts_mut().insert(DhcpOption::ClassIdentifier(b"PXEClient:Arch:00007".to_vec()));
    asked.opts_mut().insert(DhcpOption::ClientSystemArchitecture(Architecture(7)));
    let mut again = asked.clone();
    again.opts_mut().insert(DhcpOption::MessageType(MessageType::Request));

    let broadcast = (Ipv4Addr::BROADCAST, 67);
    let patience = Duration::from_secs(10);
    let (offer, ack, silence) = net.as_client(|| {
        let offer = exchange(&asked, broadcast, patience);
        let ack = exchange(&again, (SERVER, 4011), patience);
        (offer, ack, exchange(&plain, broadcast, Duration::from_secs(1)))
    });
    for (reply, kind) in [(offer.unwrap(), MessageType::Offer), (ack.unwrap(), MessageType::Ack)] {
        assert!(reply.opts().has_msg_type(kind), "{reply}");
        let file = String::from_utf8_lossy(reply.fname().unwrap()).into_owned();
        assert_eq!((file.trim_end_matches('\0'), reply.siaddr()), ("snponly.efi", SERVER));
        assert!(reply.yiaddr().is_unspecified());
    }
    assert!(silence.is_none(), "{silence:?}");
}

#[test]
fn garbage_does_not_stop_the_service() {
    let mut net = Net::new();
    net.start_dhcp(Mode::Server(pool()));
    net.as_client(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 68)).unwrap();
        socket.set_broadcast(true).unwrap();
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::BindToDevice, &"c0".into()).unwrap();
        // Empty, short, and an option that makes dhcproto panic (152 of length 0).
        let mut hostile = vec![0; 240];
        hostile[..3].copy_from_slice(&[1, 1, 6]);
        hostile[236..].copy_from_slice(&[99, 130, 83, 99]);
        hostile.extend([53, 1, 1, 152, 0, 255]);
        for packet in [&[][..], &[1; 20], &[0xff; 1400], &hostile] {
            socket.send_to(packet, (Ipv4Addr::BROADCAST, 67)).unwrap();
        }
    });
    assert!(net.lease(&[]).contains("ip=10.9.0."));
}

#[test]
fn tftp_serves_loaders_and_nothing_else() {
    let mut net = Net::new();
    let loader: Vec<u8> = (0..300_007u32).map(|n| (n % 253).to_le_bytes()[0]).collect();
    fs::write(net.path("undionly.kpxe"), &loader).unwrap();
    fs::write(net.path("secret"), b"secret").unwrap();
    ip(&format!("-n {}-c addr add 10.9.0.50/24 dev c0", net.name));
    let config = TftpConfig { listen: (SERVER, 69).into(), loader_dir: net.dir.path().to_owned() };
    net.start(async || Tftp::bind(config).await, async |tftp, shutdown| tftp.run(shutdown).await);

    let get = |name: &str, block: &str| {
        let out = net.path("out");
        let _ = fs::remove_file(&out);
        let mut command = net.client("busybox");
        command.args(["tftp", "-g", "-b", block, "-r", name, "-l"]).arg(&out).arg(SERVER.to_string());
        let output = run(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), fs::read(&out).unwrap_or_default(), said)
    };
    for block in ["512", "1468", "8192"] {
        let (done, bytes, said) = get("undionly.kpxe", block);
        assert!(done && bytes == loader, "block size {block}: {said}");
    }
    for name in ["secret", "../secret", "/etc/passwd", "snponly.efi"] {
        let (done, bytes, said) = get(name, "512");
        assert!(!done && bytes.is_empty() && said.contains("server error"), "{name}: {said}");
    }
    let mut put = net.client("busybox");
    put.args(["tftp", "-p", "-r", "undionly.kpxe", "-l"]).arg(net.path("secret")).arg(SERVER.to_string());
    assert!(!run(&mut put).status.success());
    assert!(fs::read(net.path("undionly.kpxe")).unwrap() == loader);
}

#[test]
fn a_solicitation_is_answered_with_an_empty_advertisement() {
    let mut net = Net::new();
    net.start(
        async || RouterAdvertiser::bind("s0", None),
        async |service, shutdown| service.run(shutdown).await,
    );
    let advertisement = net.as_client(|| {
        use nix::sys::socket::{
            AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt,
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Inet6, SockType::Raw, flags, SockProtocol::IcmpV6).unwrap();
        setsockopt(&fd, sockopt::Ipv6MulticastHops, &255).unwrap();
        let socket = UdpSocket::from(fd);
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let index = nix::net::if_::if_nametoindex("c0").unwrap();
        let routers = SocketAddrV6::new("ff02::2".parse().unwrap(), 0, 0, index);
        let deadline = Instant::now() + Duration::from_secs(15);
        let mut buffer = [0; 1500];
        while Instant::now() < deadline {
            // Fails until the interface has done its duplicate address detection.
            let _ = socket.send_to(&[133, 0, 0, 0, 0, 0, 0, 0], routers);
            while let Ok((length, _)) = socket.recv_from(&mut buffer) {
                if buffer[0] == 134 {
                    return buffer[..length].to_vec();
                }
            }
        }
        panic!("no advertisement")
    });
    assert_eq!(advertisement.len(), 16, "no prefix");
    assert_eq!(advertisement[6..8], [0, 0], "router lifetime");
}

/// dhclient asks, as firmware and iPXE do, and Linux makes an address of the prefix.
#[test]
fn nodes_boot_over_ipv6() {
    const SIX: &str = "2001:db8:0:9::1";
    let server: Ipv6Addr = SIX.parse().unwrap();
    let mut net = Net::new();
    ip(&format!("-n {}-s addr add {SIX}/64 dev s0 nodad", net.name));
    fs::write(net.path("snponly.efi"), b"loader").unwrap();
    let config = Dhcp6Config {
        interface: "s0".to_owned(),
        server,
        boot_url: format!("http://[{SIX}]:8089"),
        dns: vec![server],
    };
    let files = TftpConfig { listen: (server, 69).into(), loader_dir: net.dir.path().to_owned() };
    net.start(async || Dhcp6::bind(config).await, async |dhcp, shutdown| dhcp.run(shutdown).await);
    net.start(async || Tftp::bind(files).await, async |tftp, shutdown| tftp.run(shutdown).await);
    net.start(
        async move || RouterAdvertiser::bind("s0", Some(server)),
        async |service, shutdown| service.run(shutdown).await,
    );

    // Taken down and up, it asks for routers once more.
    ip(&format!("-n {}-c link set c0 down", net.name));
    ip(&format!("-n {}-c link set c0 up", net.name));
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let output =
            run(net.client("ip").args(["-6", "-o", "address", "show", "dev", "c0", "scope", "global"]));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.contains("2001:db8:0:9:5054:ff:feab:cd01/64") && !text.contains("tentative") {
            break;
        }
        assert!(Instant::now() < deadline, "no address by router advertisements: {text}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let routes = run(net.client("ip").args(["-6", "route", "show", "default"])).stdout;
    assert!(routes.is_empty(), "no router is advertised: {}", String::from_utf8_lossy(&routes));

    let firmware = net.lease6("send dhcp6.client-arch-type 7;");
    let again = net.lease6("send dhcp6.client-arch-type 7;");
    let address = |lease: &str| {
        lease.lines().find_map(|line| line.strip_prefix("new_ip6_address=")).unwrap().to_owned()
    };
    assert!(address(&firmware).starts_with("2001:db8:0:9:a22e:"), "{firmware}");
    assert_eq!(address(&firmware), address(&again));
    for line in [
        format!("new_dhcp6_bootfile_url=tftp://[{SIX}]/snponly.efi"),
        format!("new_dhcp6_name_servers={SIX}"),
    ] {
        assert!(firmware.lines().any(|known| known == line), "{line} in {firmware}");
    }
    let ipxe = net.lease6("send dhcp6.class 00:04:69:50:58:45;");
    let line = format!("new_dhcp6_bootfile_url=http://[{SIX}]:8089/boot/ipxe?mac=${{netX/mac}}");
    assert!(ipxe.lines().any(|known| known == line), "{line} in {ipxe}");

    let out = net.path("out");
    let mut command = net.client("busybox");
    let output = run(command.args(["tftp", "-g", "-r", "snponly.efi", "-l"]).arg(&out).arg(SIX));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(&out).unwrap(), b"loader");
}

/// SOLICIT of a client, with one association.
const SOLICIT: [u8; 34] = [
    1, 0, 0, 1, 0, 1, 0, 10, 0, 3, 0, 1, 0x52, 0x54, 0, 0xab, 0xcd, 1, 0, 3, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0,
    0, 0, 0, 0,
];

#[test]
fn dhcpv6_answers_the_clients_of_its_network_alone() {
    let mut net = Net::new();
    let config = Dhcp6Config {
        interface: "s0".to_owned(),
        server: "2001:db8:0:9::1".parse().unwrap(),
        boot_url: "http://[2001:db8:0:9::1]:8089".to_owned(),
        dns: Vec::new(),
    };
    net.start(async || Dhcp6::bind(config).await, async |dhcp, shutdown| dhcp.run(shutdown).await);
    ip(&format!("-n {}-s addr add 2001:db8:0:9::1/64 dev s0 nodad", net.name));
    ip(&format!("-n {}-c addr add 2001:db8:0:9::5/64 dev c0 nodad", net.name));
    net.as_client(|| {
        let index = nix::net::if_::if_nametoindex("c0").unwrap();
        let servers = SocketAddrV6::new("ff02::1:2".parse().unwrap(), 547, 0, index);
        let asks = |from: SocketAddrV6, packet: &[u8], patience: Duration| {
            let socket = UdpSocket::bind(from).ok()?;
            socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let deadline = Instant::now() + patience;
            let mut buffer = [0; 1500];
            while Instant::now() < deadline {
                // Fails until the interface has done its duplicate address detection.
                let _ = socket.send_to(packet, servers);
                if let Ok((length, _)) = socket.recv_from(&mut buffer) {
                    return Some(buffer[..length].to_vec());
                }
            }
            None
        };
        // EUI-64 of c0; it can be bound as soon as no other host is known to have it.
        let own = SocketAddrV6::new("fe80::5054:ff:feab:cd01".parse().unwrap(), 546, 0, index);
        let deadline = Instant::now() + Duration::from_secs(30);
        let advertised = loop {
            match asks(own, &SOLICIT, Duration::from_secs(1)) {
                Some(advertised) => break advertised,
                None => assert!(Instant::now() < deadline, "no answer"),
            }
        };
        assert_eq!(advertised[..4], [2, 0, 0, 1]);
        let abroad = SocketAddrV6::new("2001:db8:0:9::5".parse().unwrap(), 546, 0, 0);
        assert_eq!(asks(abroad, &SOLICIT, Duration::from_secs(1)), None);
        for garbage in [&[][..], &[1; 3], &[0xff; 1400], &SOLICIT[..33]] {
            assert_eq!(asks(own, garbage, Duration::from_millis(300)), None);
        }
        assert!(asks(own, &SOLICIT, Duration::from_secs(10)).is_some(), "garbage stopped the service");
    });
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let config = DhcpConfig { interface: "an-none".to_owned(), ..dhcp_config(Mode::Proxy) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(Dhcp::bind(config)).err().unwrap();
    assert!(error.to_string().contains("an-none"), "{error}");
}
