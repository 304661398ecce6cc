//! A Redfish service that misbehaves on demand: each request is answered with bytes of the test's choice.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET /redfish/v1/`.
    pub line: String,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Bytes to send before the connection is closed.
pub type Answer = Vec<u8>;

pub fn answer(status: &str, headers: &str, body: &str) -> Answer {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}", body.len())
        .into_bytes()
}

pub fn ok(body: Value) -> Answer {
    answer("200 OK", "Content-Type: application/json\r\n", &body.to_string())
}

pub struct Service {
    pub address: String,
    seen: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Service {
    /// `behave` gets the request and how many came before it.
    pub async fn start(behave: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_slow(Duration::ZERO, behave).await
    }

    /// As [`Service::start`], with each answer taking `each`.
    pub async fn start_slow(
        each: Duration,
        behave: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(request) = read(&mut stream).await else { continue };
                let before = {
                    let mut log = log.lock().unwrap();
                    log.push(request.clone());
                    log.len() - 1
                };
                if !each.is_zero() {
                    tokio::time::sleep(each).await;
                }
                // The client may have gone; that is its business.
                let _ = stream.write_all(&behave(&request, before)).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { address, seen, task }
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    pub fn count(&self, line: &str) -> usize {
        self.seen().iter().filter(|request| request.line == line).count()
    }
}

async fn read(stream: &mut tokio::net::TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&bytes[head + 4..]).unwrap_or_default();
    Some(Request { line, headers, body })
}
