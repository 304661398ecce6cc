//! Mirrors behind a proxy.

use crate::authority::Authority;
use crate::mirror::{Mirror, fetched, source, trust};
use image_source::{Hosts, Proxies, Source};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// `me:word` in base64.
const CREDENTIALS: &str = "proxy-authorization: Basic bWU6d29yZA==";

/// An HTTP proxy on loopback. To plain HTTP it answers by itself, as a cache does.
struct HttpProxy {
    address: SocketAddr,
    /// The head of each request.
    heads: Arc<Mutex<Vec<String>>>,
}

impl HttpProxy {
    /// A client that does not show [`CREDENTIALS`] gets 407.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let proxy = Self { address: listener.local_addr().expect("bound"), heads: Arc::default() };
        let heads = proxy.heads.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let heads = heads.clone();
                thread::spawn(move || serve(stream, &heads));
            }
        });
        proxy
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }

    /// Both schemes through it, with these credentials.
    fn with(&self, userinfo: &str) -> Proxies {
        let proxy = || Some(format!("http://{userinfo}{}", self.address).parse().expect("a proxy"));
        Proxies { http: proxy(), https: proxy(), ..Proxies::default() }
    }
}

fn serve(mut client: TcpStream, heads: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let lines = reader.by_ref().lines().map_while(Result::ok);
    let head = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    heads.lock().expect("no panic").push(head.clone());
    if !head.contains(CREDENTIALS) {
        return client.write_all(b"HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n");
    }
    let Some(target) = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()) else {
        return client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nan image");
    };
    let mut mirror = TcpStream::connect(target)?;
    client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let (mut from, mut to) = (client.try_clone()?, mirror.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        to.shutdown(Shutdown::Write)
    });
    io::copy(&mut mirror, &mut client).map(drop)
}

fn through(proxies: Proxies, of: Source) -> Result<Vec<u8>, String> {
    fetched(&Source { proxies, ..of })
}

#[test]
fn https_is_fetched_through_a_tunnel_and_the_mirror_proves_who_it_is() {
    let (ours, other) = (Authority::new(), Authority::new());
    let (proxy, mirror) = (HttpProxy::start(), Mirror::good(&ours.signs("127.0.0.1"), b"an image"));
    let asked = |pem| source(&mirror.url("/a?key=secret"), trust(Some(pem), &[]));
    assert_eq!(through(proxy.with("me:word@"), asked(&ours.pem)), Ok(b"an image".to_vec()));
    let heads = proxy.heads();
    assert!(heads[0].starts_with(&format!("CONNECT {} HTTP/1.1\n", mirror.address)), "{heads:?}");
    assert!(!heads[0].contains("secret"), "the proxy sees the URL: {heads:?}");
    assert_eq!(mirror.seen(), [("/a?key=secret".to_owned(), None)]);
    let said = through(proxy.with("me:word@"), asked(&other.pem)).expect_err("another authority");
    assert!(said.contains("is not signed by an authority"), "{said}");
}

#[test]
fn http_is_asked_of_the_proxy_by_its_whole_url() {
    let proxy = HttpProxy::start();
    // Nothing listens there: the proxy alone was asked.
    let plain = || source("http://127.0.0.1:1/a?b", trust(None, &[]));
    assert_eq!(through(proxy.with("me:word@"), plain()), Ok(b"an image".to_vec()));
    assert!(proxy.heads()[0].starts_with("GET http://127.0.0.1:1/a?b HTTP/1.1\n"), "{:?}", proxy.heads());
    let direct = Proxies { none_for: "127.0.0.0/8".parse().expect("hosts"), ..proxy.with("me:word@") };
    assert!(through(direct, plain()).is_err());
    assert_eq!(proxy.heads().len(), 1, "a host without a proxy was asked through it");
}

#[test]
fn a_proxy_that_refuses_is_named_without_its_password() {
    let ours = Authority::new();
    let (proxy, mirror) = (HttpProxy::start(), Mirror::good(&ours.signs("127.0.0.1"), b"an image"));
    let asked = || source(&mirror.url("/a"), trust(Some(&ours.pem), &[]));
    let said = through(proxy.with("me:wrong@"), asked()).expect_err("407");
    let shown = format!("the proxy http://******@{}/ answered 407", proxy.address);
    assert!(said.contains(&shown) && !said.contains("wrong"), "{said}");
    assert_eq!(proxy.heads().len(), 1, "what is refused is refused again");
    assert!(mirror.seen().is_empty());
}

#[test]
fn hosts_are_judged_before_a_proxy_is_asked() {
    let proxy = HttpProxy::start();
    let mut closed = source("http://mirror.example/a", trust(None, &[]));
    let said = through(proxy.with("me:word@"), closed.clone()).expect_err("a name that no rule names");
    assert!(said.contains("mirror.example is not in [images] hosts by its name"), "{said}");
    closed.hosts = Hosts::default();
    closed.url = "http://127.0.0.1:1/a".parse().expect("a URL");
    let said = through(proxy.with("me:word@"), closed).expect_err("loopback");
    assert!(said.contains("is a loopback address"), "{said}");
    assert!(proxy.heads().is_empty());
}
