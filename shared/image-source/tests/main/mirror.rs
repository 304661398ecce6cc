//! An HTTPS server on loopback with one file, and a client for it.

use crate::authority::Certificate;
use image_source::{
    Bytes, Head, Host, Hosts, Limits, Pins, Proxies, Receiver, RequestHeaders, Signers, Source, SourceError,
    Trust, fetch,
};
use rustls::{ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is done with one request.
#[derive(Debug, Clone)]
pub enum Answer {
    File,
    /// The connection ends after so many bytes.
    Cut(usize),
    Redirect(String),
}

/// Each request as it came: its path, and from which byte on.
type Seen = Arc<Mutex<Vec<(String, Option<usize>)>>>;

/// Serves until the process ends.
pub struct Mirror {
    pub address: SocketAddr,
    seen: Seen,
}

impl Mirror {
    /// `answer` is asked with the number of the request, from 0.
    pub fn new(
        certificate: &Certificate,
        file: Vec<u8>,
        answer: impl Fn(usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mirror = Mirror { address: listener.local_addr().expect("bound"), seen: Seen::default() };
        let (seen, server) = (mirror.seen.clone(), certificate.server.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let connection = ServerConnection::new(server.clone()).expect("a connection");
                let _ = serve(StreamOwned::new(connection, stream), &file, &seen, &answer);
            }
        });
        mirror
    }

    pub fn good(certificate: &Certificate, file: &[u8]) -> Self {
        Self::new(certificate, file.to_vec(), |_| Answer::File)
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub fn seen(&self) -> Vec<(String, Option<usize>)> {
        self.seen.lock().expect("no panic").clone()
    }
}

fn serve(
    mut stream: StreamOwned<ServerConnection, TcpStream>,
    file: &[u8],
    seen: &Seen,
    answer: &dyn Fn(usize) -> Answer,
) -> std::io::Result<()> {
    let lines = BufReader::new(&mut stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else { return Ok(()) };
    // The password of a proxy is not for mirrors.
    if head.iter().any(|line| line.starts_with("proxy-authorization:")) {
        return stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    }
    let from =
        head.iter().find_map(|line| line.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok());
    let number = {
        let mut seen = seen.lock().expect("no panic");
        seen.push((path.to_owned(), from));
        seen.len() - 1
    };
    let whole = file.len();
    let (status, body) = match from {
        Some(from) => {
            (format!("206 Part\r\ncontent-range: bytes {from}-{}/{whole}", whole - 1), &file[from..])
        }
        None => ("200 OK".to_owned(), file),
    };
    match answer(number) {
        Answer::Redirect(to) => {
            write!(stream, "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")?;
        }
        answer => {
            let end = if let Answer::Cut(after) = answer { after.min(body.len()) } else { body.len() };
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\netag: \"1\"\r\n\r\n", body.len())?;
            stream.write_all(&body[..end])?;
        }
    }
    stream.conn.send_close_notify();
    stream.flush()
}

/// What is trusted, by PEM and by host and pin.
pub fn trust(pem: Option<&str>, pins: &[(&str, &Certificate)]) -> Trust {
    let mut all = Pins::default();
    pins.iter().for_each(|(host, certificate)| all.add(host, certificate.pin));
    let signers = pem.map_or(Signers::None, |pem| Signers::Pem(pem.as_bytes().to_vec()));
    Trust { pins: all, signers }
}

/// For a URL on loopback.
pub fn source(url: &str, trust: Trust) -> Source {
    let rules = vec![Host::Net("127.0.0.0/8".parse().expect("a network"))];
    let limits = Limits {
        connect: Duration::from_secs(1),
        tries: 2,
        pause: Duration::from_millis(5),
        ..Limits::default()
    };
    Source {
        url: url.parse().expect("a URL"),
        copies: Vec::new(),
        trust,
        hosts: Hosts { rules, never: Vec::new() },
        proxies: Proxies::default(),
        limits,
        headers: RequestHeaders::default(),
    }
}

/// The whole file.
pub fn fetched(source: &Source) -> Result<Vec<u8>, String> {
    struct Whole(Vec<u8>);
    impl Receiver for Whole {
        type Error = SourceError;

        fn head(&mut self, _: &Head) -> Result<(), SourceError> {
            Ok(())
        }
        fn bytes(&mut self, bytes: Bytes) -> Result<(), SourceError> {
            self.0.extend_from_slice(&bytes);
            Ok(())
        }
        fn note(&mut self, _: &str) {}
        fn cancelled(&self) -> bool {
            false
        }
    }
    let mut whole = Whole(Vec::new());
    fetch(source, &mut whole).map(|()| whole.0).map_err(|error| error.to_string())
}
