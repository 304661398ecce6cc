//! Half requests to every port.

use crate::controller::{Controller, command, free_port};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

/// Addresses that half requests come from.
const ADDRESSES: u8 = 250;
/// Half requests from each of them to each port: 5,000 in all.
const FROM_EACH: u8 = 20;

/// Connections with half a head, from many addresses.
async fn half_requests(to: SocketAddr) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for number in 0..ADDRESSES {
        for _ in 0..FROM_EACH {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((Ipv4Addr::new(127, 1, 0, number), 0).into()).unwrap();
            let mut stream = socket.connect(to).await.unwrap();
            // A connection that was closed for a later one already.
            let _ = stream.write_all(b"GET /v1/no").await;
            streams.push(stream);
        }
    }
    streams
}

/// The same program with limits of its own, as `ulimit` sets them.
fn limited(command: &Command, limits: &str, dir: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.stderr(File::create(dir.join("log")).unwrap());
    shell.arg("-c").arg(format!("{limits}; exec \"$@\"")).arg("sh").arg(command.get_program());
    shell.args(command.get_args());
    shell
}

/// 5,000 half requests to each of the ports of boot, agents and operators, with places for 64 each, and with 400 file
/// descriptors for the whole process.
#[tokio::test]
async fn half_requests_to_every_port_leave_operators_boot_and_conductor_working() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    assert!(hard >= 16_384, "{soft} {hard}");
    let dir = tempfile::tempdir().unwrap();
    let (api, agents, boot) = (free_port(), free_port(), free_port());
    let kernel = dir.path().join("kernel");
    std::fs::write(&kernel, "kernel").unwrap();
    let settings = format!(
        "[connections]\nboot = 64\nagents = 64\noperators = 64\noperators_per_address = 64\n[boot]\nenabled = true\n\
         address = \"127.0.0.1\"\nhttp_port = {boot}\ntftp = false\nkernel = {kernel:?}\ninitramfs = {kernel:?}\n"
    );
    let listen = format!("\"127.0.0.1:{api}\", \"0.0.0.0:{agents}\"");
    let command = limited(&command(dir.path(), &listen, &settings), "ulimit -n 400", dir.path());
    let controller = Controller::run(dir, api, command).await;
    let half = |port: u16| half_requests(([127, 0, 0, 1], port).into());
    let held = tokio::join!(half(boot), half(agents), half(api));
    controller.make_manageable("n").await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let script = client.get(format!("http://127.0.0.1:{boot}/boot/ipxe?mac=52:54:00:00:00:01")).send().await;
    assert!(script.unwrap().status().is_success());
    let client = reqwest::Client::builder().no_proxy().danger_accept_invalid_certs(true).build().unwrap();
    let lookup = format!("https://127.0.0.1:{agents}/v1/lookup?addresses=52:54:00:00:00:01");
    assert_eq!(client.get(lookup).send().await.unwrap().status().as_u16(), 404);
    assert!(!controller.log().contains("Too many open files"), "{}", controller.log());
    drop(held);
}

/// Waits in the kernel while the queue of the listener is full, as clients do. A connection that may not wait is refused then (EAGAIN).
fn connect(socket: &Path) -> UnixStream {
    let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    stream.set_nonblocking(true).unwrap();
    UnixStream::from_std(stream).unwrap()
}

/// 5,000 half requests to the operators' socket, all of this user: its requests and those on the loopback port are answered.
#[tokio::test]
async fn half_requests_to_the_operators_socket_leave_it_working() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let api = free_port();
    let settings = "auth_strategy = \"token\"\n[connections]\noperators = 64\noperators_per_address = 64\n";
    let command = command(dir.path(), &format!("\"127.0.0.1:{api}\""), settings);
    let command = limited(&command, "ulimit -n 200", dir.path());
    let socket = dir.path().join("state/api.sock");
    let controller = Controller::run(dir, api, command).await;
    let mut held = Vec::new();
    for _ in 0..u32::from(ADDRESSES) * u32::from(FROM_EACH) {
        let mut stream = connect(&socket);
        let _ = stream.write_all(b"GET /v1/no").await;
        held.push(stream);
    }
    let mut stream = connect(&socket);
    stream
        .write_all(b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"nodes\""), "{answer}");
    assert!(controller.get("/healthcheck").await.is_some());
    assert!(!controller.log().contains("Too many open files"), "{}", controller.log());
}

#[tokio::test]
async fn the_limit_of_open_files_is_raised_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let listen = format!("\"127.0.0.1:{port}\"");
    let limits = "ulimit -S -n 100; ulimit -H -n 4000";
    let command = limited(&command(dir.path(), &listen, ""), limits, dir.path());
    let controller = Controller::run(dir, port, command).await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", controller.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[3..5], ["4000", "4000"], "{line}");
}

/// One place for agents: a user's connection is still open after an agent has connected.
#[tokio::test]
async fn a_users_connection_is_not_closed_for_those_of_agents() {
    let dir = tempfile::tempdir().unwrap();
    let (api, agents) = (free_port(), free_port());
    let users = dir.path().join("users");
    // "myPassword" with cost 5.
    std::fs::write(&users, "user:$2y$05$abcdefghijklmnopqrstuugwV8qBBvnFAgKU/1lAQTjzoU4mNz2BW\n").unwrap();
    let settings = format!(
        "auth_strategy = \"http_basic\"\nhttp_basic_auth_user_file = {users:?}\n[connections]\nagents = 1\n\
         agents_per_address = 1\n"
    );
    let listen = format!("\"127.0.0.1:{api}\", \"0.0.0.0:{agents}\"");
    let command = command(dir.path(), &listen, &settings);
    let controller = Controller::run(dir, api, command).await;
    let client = || reqwest::Client::builder().no_proxy().danger_accept_invalid_certs(true).build().unwrap();
    let url = |path: &str| format!("https://127.0.0.1:{agents}{path}");
    let (user, agent) = (client(), client());
    let nodes = user.get(url("/v1/nodes")).basic_auth("user", Some("myPassword")).send().await.unwrap();
    assert_eq!(nodes.status().as_u16(), 200);
    nodes.bytes().await.unwrap();
    let found = agent.get(url("/v1")).send().await.unwrap();
    assert_eq!(found.status().as_u16(), 200);
    found.bytes().await.unwrap();
    assert!(!controller.log().contains("closed for a new connection"), "{}", controller.log());
    // The same between two agents: the first is idle, and gives up its place.
    let third = client().get(url("/v1")).send().await.unwrap();
    assert_eq!(third.status().as_u16(), 200);
    controller.wait_for_log("closed for a new connection").await;
}
