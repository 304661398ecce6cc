//! A client that costs little: one kept connection, requests that are made before, and of an answer no more than its status and
//! the length of its body is looked at.

use anyhow::{Context, Result, ensure};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(120);
/// The microversion that is asked for.
const VERSION: &str = "1.95";

/// A request as it is sent.
pub fn request(method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
    let body = body.map(Value::to_string).unwrap_or_default();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-openstack-ironic-api-version: {VERSION}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// What a connection is made of.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A kept connection.
pub struct Client {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
}

impl Client {
    /// Connects.
    pub fn connect(to: SocketAddr) -> Result<Self> {
        Ok(Self { stream: Box::new(open(to)?), read: Vec::with_capacity(1 << 20) })
    }

    /// Connects with TLS, with a full handshake.
    pub fn connect_tls(to: SocketAddr, tls: &Arc<ClientConfig>) -> Result<Self> {
        let mut stream = open(to)?;
        let mut connection = ClientConnection::new(tls.clone(), to.ip().into())?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(Self { stream: Box::new(StreamOwned::new(connection, stream)), read: Vec::new() })
    }

    /// Sends a request; the status and the body of its answer.
    pub fn send(&mut self, request: &[u8]) -> Result<(u16, &[u8])> {
        self.stream.write_all(request)?;
        self.read.clear();
        let (status, head, length) = loop {
            self.receive()?;
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.read[..end])?;
                break (status(head)?, end + 4, length(head));
            }
        };
        while self.read.len() < head + length {
            self.receive()?;
        }
        Ok((status, &self.read[head..head + length]))
    }

    fn receive(&mut self) -> Result<()> {
        let mut block = [0; 64 << 10];
        let count = self.stream.read(&mut block)?;
        ensure!(count > 0, "the controller closed the connection");
        self.read.extend_from_slice(&block[..count]);
        Ok(())
    }
}

fn open(to: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(stream)
}

fn status(head: &str) -> Result<u16> {
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.context("an answer without a status")
}

fn length(head: &str) -> usize {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next().and_then(|(_, length)| length.trim().parse().ok()).unwrap_or_default()
}
