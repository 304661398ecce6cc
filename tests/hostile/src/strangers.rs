//! Clients without any right: what they send, how often, and what they are answered.

use crate::controller::Ports;
use crate::held::{Open, Opened};
use crate::targets::Targets;
use anyhow::{Context, Result, bail};
use bench::client::{Connection, Route};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// Addresses of strangers.
pub const ADDRESSES: u16 = 256;
/// Requests on one connection, before the next is made.
const ON_A_CONNECTION: u32 = 60;
/// For an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// A stranger that is further behind its rate than this does not catch up.
const LAG: Duration = Duration::from_secs(2);

/// What strangers sent, and what they were answered.
#[derive(Debug, Default)]
pub struct Sent {
    /// Requests that were answered.
    pub answered: AtomicU64,
    /// Requests whose connection was closed instead.
    pub closed: AtomicU64,
    by: Mutex<BTreeMap<(&'static str, u16), u64>>,
}

impl Sent {
    fn note(&self, what: &'static str, status: Option<u16>) {
        let counter = if status.is_some() { &self.answered } else { &self.closed };
        counter.fetch_add(1, Ordering::Relaxed);
        *room::held(&self.by).entry((what, status.unwrap_or(0))).or_default() += 1;
    }

    /// How often which kind of request got which answer; 0: its connection was closed.
    pub fn table(&self) -> BTreeMap<(&'static str, u16), u64> {
        room::held(&self.by).clone()
    }
}

/// One request: a word for the report, its port, and its bytes.
struct Request {
    what: &'static str,
    boot: bool,
    bytes: Vec<u8>,
}

/// Sends requests at `per_s` from address `number` until it is dropped.
pub async fn run(
    number: u8,
    per_s: f64,
    seed: u64,
    ports: Ports,
    targets: Arc<Targets>,
    sent: Arc<Sent>,
    open: Arc<Open>,
) {
    let from = Ipv4Addr::new(127, 1, 0, number);
    let mut random = fastrand::Rng::with_seed(seed.wrapping_add(number.into()));
    let mut lines = [
        Line { route: ports.to_agents(from), left: 0, stream: None, open: open.clone() },
        Line { route: ports.to_boot(from), left: 0, stream: None, open },
    ];
    let pause = Duration::from_secs_f64(1.0 / per_s);
    let mut next = Instant::now() + pause.mul_f64(random.f64());
    loop {
        tokio::time::sleep_until(next.into()).await;
        next = (next + pause).max(Instant::now().checked_sub(LAG).unwrap_or(next));
        let request = compose(&mut random, &targets);
        let answer = lines[usize::from(request.boot)].ask(&request.bytes);
        let status = tokio::time::timeout(PATIENCE, answer).await;
        sent.note(request.what, status.ok().and_then(Result::ok));
    }
}

/// A connection for many requests.
struct Line {
    route: Route,
    left: u32,
    stream: Option<(BufReader<Box<dyn Connection>>, Opened)>,
    open: Arc<Open>,
}

impl Line {
    /// The status of the answer. After an error, and where the server ends it, the next request gets a new connection.
    async fn ask(&mut self, request: &[u8]) -> Result<u16> {
        let (mut stream, opened) = match self.stream.take().filter(|_| self.left > 0) {
            Some(stream) => stream,
            None => {
                self.left = ON_A_CONNECTION;
                (BufReader::new(self.route.connect().await?), self.open.one())
            }
        };
        self.left -= 1;
        stream.write_all(request).await?;
        stream.flush().await?;
        let (status, keep) = answer(&mut stream).await?;
        self.stream = keep.then_some((stream, opened));
        Ok(status)
    }
}

/// Reads an answer to its end; whether the connection stays.
async fn answer(stream: &mut BufReader<Box<dyn Connection>>) -> Result<(u16, bool)> {
    let mut line = String::new();
    let mut head = Vec::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            bail!("closed in the head of an answer");
        }
        let text = line.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        head.push(text);
    }
    let status = head.first().and_then(|first| first.split(' ').nth(1)?.parse().ok()).context("no status")?;
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse::<u64>().ok());
    let chunked = head.iter().any(|line| line.starts_with("transfer-encoding"));
    let keep = !chunked && length.is_some() && !head.iter().any(|line| line == "connection: close");
    if let Some(length) = length.filter(|_| keep) {
        tokio::io::copy(&mut stream.take(length), &mut tokio::io::sink()).await?;
    }
    Ok((status, keep))
}

/// Any of the things that a stranger may send.
fn compose(random: &mut fastrand::Rng, targets: &Targets) -> Request {
    let unknown = |random: &mut fastrand::Rng| {
        let [_, a, b, c] = random.u32(..).to_be_bytes();
        format!("02:00:00:{a:02x}:{b:02x}:{c:02x}")
    };
    let get = |what, path: String| Request {
        what,
        boot: false,
        bytes: format!("GET {path} HTTP/1.1\r\n{HEAD}\r\n").into_bytes(),
    };
    match random.u32(..100) {
        0..25 => get("lookup, unknown", format!("/v1/lookup?addresses={}", unknown(random))),
        25..40 => get("lookup, of a node", format!("/v1/lookup?addresses={}", targets.mac(random))),
        40..43 => get("lookup, malformed", format!("/v1/lookup?addresses={}", "%00,".repeat(200))),
        43..60 => {
            let token: String = std::iter::repeat_with(|| random.alphanumeric()).take(40).collect();
            let body = format!(
                "{{\"callback_url\":\"https://127.0.0.1:9999\",\"agent_token\":\"{token}\",\"agent_version\":\"13\"}}"
            );
            post("heartbeat", &format!("/v1/heartbeat/{}", targets.uuid(random)), body.as_bytes())
        }
        60..64 => post("heartbeat, malformed", &format!("/v1/heartbeat/{}", targets.uuid(random)), b"[[[[{"),
        64..76 => {
            let mac = unknown(random);
            let body = format!("{{\"inventory\":{{\"interfaces\":[{{\"mac_address\":\"{mac}\"}}]}}}}");
            post("inventory", INSPECTION, body.as_bytes())
        }
        76..78 => {
            let many = vec!["{\"\":0}"; random.usize(1_000..30_000)].join(",");
            post("inventory of many objects", INSPECTION, format!("[{many}]").as_bytes())
        }
        78..79 => post("body, deep", INSPECTION, &b"[".repeat(60_000)),
        // More than an unknown sender may send, and announced as even more: the answer comes before its end.
        79..80 => {
            let bytes = announced(8 << 20, INSPECTION, &vec![b' '; OVERSIZED]);
            Request { what: "body, oversized", boot: false, bytes }
        }
        80..84 => post("body, no text", INSPECTION, &[0xff; 300]),
        84..87 => get("an operator's path", "/v1/nodes?limit=1000".to_owned()),
        87..88 => {
            Request { what: "no HTTP", boot: false, bytes: b"\x16\x03\x01 what is this\r\n\r\n".to_vec() }
        }
        _ => Request {
            what: "boot script",
            boot: true,
            bytes: format!("GET /boot/ipxe?mac={} HTTP/1.1\r\n{HEAD}\r\n", unknown(random)).into_bytes(),
        },
    }
}

/// Bytes of a body that is too large without a node that waits for one (256 KiB).
const OVERSIZED: usize = 300 << 10;
const INSPECTION: &str = "/v1/continue_inspection";
const HEAD: &str =
    "Host: controller\r\nX-OpenStack-Ironic-API-Version: 1.84\r\nContent-Type: application/json\r\n";

fn post(what: &'static str, path: &str, body: &[u8]) -> Request {
    Request { what, boot: false, bytes: announced(body.len(), path, body) }
}

/// A request that says that its body has this length.
fn announced(length: usize, path: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("POST {path} HTTP/1.1\r\n{HEAD}Content-Length: {length}\r\n\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
