//! The server over real sockets, with clients that do not do their part.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use http_server::{Clients, Limits, Peer, Places, Server, Timeouts};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Time limit of what the tests let run into it.
const SHORT: Duration = Duration::from_millis(300);
/// Time limit of what must not run into it.
const LONG: Duration = Duration::from_secs(60);
/// A test waits this long at most.
const PATIENCE: Duration = Duration::from_secs(20);

const PATIENT: Timeouts = Timeouts { head: LONG, body: LONG, idle: LONG };

struct Running {
    address: SocketAddr,
    places: Arc<Places>,
    operators: Arc<Places>,
    released: Arc<Notify>,
    _stop: DropGuard,
}

async fn running(timeouts: Timeouts, limits: Limits, tls: Option<Arc<rustls::ServerConfig>>) -> Running {
    let released = Arc::new(Notify::new());
    let waiting = released.clone();
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/length", post(async |body: Bytes| body.len().to_string()))
        .route("/login", get(async |peer: axum::Extension<Peer>| peer.authenticated()))
        .route("/endless", get(async || Body::from_stream(futures_util::stream::repeat_with(chunk))))
        .route("/later", get(move || waiting.clone().notified_owned()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (places, operators) = (Places::new("agents", limits), Places::new("operators", limits));
    let clients = Clients { timeouts, places: places.clone(), operators: Some(operators.clone()) };
    let stop = CancellationToken::new();
    tokio::spawn(
        Server { listener: listener.into(), tls, router, clients }.run(stop.clone(), Duration::ZERO),
    );
    Running { address, places, operators, released, _stop: stop.drop_guard() }
}

fn chunk() -> Result<Bytes, std::io::Error> {
    Ok(Bytes::from_static(&[0; 1 << 16]))
}

const FEW: Limits = Limits { total: 8, per_address: 8 };

impl Running {
    async fn client(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// The status of a whole request on a connection of its own.
    async fn status(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        ended(self.client(&request).await).await
    }

    async fn wait_for(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let all = async {
            while !done(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.unwrap_or_else(|_| panic!("{what} in time"));
    }
}

/// What the server sent until it closed the connection.
async fn ended(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    match tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        Err(_) => panic!("the connection is still open"),
    }
    String::from_utf8(text).unwrap()
}

/// Read until the server has sent `end`.
async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let byte =
            tokio::time::timeout(PATIENCE, stream.read_u8()).await.expect("an answer in time").unwrap();
        text.push(char::from(byte));
    }
    text
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let server = running(Timeouts { head: SHORT, ..PATIENT }, FEW, None).await;
    for text in ["", "GET", "GET / HTTP/1.1\r\nhost: x\r\n"] {
        assert_eq!(ended(server.client(text).await).await, "", "{text:?}");
    }
    // A second head on the same connection.
    let mut stream = server.client("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    read_to(&mut stream, "here").await;
    stream.write_all(b"GET").await.unwrap();
    assert_eq!(ended(stream).await, "");
    server.wait_for("places are free", |server| server.places.in_use() == 0).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_the_connection() {
    let server = running(Timeouts { body: SHORT, ..PATIENT }, FEW, None).await;
    for body in ["content-length: 5\r\n\r\nfour", "transfer-encoding: chunked\r\n\r\n4\r\nfour\r\n"] {
        let text = format!("POST /length HTTP/1.1\r\nhost: x\r\n{body}");
        let answer = ended(server.client(&text).await).await;
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    let mut whole = server.client("POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nfour").await;
    read_to(&mut whole, "\r\n\r\n4").await;
}

#[tokio::test]
async fn an_idle_connection_ends_and_a_used_one_does_not() {
    let idle = Duration::from_secs(3);
    let server = running(Timeouts { head: LONG, body: LONG, idle }, FEW, None).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let began = tokio::time::Instant::now();
    while began.elapsed() < idle + SHORT {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        read_to(&mut stream, "here").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ended(stream).await, "");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let server = running(Timeouts { body: SHORT, ..PATIENT }, FEW, None).await;
    let _stream = server.client("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    server.wait_for("it is connected", |server| server.places.in_use() == 1).await;
    server.wait_for("it is disconnected", |server| server.places.in_use() == 0).await;
}

#[tokio::test]
async fn an_answer_may_take_longer_than_any_limit_of_the_client() {
    let server = running(Timeouts { head: SHORT, body: SHORT, idle: SHORT }, FEW, None).await;
    let mut stream = server.client("GET /later HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    let early = tokio::time::timeout(SHORT * 3, stream.read_u8()).await;
    assert!(early.is_err(), "neither an answer nor an end");
    server.released.notify_one();
    assert!(ended(stream).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn half_requests_keep_out_no_other_client() {
    let server = running(PATIENT, Limits { total: 8, per_address: 4 }, None).await;
    let mut half = Vec::new();
    for _ in 0..40 {
        half.push(server.client("GET / HTTP/1.1\r\n").await);
    }
    assert!(server.status("/").await.starts_with("HTTP/1.1 200 OK"));
    server.wait_for("the address has its most", |server| server.places.in_use() <= 4).await;
    for stream in half.drain(..36) {
        assert_eq!(ended(stream).await, "", "the oldest are closed");
    }
}

#[tokio::test]
async fn when_all_are_busy_a_connection_waits_for_a_place() {
    let server = running(PATIENT, Limits { total: 2, per_address: 2 }, None).await;
    let mut busy = Vec::new();
    for _ in 0..2 {
        busy.push(server.client("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await);
        read_to(busy.last_mut().unwrap(), "\r\n\r\n").await;
    }
    assert_eq!(ended(server.client("").await).await, "", "its address has its most");
    // 127.0.0.2 is another address.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(server.address).await.unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(tokio::time::timeout(SHORT, other.read_u8()).await.is_err(), "no place is free");
    busy.pop();
    read_to(&mut other, "here").await;
}

#[tokio::test]
async fn an_authenticated_connection_counts_elsewhere() {
    let server = running(PATIENT, FEW, None).await;
    let mut stream = server.client("GET /login HTTP/1.1\r\nhost: x\r\n\r\n").await;
    read_to(&mut stream, "\r\n\r\n").await;
    assert_eq!((server.places.in_use(), server.operators.in_use()), (0, 1));
    drop(stream);
    server.wait_for("the place is free", |server| server.operators.in_use() == 0).await;
}

#[tokio::test]
async fn a_handshake_that_does_not_come_ends_the_connection() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap().der().clone();
    let tls = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(
        vec![certificate],
        rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
    );
    let timeouts = Timeouts { head: SHORT, ..PATIENT };
    let server = running(timeouts, FEW, Some(Arc::new(tls.unwrap()))).await;
    for text in ["", "\x16\x03\x01"] {
        assert_eq!(ended(server.client(text).await).await, "", "{text:?}");
    }
}
