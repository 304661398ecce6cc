//! Bytes on a real socket: what is no HTTP, or hardly. The listener lives on, nothing is a 5xx, and what was refused
//! changed nothing.

use crate::common::test_store::StoreKind;
use crate::rng::Rng;
use crate::world::World;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longest that one conversation may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Request lines; `@` is where a target stands.
const LINES: [&str; 10] = [
    "POST @ HTTP/1.1",
    "PATCH @ HTTP/1.1",
    "PUT @ HTTP/1.1",
    "GET @ HTTP/1.1",
    "DELETE @ HTTP/1.1",
    "POST @ HTTP/1.0",
    "BREW @ HTTP/1.1",
    "GET http://other/@ HTTP/1.1",
    "CONNECT @ HTTP/1.1",
    "GET @ HTTP/9.9",
];

const TARGETS: [&str; 9] = [
    "/v1/nodes",
    "/v1/nodes/a",
    "/v1/nodes/a/states/provision",
    "/v1/nodes/a/maintenance",
    "/v1/anneal/bundles",
    "/v1/heartbeat/b",
    "*",
    "/\u{e4}",
    "/v1/nodes?limit=%",
];

/// Headers that quarrel with the body or with each other.
const HEADERS: [&str; 16] = [
    "Content-Length: 5",
    "Content-Length: 100000",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999999999",
    "Content-Length: 2\r\nContent-Length: 20",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 3",
    "Transfer-Encoding: gzip, chunked",
    "Expect: 100-continue\r\nContent-Length: 31",
    "Expect: 200-nonsense\r\nContent-Length: 31",
    "Content-Encoding: gzip\r\nContent-Length: 31",
    "X-OpenStack-Ironic-API-Version: 1.115\r\nX-OpenStack-Ironic-API-Version: 1.1",
    "X-OpenStack-Ironic-API-Version: \u{ff}",
    "Host: a\r\nHost: b",
    "X: y\r\n folded",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
];

const BODIES: [&str; 6] = [
    "{\"driver\": \"fake-hardware\"}    ",
    "1f\r\n{\"driver\": \"fake-hardware\"}    \r\n0\r\n\r\n",
    "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "{\"target\": \"inspect\"}           ",
    "",
    "GET /v1/nodes HTTP/1.1\r\nHost: smuggled\r\n\r\n",
];

/// Conversations; each takes a connection.
const TALKS: usize = 600;

#[tokio::test]
async fn no_bytes_break_the_listener() {
    let world = World::new(StoreKind::Memory, 0).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(axum::serve(listener, world.api.router.clone()).into_future());
    let mut rng = Rng::new(1, 0);
    let mut before = world.everything().await;
    for _ in 0..TALKS {
        let mut text = rng.pick(&LINES).replace('@', rng.word(&TARGETS));
        text.push_str("\r\nHost: h\r\nConnection: close\r\n");
        for _ in 0..rng.below(3) {
            text.push_str(rng.word(&HEADERS));
            text.push_str("\r\n");
        }
        if rng.percent(3) {
            text.push_str(&format!("X: {}\r\n", "x".repeat(600_000)));
        }
        text.push_str("\r\n");
        text.push_str(rng.word(&BODIES));
        if rng.percent(5) {
            text.truncate((0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        }
        let shown: String = text.chars().take(600).collect();
        let talk = tokio::time::timeout(LIMIT, say(address, text.as_bytes()));
        let answer = talk.await.unwrap_or_else(|_| panic!("no end: {shown:?}"));
        let after = world.everything().await;
        let statuses = statuses(&answer);
        assert!(statuses.iter().all(|status| *status < 500), "{statuses:?}: {shown:?}: {answer}");
        if !statuses.iter().any(|status| (200..300).contains(status)) {
            assert_eq!(before, after, "nothing was granted, and something changed: {shown:?}: {answer}");
        }
        before = after;
    }
    let whole = say(
        address,
        b"GET /v1/nodes/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
        X-OpenStack-Ironic-API-Version: 1.115\r\n\r\n",
    );
    assert_eq!(statuses(&whole.await), [200], "the listener is dead");
    server.abort();
}

/// Say it, stop talking, and listen to the end.
async fn say(address: std::net::SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The server may reject a request before it has read all of it.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Statuses of the answers, in their order.
fn statuses(answer: &str) -> Vec<u16> {
    let starts = answer.match_indices("HTTP/1.").map(|(at, _)| &answer[at..]);
    starts.filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect()
}
